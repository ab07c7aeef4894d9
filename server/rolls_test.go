package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// called counts the writes to the record through which instances are asked.
type called struct {
	store.Store
	n *atomic.Int32
}

func (c called) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if strings.HasPrefix(rec.Key, pairs.Calls) {
		c.n.Add(1)
	}
	return c.Store.Put(ctx, rec)
}

func (c called) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return store.Wait(ctx, c.Store, key, version)
}

// However often a pair is looked at, its instances are asked 15 s after the last call has ended, or 2 s after it began in another term: a call
// is a write, which is taken away again.
func TestRollsAreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		clk := clocktest.New(0)
		st := memory.New(memory.Options{Clock: clk})
		s, err := New(called{st, &n}, Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		row := store.Record{Key: "pair", Owner: "east/x", Token: 7, TTL: time.Hour, Info: map[string]string{pairs.InfoPod: "east"}, Nonce: "n"}
		for _, rec := range []store.Record{row, {Key: pairs.Calls + "pair", Nonce: "n"}} {
			if rec, err = st.Put(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if rec.Key == row.Key {
				row = rec
			}
		}
		// looked looks four times a second, and returns how many writes that made.
		looked := func(d time.Duration) int {
			before := n.Load()
			for range int(d / (250 * time.Millisecond)) {
				w := httptest.NewRecorder()
				if s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/pairs/pair", nil)); w.Code != http.StatusOK {
					t.Fatal(w.Body)
				}
				time.Sleep(250 * time.Millisecond)
			}
			return int(n.Load() - before)
		}
		// Nobody answers, so that a call takes 20 s: three calls in 3 × 35 s, the last of them just begun when it is over.
		if got := looked(75 * time.Second); got != 5 {
			t.Errorf("%d writes in 75 s, want 5: three calls, of which two have been taken away", got)
		}
		looked(16 * time.Second) // the third call is over
		row.Token, row.Owner, row.Nonce = row.Token+1, "west/y", "m"
		if _, err := st.Put(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if got := looked(time.Second); got != 1 {
			t.Errorf("%d writes in the first second of another term, want 1", got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_ = st.Close()
	})
}

// An instance that is asked in the moment in which it takes the lease says that it is passive. It is asked again soon: it is not shown as
// one that isn't active yet until the next call is due.
func TestAnInstanceThatTakesTheLeaseIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		st := memory.New(memory.Options{Clock: clk})
		s, err := New(st, Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		row := store.Record{Key: "pair", Owner: "east/x", Token: 7, TTL: time.Hour, Info: map[string]string{pairs.InfoPod: "east"}, Nonce: "n"}
		if _, err := st.Put(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		rec, err := st.Put(t.Context(), store.Record{Key: pairs.Calls + "pair", Nonce: "n"})
		if err != nil {
			t.Fatal(err)
		}
		var answered sync.WaitGroup
		answered.Go(func() { // as an instance does
			status := api.InstancePassive
			for n := 0; ; n++ {
				var call struct {
					ID      string              `json:"id"`
					Answers []map[string]string `json:"answers"`
				}
				if rec, err = st.Wait(t.Context(), rec.Key, rec.Version); err != nil {
					return
				}
				if err := json.Unmarshal(rec.Data, &call); err != nil || call.ID == "" || call.Answers != nil {
					continue
				}
				rec.Data, rec.Nonce = fmt.Appendf(nil, `{"id":%q,"answers":[{"pod":"east","owner":"east/x","status":%q}]}`, call.ID, status), fmt.Sprint(n)
				if rec, err = st.Put(t.Context(), rec); err != nil {
					return
				}
				status = api.InstanceActive
			}
		})
		var p api.Pair
		shown := func() api.PairState {
			w := httptest.NewRecorder()
			if s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/pairs/pair", nil)); w.Code != http.StatusOK {
				t.Fatal(w.Body)
			}
			if p = (api.Pair{}); json.Unmarshal(w.Body.Bytes(), &p) != nil {
				t.Fatal(w.Body)
			}
			return p.State
		}
		shown()
		begun := time.Now()
		for time.Sleep(time.Millisecond); shown() != api.PairActive; time.Sleep(100 * time.Millisecond) {
			if time.Since(begun) > rollMost+rollAgain {
				t.Fatalf("%v after it was asked: %+v", time.Since(begun), p)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		_ = st.Close()
		answered.Wait()
	})
}
