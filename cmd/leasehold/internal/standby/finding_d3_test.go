package standby_test

import (
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// tally counts requests to DynamoDB by operation.
type tally struct {
	mu   sync.Mutex
	made map[string]int
}

func (c *tally) note(target string) {
	_, op, _ := strings.Cut(target, ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[op]++
}

func (c *tally) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := c.made
	c.made = map[string]int{}
	return made
}

// instance runs a checker on the table, whose requests are counted.
func instance(t testing.TB, pod, target string) (*admiral.State, *tally) {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	count := &tally{made: map[string]int{}}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		count.note(r.In.Header.Get("X-Amz-Target"))
	}})
	t.Cleanup(front.Close)
	cfg := admiral.Config{
		LeaseName: "prod", PodIdentifier: pod, WaitTime: time.Second, FailureThreshold: 3, TableName: admiral.DefaultTable,
		Region: "us-east-2", Endpoint: front.URL,
	}
	checker, err := admiral.Checkers().New(admiral.DynamoDB, admiral.Params{Config: cfg, Table: standby.OpenTable})
	if err != nil {
		t.Fatal(err)
	}
	state := admiral.NewState(nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := checker.Run(ctx, state); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	return state, count
}

// A pair reads the table 4 times a waitTimeInSeconds at most, which is 16 times a minute at 15 s, and writes once: the passive one reads
// the lease and what operators ask, the active one the latter.
func TestFinding_D3_ReadsOfAPair(t *testing.T) {
	const measured, waits = 10 * time.Second, 10
	target := admiralTable(t)
	stalltest.Run(t, func(t testing.TB) {
		active, ofActive := instance(t, "east", target)
		for st := active.Status(); st.ReadOnly; {
			var err error
			if st, err = active.Changed(t.Context(), st.Seq); err != nil {
				t.Fatal(err)
			}
		}
		_, ofPassive := instance(t, "west", target)
		time.Sleep(8 * time.Second) // the pace falls to that of a term that lasts
		ofActive.take()
		ofPassive.take()
		time.Sleep(measured)
		a, p := ofActive.take(), ofPassive.take()
		t.Logf("in %v at waitTimeInSeconds 1: active %v, passive %v", measured, a, p)
		if reads := a["GetItem"] + p["GetItem"]; reads > 4*waits {
			t.Errorf("the pair reads %d times in %d waits, want %d at most", reads, waits, 4*waits)
		}
		if a["GetItem"] < waits/2 || p["GetItem"] < waits {
			t.Error("one of them doesn't look")
		}
		// A write that a busy machine held up may come with the next one: two a wait would be a fault.
		if writes := a["UpdateItem"]; writes > waits*3/2 {
			t.Errorf("the active one writes %d times in %d waits", writes, waits)
		}
		if len(p) != 1 || len(a) != 2 {
			t.Error("there are other requests")
		}
	})
}
