package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestLeaderDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Minute)
		w.expect("a leads")
		a.Cut()
		time.Sleep(2 * ttl)
		w.expect("a stopped, b leads")
		a.Heal()
		time.Sleep(time.Minute)
		w.expect("") // it campaigns again, and waits
		b.end()
		time.Sleep(time.Second)
		w.expect("b stopped, a leads")
		if !errors.Is(b.err, errEnd) {
			t.Errorf("%v", b.err)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if got := strings.Join(a.leaders, ","); got != "a,b,a" {
			t.Errorf("a saw %s lead", got)
		}
	})
}

// A leader that can't renew is told before its validity ends, and when it doesn't stop, its program is: before it ends, too.
func TestLeaderThatDoesNotStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release, terms, told := make(chan struct{}), make(chan election.Term, 1), make(chan time.Time, 1)
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, t election.Term) {
				terms <- t
				<-ctx.Done()
				told <- time.Now()
				<-release
			}
		})
		term := <-terms
		time.Sleep(time.Minute)
		if left := term.ValidUntil().Sub(a.Clk.Now()); left <= ttl/3 || left > ttl {
			t.Errorf("valid for %v", left)
		}
		a.Cut()
		var stuck time.Time
		for term.Check() == nil {
			a.mu.Lock()
			if len(a.stuck) > 0 && stuck.IsZero() {
				stuck = time.Now()
			}
			a.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
		}
		if term.ValidUntil() != clock.Ended {
			t.Errorf("over, and valid until %v", term.ValidUntil())
		}
		ended, at := time.Now(), <-told
		if stuck.IsZero() || !at.Before(stuck) || !stuck.Before(ended) {
			t.Errorf("told %v, stuck %v, ended %v", at, stuck, ended)
		}
		if early := ended.Sub(at); early < ttl/10-50*time.Millisecond || early > ttl/10+50*time.Millisecond {
			t.Errorf("it was told %v before the end", early)
		}
		if last := ended.Sub(stuck); last < ttl/30-50*time.Millisecond || last > ttl/30+50*time.Millisecond {
			t.Errorf("OnStopTimeout was called %v before the end, want a third of the margin", last)
		}
		a.mu.Lock()
		if len(a.stuck) != 1 || !errors.Is(a.stuck[0], election.ErrExpiring) {
			t.Errorf("%v", a.stuck)
		}
		a.mu.Unlock()
		close(release)
		if got := a.traced(); got != "told,stuck,stopped" {
			t.Errorf("%s", got)
		}
	})
}

// However patient one is with a leader that was told to stop: the end of its validity is the end.
func TestPatienceEndsWithTheValidity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release, terms := make(chan struct{}), make(chan election.Term, 1)
		a := w.candidate("a", election.Options{StopWithin: time.Hour}, func(p *process) {
			p.work = func(_ context.Context, t election.Term) {
				terms <- t
				<-release
			}
		})
		term := <-terms
		go a.end()
		time.Sleep(10 * time.Minute)
		if got := a.traced(); got != "told" {
			t.Errorf("%s, while it goes on renewing", got)
		}
		a.Cut()
		for term.Check() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		a.mu.Lock()
		if len(a.stuck) != 1 {
			t.Errorf("when its validity has ended: %v", a.stuck)
		}
		a.mu.Unlock()
		close(release)
	})
}

// What is told to stop keeps the name until it has stopped.
func TestNameIsKeptUntilTheLeaderHasStopped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				<-ctx.Done()
				<-release
			}
		})
		time.Sleep(time.Second)
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		go a.end()
		time.Sleep(10 * ttl)
		w.expect("a leads")
		a.mu.Lock()
		if len(a.stuck) != 1 || !errors.Is(a.stuck[0], errEnd) {
			t.Errorf("%v", a.stuck)
		}
		a.mu.Unlock()
		close(release)
		time.Sleep(time.Second)
		w.expect("a stopped, b leads")
		b.end()
		<-a.done
	})
}

