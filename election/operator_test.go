package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestPauseAndResume(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		causes := make(chan error, 10)
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.work = func(ctx context.Context, _ election.Term) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
		})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		w.told()
		if err := election.Resume(t.Context(), w.st, "job", ""); !errors.Is(err, election.ErrNotPaused) {
			t.Errorf("%v", err)
		}
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Reason: "migration", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if l := w.leader(); l.Owner != "" {
			t.Errorf("%+v leads", l)
		}
		state, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil || state.Pause == nil || state.Pause.By != "ada" || state.Pause.Reason != "migration" || len(state.Candidates) != 2 {
			t.Errorf("%+v, %v", state, err)
		}
		time.Sleep(time.Hour)
		if got := w.told(); got != "a stopped" && got != "b stopped" {
			t.Error(got)
		}
		if err := election.Resume(t.Context(), w.st, "job", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if l := w.leader(); l.Owner == "" {
			t.Error("nobody leads after the pause")
		}
		a.end()
		if cause := <-causes; !errors.Is(cause, election.ErrPaused) || !strings.Contains(cause.Error(), "by ada: migration") {
			t.Errorf("%v", cause)
		}
	})
}

// A pause holds for those who come after it, too: they don't even take the name.
func TestPauseOfAnElectionWithoutCandidates(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Reason: "migration", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		w.candidate("a", election.Options{})
		time.Sleep(time.Hour)
		w.expect("")
		if l := w.leader(); l.Token != 0 {
			t.Errorf("the name was taken: %+v", l)
		}
	})
}

// A candidate that has not heard of a pause doesn't lead either: who has paused the election and seen that nobody leads can rely
// on it.
func TestPauseThatACandidateHasNotHeardOf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		deaf := false
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.plan = func(op faulty.Op) faulty.Fault {
				return faulty.Fault{Drop: deaf && op.Kind == faulty.Push && op.Key == ".election/job"}
			}
		})
		time.Sleep(time.Second)
		a.mu.Lock()
		deaf = true
		a.mu.Unlock()
		token := w.leader().Token
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Reason: "migration", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.expect("b leads, b stopped")
		time.Sleep(time.Hour)
		w.expect("")
		if l := w.leader(); l.Owner != "" {
			t.Errorf("%+v", l)
		}
		if w.leader().Token == token {
			t.Error("the candidate heard of the pause: this test shows nothing")
		}
		b.end()
	})
}

// What can't be read is no permission.
func TestControlRecordThatCanNotBeRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if _, err := w.st.Put(t.Context(), store.Record{Key: ".election/job", Data: []byte(`{"v":2}`), Nonce: "x"}); err != nil {
			t.Fatal(err)
		}
		w.candidate("a", election.Options{})
		time.Sleep(time.Hour)
		w.expect("")
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := strings.Join(w.errs, ", "); got != "a: .election/job: its data have format 2: this version reads format 1" {
			t.Errorf("%q", got)
		}
	})
}

// An answer that is lost without a sign, or news, doesn't keep a candidate from ever hearing whether it may lead.
func TestAnswersThatAreLostWithoutASign(t *testing.T) {
	for _, lost := range []faulty.Kind{faulty.Get, faulty.Push} {
		t.Run(string(lost), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "op", Since: time.Now()}); err != nil {
					t.Fatal(err)
				}
				first := true
				w.candidate("a", election.Options{}, func(p *process) {
					p.plan = func(op faulty.Op) faulty.Fault {
						if op.Key != ".election/job" && op.Record.Key != ".election/job" || op.Kind != lost || !first {
							return faulty.Fault{}
						}
						first = false
						return faulty.Fault{LoseReply: true, Silent: true}
					}
				})
				time.Sleep(ttl / 10)
				if err := election.Resume(t.Context(), w.st, "job", ""); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * ttl / 2)
				w.expect("a leads")
				if first {
					t.Error("nothing was lost")
				}
			})
		})
	}
}

// A transfer is one write: the successor leads within a push, and nobody else comes in between.
func TestTransfer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		for _, name := range []string{"b", "c", "d"} {
			w.candidate(name, election.Options{})
			time.Sleep(time.Second)
		}
		w.told()
		l := w.leader()
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: l.Token - 1, To: "c", By: "ada"}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("another term: %v", err)
		}
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: l.Token, To: "x", By: "ada"}); !errors.Is(err, election.ErrNoCandidate) {
			t.Errorf("nobody: %v", err)
		}
		w.candidate("never", election.Options{Eligible: func() bool { return false }})
		time.Sleep(time.Second)
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: l.Token, To: "never", By: "ada"}); !errors.Is(err, election.ErrNoCandidate) {
			t.Errorf("one that may not lead: %v", err)
		}
		start := time.Now()
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: l.Token, To: "c", By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		w.expect("a stopped, c leads")
		if took := time.Since(start); took > time.Second {
			t.Errorf("%v", took)
		}
		now := w.leader()
		if now.Token <= l.Token || !strings.HasPrefix(now.Owner, "c/") {
			t.Errorf("%+v", now)
		}
		// Without a successor anybody else is next.
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: now.Token, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := w.told(); strings.HasSuffix(got, "c leads") || !strings.HasPrefix(got, "c stopped") {
			t.Error(got)
		}
	})
}

