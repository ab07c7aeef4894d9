package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/lease"
)

// Both that hold a lease and that lead open a gate.
var _, _ gate.Term = (*lease.Lease)(nil), election.Term{}

// elect has the instance stand for election until the test ends.
func (i *instance) elect(name string) {
	ctx, stop := context.WithCancel(i.w.T.Context())
	done := make(chan error, 1)
	go func() {
		done <- election.Run(ctx, i.m, "job", election.Callbacks{
			OnStartedLeading: func(ctx context.Context, term election.Term) { _ = i.gate.Open(ctx, term) },
		}, election.Options{Name: name})
	}()
	i.w.T.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			i.w.T.Error(err)
		}
	})
	time.Sleep(time.Second)
	synctest.Wait()
}

// Two gates in front of one program: writes come from one at a time, in the order of the terms, over hand-overs and partitions;
// reads come through both, all the time.
func TestTwoGatesTakeTurns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		gates := []*instance{w.instance(gate.Options{}), w.instance(gate.Options{})}
		var mu sync.Mutex
		var last fence.Token
		var terms, under int
		w.setServe(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			s, err := fence.ParseSequencer(r.Header.Get(fence.Header))
			if r.Method == http.MethodGet || err != nil {
				return
			}
			mu.Lock()
			if s.Token < last || s.Token > last && under > 0 {
				t.Errorf("token %d after %d, with %d writes under way", s.Token, last, under)
			}
			if s.Token > last {
				terms++
			}
			last = s.Token
			under++
			mu.Unlock()
			time.Sleep(40 * time.Millisecond)
			mu.Lock()
			under--
			mu.Unlock()
		})
		for n, i := range gates {
			i.elect(fmt.Sprint("gate-", n))
		}
		ctx, stop := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		var written [2]int
		for n, i := range gates {
			clients.Go(func() {
				for ctx.Err() == nil {
					if a := i.do("GET", "/jobs", ""); a.String() != "200" {
						t.Errorf("a read through %d: %s", n, a)
					}
					switch a := i.do("POST", "/jobs", "a job"); {
					case a.code == http.StatusOK:
						written[n]++
					case a.code != http.StatusServiceUnavailable || !strings.Contains(a.text, "not_done"):
						t.Errorf("a write through %d: %s", n, a)
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		for round := range 6 {
			time.Sleep(time.Minute)
			l, err := election.Current(t.Context(), w.Open(), "job")
			if err != nil {
				t.Fatal(err)
			}
			leader := gates[0]
			if l.Owner == gates[1].m.Holder() {
				leader = gates[1]
			}
			if round%2 == 0 {
				_, err = election.HandOver(t.Context(), w.Open(), "job", election.HandOverOptions{Token: l.Token, By: "the test"})
			} else {
				leader.setCut(true)
				time.AfterFunc(time.Minute, func() { leader.setCut(false) })
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		stop()
		clients.Wait()
		if terms != 7 || written[0] < 200 || written[1] < 200 {
			t.Errorf("%d terms, %v writes", terms, written)
		}
	})
}
