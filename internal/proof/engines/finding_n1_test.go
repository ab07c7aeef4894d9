package engines

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/kubernetes"
)

// go test ./internal/proof/engines -run TestFinding_N1 -v -requests 1m
var requestsFor = flag.Duration("requests", 0, "for how long TestFinding_N1_RequestsStayBelowTheElectors counts requests at 1, 20 and 100 candidates; by default 30 s at 20")

// Elections on Kubernetes make fewer requests than client-go's elector by its defaults, at the same time and on the same API server: a
// leader and so many candidates beside it, each with a client and connections of its own, as processes have.
func TestFinding_N1_RequestsStayBelowTheElectors(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	counted, sizes := 30*time.Second, []int{20}
	if *requestsFor != 0 {
		counted, sizes = *requestsFor, []int{1, 20, 100}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| candidates beside the leader | Leasehold, requests a minute | client-go's elector |\n|---|---|---|\n")
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			name := fmt.Sprintf("n1-%d-%d", n, time.Now().UnixNano())
			ours, theirs := &tally{}, &tally{}
			for i := range n + 1 {
				standOurs(t, srv, ours, name, fmt.Sprint("c", i))
				standTheirs(t, srv, theirs, name+"-theirs", fmt.Sprint("c", i))
			}
			settled(t, srv, name, n+1)
			before := [2]map[string]int{ours.get(), theirs.get()}
			time.Sleep(counted)
			after := [2]map[string]int{ours.get(), theirs.get()}
			var perMinute [2]float64
			for i, side := range []string{"Leasehold", "client-go"} {
				for _, what := range slices.Sorted(maps.Keys(after[i])) {
					rate := float64(after[i][what]-before[i][what]) / counted.Minutes()
					perMinute[i] += rate
					t.Logf("%d candidates, %s: %7.1f %s", n, side, rate, what)
				}
			}
			fmt.Fprintf(&table, "| %d | %.0f | %.0f |\n", n, perMinute[0], perMinute[1])
			if perMinute[0] >= perMinute[1] {
				t.Errorf("%d candidates: %.0f requests a minute, client-go's elector makes %.0f", n, perMinute[0], perMinute[1])
			}
		})
	}
	t.Log("\n" + table.String())
}

// tally counts requests by what they ask for.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (c *tally) get() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.count)
}

// wrap has the requests counted that go through next.
func (c *tally) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		of := "a name"
		for _, word := range []string{"session", "election"} {
			if strings.Contains(r.URL.Path+r.URL.Query().Get("fieldSelector"), word) {
				of = "a " + word
			}
		}
		what := r.Method
		if r.URL.Query().Get("watch") != "" {
			what = "watch"
		}
		c.add(what + " of " + of)
		return next.RoundTrip(r)
	})
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == nil {
		c.count = map[string]int{}
	}
	c.count[what]++
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// standOurs has a candidate stand, as a process of its own, until the test ends.
func standOurs(t *testing.T, srv *servers.Server, c *tally, name, who string) {
	t.Helper()
	st, err := kubernetes.New(kubeClient(t, srv, srv.Addr, c.wrap), kubernetes.Options{Namespace: theNamespace(t, srv)})
	must(t, err)
	stand(t, st, name, who)
}

// stand has a candidate stand on st, which it closes, until the test ends.
func stand(t *testing.T, st store.Store, name, who string) {
	t.Helper()
	m, err := lease.NewManager(st, lease.Options{Name: who})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- election.Run(ctx, m, name, election.Callbacks{
			OnStartedLeading: func(ctx context.Context, _ election.Term) { <-ctx.Done() }, OnNewLeader: func(election.Leader) {},
		}, election.Options{})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		must(t, m.Close())
		must(t, st.Close())
	})
}

// standTheirs has one of client-go's electors stand by its defaults.
func standTheirs(t *testing.T, srv *servers.Server, c *tally, name, who string) {
	t.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: theNamespace(t, srv), Name: name}, Client: kubeClient(t, srv, srv.Addr, c.wrap),
			LockConfig: resourcelock.ResourceLockConfig{Identity: who},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { <-ctx.Done() }, OnStoppedLeading: func() {}, OnNewLeader: func(string) {},
		},
	})
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); elector.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

// settled waits until so many candidates stand, as far as the list has room, one leads, and all have come to rest.
func settled(t *testing.T, srv *servers.Server, name string, candidates int) {
	t.Helper()
	st, err := kubernetes.New(kubeClient(t, srv, srv.Addr), kubernetes.Options{Namespace: theNamespace(t, srv)})
	must(t, err)
	defer st.Close()
	settledOn(t, st, name, candidates)
}

// settledOn is settled for any store.
func settledOn(t *testing.T, st store.Store, name string, candidates int) {
	t.Helper()
	const room = 50
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second) {
		state, err := election.ReadState(t.Context(), st, name)
		must(t, err)
		if state.Leader.Owner != "" && len(state.Candidates) == min(candidates, room) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d candidates stand, and %q leads", len(state.Candidates), candidates, state.Leader.Owner)
		}
	}
	time.Sleep(electorTTL) // a TTL: from then on nothing is left of the beginning
}