// An order that names a successor as nobody can be named is obeyed, and the name released.
func TestOrderThatNamesNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		token := w.leader().Token
		rec, err := w.st.Get(t.Context(), ".election/job")
		if err != nil {
			t.Fatal(err)
		}
		put(t, w.st, rec.Key, strings.Replace(string(rec.Data), `{`, fmt.Sprintf(`{"order":{"token":%d,"to":"\t"},`, token), 1))
		time.Sleep(time.Second)
		w.expect("a leads, a stopped, a leads")
		rec, err = w.st.Get(t.Context(), "job")
		if err != nil || len(rec.Past) != 1 || rec.Past[0].Token != token || rec.Past[0].Why != "released" {
			t.Errorf("%+v, %v", rec.Past, err)
		}
	})
}

// FailBack.After counts from when a preferred candidate has come last, and not from when there was one before.
func TestFailBackCountsFromTheLastComing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{FailBack: election.FailBack{After: time.Minute}})
		time.Sleep(time.Second)
		var away atomic.Bool
		w.candidate("b", election.Options{Priority: 1, Eligible: func() bool { return !away.Load() }})
		for _, gone := range []bool{false, true, false} {
			away.Store(gone)
			time.Sleep(40 * time.Second)
		}
		w.expect("a leads")
		time.Sleep(40 * time.Second)
		w.expect("a stopped, b leads")
	})
}

// A leader gives way to who is preferred to itself, whatever its own priority is.
func TestALeaderComparesWithItsOwnPriority(t *testing.T) {
	for other, want := range map[int]string{3: "a leads", 5: "a leads", 6: "a leads, a stopped, b leads"} {
		inWorld(t, func(t *testing.T, w *world) {
			w.candidate("a", election.Options{Priority: 5, FailBack: election.FailBack{After: time.Second}})
			time.Sleep(time.Second)
			w.candidate("b", election.Options{Priority: other})
			time.Sleep(time.Minute)
			w.expect(want)
		})
	}
}

// Who has stopped for a pause leads again as soon as that ends: it leaves the name to nobody.
func TestWhoStoppedForAPauseDoesNotYield(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{Priority: 1})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		w.pauseBy("ada", 0)
		time.Sleep(time.Second)
		w.expect("a leads, a stopped")
		if err := election.Resume(t.Context(), w.st, "job", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl / 3)
		w.expect("a leads")
	})
}

func TestFailBack(t *testing.T) {
	for name, c := range map[string]struct {
		opts   election.Options
		better election.Options
		after  time.Duration // 0: never
	}{
		"never":      {election.Options{}, election.Options{Priority: 5}, 0},
		"after":      {election.Options{FailBack: election.FailBack{After: time.Minute}}, election.Options{Priority: 5}, time.Minute},
		"equal":      {election.Options{FailBack: election.FailBack{After: time.Minute}}, election.Options{}, 0},
		"idle":       {election.Options{FailBack: election.FailBack{Idle: func() bool { return true }}}, election.Options{Priority: 1}, time.Second},
		"busy":       {election.Options{FailBack: election.FailBack{Idle: func() bool { return false }}}, election.Options{Priority: 1}, 0},
		"minimum":    {election.Options{FailBack: election.FailBack{After: time.Second}, MinHold: 3 * time.Minute}, election.Options{Priority: 5}, 170 * time.Second},
		"zone":       {election.Options{Zone: "b", Zones: []string{"a"}, Priority: 9, FailBack: election.FailBack{After: time.Minute}}, election.Options{Zone: "a"}, time.Minute},
		"ineligible": {election.Options{FailBack: election.FailBack{After: time.Minute}}, election.Options{Priority: 5, Eligible: func() bool { return false }}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.candidate("a", c.opts)
				time.Sleep(10 * time.Second)
				w.candidate("b", c.better)
				if c.after != time.Second {
					time.Sleep(time.Second)
					w.expect("a leads")
				}
				if c.after > 2*time.Second {
					time.Sleep(c.after - 3*time.Second)
					w.expect("")
				}
				time.Sleep(20 * time.Second)
				switch c.after {
				case 0:
					time.Sleep(time.Hour)
					w.expect("")
				case time.Second:
					w.expect("a leads, a stopped, b leads")
				default:
					w.expect("a stopped, b leads")
				}
			})
		})
	}
}

func TestEligibility(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		well := true
		w.candidate("a", election.Options{Eligible: func() bool { mu.Lock(); defer mu.Unlock(); return well }})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		mu.Lock()
		well = false
		mu.Unlock()
		time.Sleep(ttl)
		w.expect("a leads, a stopped, b leads")
		state, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil || len(state.Candidates) != 2 || !state.Candidates[0].Ineligible {
			t.Errorf("%+v, %v", state, err)
		}
	})
}

// Those who are gone are no candidates: neither who ended, nor who died.
func TestCandidatesThatAreGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		b, c := w.candidate("b", election.Options{}), w.candidate("c", election.Options{})
		time.Sleep(time.Minute)
		names := func() string {
			state, err := election.ReadState(t.Context(), w.st, "job")
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, c := range state.Candidates {
				all = append(all, c.Name)
			}
			return strings.Join(all, ",")
		}
		if n := len(names()); n != len("a,b,c") {
			t.Errorf("%s", names())
		}
		b.end()
		c.Cut()
		time.Sleep(3 * ttl)
		if names() != "a" {
			t.Errorf("%s", names())
		}
	})
}
