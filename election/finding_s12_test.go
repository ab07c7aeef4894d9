package election_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/drive"
)

// Whatever ended a term, its leader has not stopped before OnStartedLeading has returned: until then OnStoppedLeading isn't called, the
// candidate doesn't stand again, and Run doesn't return.
func TestFinding_S12_ATermIsNotOverBeforeItsLeaderHasReturned(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, a *process, term election.Term){
		"told to stop": func(_ *testing.T, _ *world, a *process, _ election.Term) { a.stop(errEnd) },
		"cut off":      func(_ *testing.T, _ *world, a *process, _ election.Term) { a.Cut() },
		"broken": func(t *testing.T, w *world, _ *process, term election.Term) {
			if _, err := drive.Break(t.Context(), w.st, "job", drive.EndTerm{By: "ada", Token: term.Token}); err != nil {
				t.Error(err)
			}
		},
		"paused": func(t *testing.T, w *world, _ *process, _ election.Term) {
			if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Since: time.Now()}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				release, terms := make(chan struct{}), make(chan election.Term, 100)
				a := w.candidate("a", election.Options{}, func(p *process) {
					p.work = func(_ context.Context, term election.Term) {
						terms <- term
						<-release
					}
				})
				term := <-terms
				end(t, w, a, term)
				time.Sleep(20 * ttl)
				if got := a.traced(); got != "told,stuck" {
					t.Errorf("%q, while the leader works on; want told,stuck", got)
				}
				if len(terms) > 0 {
					t.Error("leads again, while the leader of the term before works on")
				}
				select {
				case <-a.done:
					t.Error("Run has returned while the leader works on")
				default:
				}
				a.Heal()
				a.stop(errEnd)
				close(release)
				<-a.done
			})
		})
	}
}

// When Run returns, nothing of it is running: not even a question about eligibility that takes long. Its candidate is off the list, and
// its session closed.
func TestFinding_S12_RunLeavesNothingBehind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asked, answer := make(chan struct{}), make(chan struct{})
		n := 0
		a := w.candidate("a", election.Options{Eligible: func() bool {
			if n++; n == 3 {
				close(asked)
				<-answer
			}
			return true
		}})
		<-asked
		state, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil || len(state.Candidates) != 1 {
			t.Fatalf("%+v, %v", state, err)
		}
		a.stop(errEnd)
		time.Sleep(10 * ttl)
		select {
		case <-a.done:
			t.Error("Run has returned while Eligible is asked")
		default:
		}
		close(answer)
		<-a.done
		after, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil || len(after.Candidates) != 0 {
			t.Errorf("%+v, %v: want an empty list", after, err)
		}
		session, err := w.st.Get(t.Context(), state.Candidates[0].Session)
		if err != nil || session.Owner != "" {
			t.Errorf("%+v, %v: want a session that is closed", session, err)
		}
	})
}
