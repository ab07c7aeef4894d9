package election_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// That the list is full is told once, whatever else goes wrong meanwhile, and again when the candidate was on it in between.
func TestUnlistedIsToldAgainAfterAPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		others := make([]election.Candidate, 50)
		for i := range others {
			key := fmt.Sprintf(".session/other%d/1", i)
			put(t, w.st, key, "", func(r *store.Record) { r.Owner, r.Token, r.TTL = fmt.Sprint("other", i), 1, store.MaxTTL })
			others[i] = election.Candidate{Session: key, Name: fmt.Sprint("other", i)}
		}
		list := func(candidates []election.Candidate) {
			data, err := json.Marshal(map[string]any{"v": 1, "candidates": candidates})
			if err != nil {
				t.Fatal(err)
			}
			put(t, w.st, ".election/job", string(data))
			time.Sleep(2 * ttl)
		}
		told := func(want int) {
			t.Helper()
			w.mu.Lock()
			defer w.mu.Unlock()
			if got := strings.Count(strings.Join(w.errs, "\n"), election.ErrUnlisted.Error()); got != want {
				t.Errorf("told %d times, want %d: %q", got, want, w.errs)
			}
		}
		refuse := false
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.plan = func(op faulty.Op) faulty.Fault {
				if refuse && strings.HasPrefix(op.Key, ".session/other") {
					return faulty.Fault{Err: errors.New("connection refused")}
				}
				return faulty.Fault{Delay: time.Millisecond}
			}
		})
		list(others)
		told(1)
		full, err := w.st.Get(t.Context(), ".election/job")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * ttl)
		if rec, err := w.st.Get(t.Context(), ".election/job"); err != nil || rec.Version != full.Version {
			t.Errorf("the full list was written by who isn't on it: %v", err)
		}
		for _, now := range []bool{true, false} {
			a.mu.Lock()
			refuse = now
			a.mu.Unlock()
			time.Sleep(2 * ttl)
		}
		told(1)
		list(others[:49])
		list(others)
		told(2)
	})
}

// While the control record can't be read, no term begins, and the store is not asked without pauses.
func TestTheControlRecordIsNotReadWithoutPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		claimed, reads := false, 0
		w.candidate("a", election.Options{}, func(p *process) {
			p.plan = func(op faulty.Op) faulty.Fault {
				claimed = claimed || op.Kind == faulty.Put && op.Key == "job"
				if !claimed || op.Kind != faulty.Get || op.Key != ".election/job" {
					return faulty.Fault{Delay: time.Millisecond}
				}
				if reads++; reads > 1000 {
					return faulty.Fault{Delay: time.Millisecond}
				}
				return faulty.Fault{Err: errors.New("connection refused")}
			}
		})
		time.Sleep(ttl)
		w.expect("")
		if most := 40; !claimed || reads > most {
			t.Errorf("claimed %v; %d reads within a TTL, want %d at most", claimed, reads, most)
		}
	})
}

// A leader that wishes to hand over, and can't read who there is, is told so and leads on.
func TestTransferThatCantReadTheCandidates(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, term election.Term) {
				put(t, w.st, ".election/job", `{"v":2}`)
				limited, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				if err := term.HandOver(limited, "b"); !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("%v", err)
				}
				<-ctx.Done()
			}
		})
		time.Sleep(10 * ttl)
		w.expect("a leads")
	})
}