func TestReturningIsResigning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		work := func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				select {
				case <-time.After(time.Minute):
				case <-ctx.Done():
				}
			}
		}
		w.candidate("a", election.Options{}, work)
		time.Sleep(2*time.Minute + 30*time.Second)
		if got := w.told(); got != "a leads, a stopped, a leads, a stopped, a leads" {
			t.Error(got)
		}
	})
}

// Who returns doesn't lead again at once while there are others, though it would be the first.
func TestResigningLetsOthersLead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b"} {
			w.candidate(name, election.Options{}, func(p *process) {
				p.work = func(ctx context.Context, term election.Term) {
					time.Sleep(time.Minute)
					term.Resign()
					term.Resign() // twice is no more than once
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, election.ErrOrdered) && t.Context().Err() == nil {
						t.Errorf("%v", cause)
					}
					if name == "b" {
						return
					}
					time.Sleep(time.Second) // it drains
				}
			})
			time.Sleep(time.Second)
		}
		time.Sleep(4 * time.Minute)
		w.expect("a leads, a stopped, b leads, b stopped, a leads, a stopped, b leads")
	})
}

// Who has resigned, and hears only late that another one has led and resigned since, doesn't wait for it: that one waits, too.
func TestTwoThatResignDoNotWaitForEachOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		resigned := false
		for _, name := range []string{"a", "b"} {
			w.candidate(name, election.Options{}, func(p *process) {
				p.work = func(context.Context, election.Term) { time.Sleep(time.Second) }
				if name == "b" {
					return
				}
				p.plan = func(op faulty.Op) faulty.Fault {
					resigned = resigned || op.Kind == faulty.Put && op.Key == "job" && op.Record.Owner == ""
					if resigned && op.Kind == faulty.Get && op.Key == "job" {
						return faulty.Fault{Delay: 1500 * time.Millisecond}
					}
					return faulty.Fault{}
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2800 * time.Millisecond)
		w.expect("a leads, a stopped, b leads, b stopped, a leads")
	})
}

func TestTermTransfersItself(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, term election.Term) {
				time.Sleep(time.Minute)
				if err := term.HandOver(ctx, "x"); !errors.Is(err, election.ErrNoCandidate) || ctx.Err() != nil {
					t.Errorf("to nobody: %v, %v", err, ctx.Err())
				}
				if err := term.HandOver(ctx, "c"); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
			}
		})
		for _, name := range []string{"b", "c", "d"} {
			time.Sleep(time.Second)
			w.candidate(name, election.Options{})
		}
		time.Sleep(time.Minute)
		w.expect("a leads, a stopped, c leads")
	})
}

// A candidate whose own session is about to expire begins no term, let alone one after the other: world.lead checks that.
func TestNoTermBeginsThatIsAboutToExpire(t *testing.T) {
	for late := 6 * time.Second; late < 13*time.Second; late += 100 * time.Millisecond {
		inWorld(t, func(t *testing.T, w *world) {
			b := w.candidate("b", election.Options{})
			time.Sleep(time.Second)
			silent := false
			a := w.candidate("a", election.Options{}, func(p *process) {
				p.plan = func(op faulty.Op) faulty.Fault {
					return faulty.Fault{Drop: silent && op.Kind == faulty.Put && strings.HasPrefix(op.Key, ".session/"), Delay: time.Millisecond}
				}
			})
			time.Sleep(time.Minute)
			a.mu.Lock()
			silent = true
			a.mu.Unlock()
			time.Sleep(late)
			b.end()
			time.Sleep(2 * ttl)
			if n := strings.Count(w.told(), "a leads"); n > 1 {
				t.Errorf("%d terms without a renewal", n)
			}
		})
	}
}

