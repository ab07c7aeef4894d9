package election_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store/faulty"
)

// A leader that stepped down of its own wish obeys an operator in its later terms, in the same session and in others.
func TestFinding_L2_OrdersCountAfterAWishOfItsOwn(t *testing.T) {
	for name, wish := range map[string]func(t *testing.T, term election.Term){
		"Resign": func(_ *testing.T, term election.Term) { term.Resign() },
		"HandOver": func(t *testing.T, term election.Term) {
			if err := term.HandOver(t.Context(), "b"); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var once sync.Once
				w.candidate("a", election.Options{}, func(p *process) {
					p.work = func(ctx context.Context, term election.Term) {
						once.Do(func() {
							time.Sleep(2 * time.Second)
							wish(t, term)
						})
						<-ctx.Done()
					}
				})
				time.Sleep(time.Second)
				w.candidate("b", election.Options{})
				time.Sleep(2 * time.Second)
				w.expect("a leads, a stopped, b leads")
				for _, step := range []struct{ to, want string }{
					{"a", "b stopped, a leads"}, {"b", "a stopped, b leads"}, {"a", "b stopped, a leads"}, {"b", "a stopped, b leads"},
				} {
					if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{To: step.to, By: "ada"}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
					w.expect(step.want)
				}
			})
		})
	}
}

// A program may keep a term beyond its end, and its session's: what it asks of it then does nothing, and is no data race.
func TestFinding_L3_ATermThatIsOverAsksForNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		terms := make(chan election.Term, 100)
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, term election.Term) {
				terms <- term
				<-ctx.Done()
			}
		})
		old := <-terms
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, ask := range []func(){old.Resign, func() { _ = old.HandOver(ctx, "a") }} {
			wg.Go(func() {
				<-old.Context().Done()
				for ctx.Err() == nil {
					ask()
					time.Sleep(ttl / 1000)
				}
			})
		}
		a.Cut()
		time.Sleep(2 * ttl) // the session is over
		a.Heal()
		next := <-terms
		w.told()
		time.Sleep(ttl)
		w.expect("")
		if err := next.Check(); err != nil {
			t.Error(err)
		}
		stop()
		wg.Wait()
	})
}

// An operator who names no term means the one there is, also when another begins while the order is written.
func TestFinding_K6_HandOverWithoutATokenBeginsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		turn := make(chan struct{})
		w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				select {
				case <-turn:
				case <-ctx.Done():
				}
			}
		})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		w.expect("a leads")
		reads := 0
		st := faulty.Wrap(w.DB.Open(), func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get && op.Key == "job" {
				if reads++; reads == 2 { // between what HandOver reads and what it reads to order
					turn <- struct{}{}
					time.Sleep(time.Second)
				}
			}
			return faulty.Fault{}
		})
		defer st.Close()
		h, err := election.HandOver(t.Context(), st, "job", election.HandOverOptions{By: "ada"})
		if err != nil || !strings.HasPrefix(h.From.Owner, "b/") {
			t.Fatalf("%+v, %v", h, err)
		}
		time.Sleep(time.Second)
		w.expect("a stopped, b leads, b stopped, a leads")
	})
}

// For a candidate that finds no place on the list OnError is called once, and it stands all the same.
func TestFinding_K6_ACandidateThatIsNotListedIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 51 {
			w.candidate(fmt.Sprintf("c%d", i), election.Options{})
		}
		time.Sleep(3 * ttl)
		w.mu.Lock()
		defer w.mu.Unlock()
		told := 0
		for _, text := range w.errs {
			if strings.Contains(text, election.ErrUnlisted.Error()) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("told %d times, want once: %q", told, w.errs)
		}
		state, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil || len(state.Candidates) != 50 {
			t.Errorf("%d candidates, %v", len(state.Candidates), err)
		}
	})
}

// A leader that returns at once, or crashes, does not begin a term hundreds of times a second.
func TestFinding_K3_ShortTermsAreFollowedByARest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		terms := 0
		w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(context.Context, election.Term) { terms++ }
		})
		time.Sleep(10 * time.Minute)
		if synctest.Wait(); terms < 10 || terms > 20 {
			t.Errorf("%d terms in 10 minutes, want 10 to 20: the rests double up to a minute", terms)
		}
	})
}

// One that crashes whenever it leads is preferred, and leaves the others little else to do than to hand over to it, unless it rests.
func TestFinding_K3_ACrashingCandidateIsNotPreferred(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var led time.Duration
		w.candidate("a", election.Options{FailBack: election.FailBack{After: time.Second}}, func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				began := time.Now()
				<-ctx.Done()
				led += time.Since(began)
			}
		})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{Priority: 1}, func(p *process) { p.work = func(context.Context, election.Term) {} })
		const length = time.Hour
		time.Sleep(length)
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if synctest.Wait(); led < length*9/10 {
			t.Errorf("led for %v of %v, want nine tenths at least", led, length)
		}
	})
}

// A term that lasted makes up for the short ones before it.
func TestFinding_K3_ALongTermEndsTheRests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		terms := 0
		w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(context.Context, election.Term) {
				if terms++; terms == 8 {
					time.Sleep(ttl)
				}
			}
		})
		time.Sleep(90 * time.Second)
		if synctest.Wait(); terms < 14 {
			t.Errorf("%d terms, want 14: the rests begin at a hundredth of the TTL again", terms)
		}
	})
}