// A lease that ends while the candidate makes sure that it may lead is no term: world.lead checks that.
func TestNoTermBeginsThatIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		claimed, stopped := false, false
		w.candidate("a", election.Options{}, func(p *process) {
			p.plan = func(op faulty.Op) faulty.Fault {
				claimed = claimed || op.Kind == faulty.Put && op.Key == "job"
				if stopped || !claimed || op.Kind != faulty.Get || op.Key != ".election/job" {
					return faulty.Fault{Delay: time.Millisecond}
				}
				stopped = true // while the read is on its way, and for longer than the lease lasts
				p.Clk.Pause()
				time.AfterFunc(2*ttl, p.Clk.Resume)
				return faulty.Fault{ReplyDelay: 2 * ttl}
			}
		})
		time.Sleep(10 * time.Minute)
		w.expect("a leads")
		if !stopped {
			t.Error("the process was not stopped: this test shows nothing")
		}
	})
}

func TestBadArguments(t *testing.T) {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	cb := election.Callbacks{OnStartedLeading: func(context.Context, election.Term) {}}
	_, handed := election.HandOver(t.Context(), m.Store(), "x", election.HandOverOptions{Token: 1, By: "ada"})
	for what, err := range map[string]error{
		"no manager":     election.Run(t.Context(), nil, "x", cb, election.Options{}),
		"no callback":    election.Run(t.Context(), m, "x", election.Callbacks{}, election.Options{}),
		"no name":        election.Run(t.Context(), m, "", cb, election.Options{}),
		"reserved name":  election.Run(t.Context(), m, ".x", cb, election.Options{}),
		"long name":      election.Run(t.Context(), m, strings.Repeat("x", 250), cb, election.Options{}),
		"wide margin":    election.Run(t.Context(), m, "x", cb, election.Options{StopMargin: 14 * time.Second}),
		"negative":       election.Run(t.Context(), m, "x", cb, election.Options{MinHold: -1}),
		"long own name":  election.Run(t.Context(), m, "x", cb, election.Options{Name: strings.Repeat("x", 256)}),
		"long zone":      election.Run(t.Context(), m, "x", cb, election.Options{Zone: strings.Repeat("x", 256)}),
		"nobody pauses":  election.SetPause(t.Context(), m.Store(), "x", election.Pause{Since: time.Now()}),
		"nobody leads":   handed,
		"bad name there": election.Resume(t.Context(), m.Store(), "", ""),
		"pause nothing":  election.SetPause(t.Context(), m.Store(), "", election.Pause{By: "ada", Since: time.Now()}),
	} {
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: %v", what, err)
		}
	}
	longest := strings.Repeat("x", store.MaxKey-len(kinds.Elections))
	p := election.Pause{By: "ada", Since: time.Now()}
	if err := election.SetPause(t.Context(), m.Store(), longest, p); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	if err := election.SetPause(t.Context(), m.Store(), longest+"x", p); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("1 to %d bytes", len(longest))) {
		t.Errorf("a longer name: %v", err)
	}
}

// Options may be as large as they say.
func TestOptionsAtTheirBounds(t *testing.T) {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ended, end := context.WithCancelCause(t.Context())
	end(errEnd)
	cb := election.Callbacks{OnStartedLeading: func(context.Context, election.Term) {}}
	longest := strings.Repeat("x", 255)
	for what, opts := range map[string]election.Options{
		"name": {Name: longest}, "zone": {Zone: longest}, "margin": {StopMargin: ttl / 3},
	} {
		if err := election.Run(ended, m, "x", cb, opts); !errors.Is(err, errEnd) {
			t.Errorf("the largest %s: %v", what, err)
		}
	}
}

// A candidate without a name is shown by its owner id.
func TestCandidateWithoutAName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		m, err := lease.NewManager(w.DB.Open(), lease.Options{TTL: ttl, Clock: clocktest.New(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		cb := election.Callbacks{OnStartedLeading: func(ctx context.Context, _ election.Term) {
			time.Sleep(time.Second)
			state, err := election.ReadState(ctx, w.st, "job")
			if err != nil || len(state.Candidates) != 1 || state.Candidates[0].Name != m.Holder() {
				t.Errorf("%+v, %v; want %s", state.Candidates, err, m.Holder())
			}
			<-ctx.Done()
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := election.Run(ctx, m, "job", cb, election.Options{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
