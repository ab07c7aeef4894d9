package election_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store/faulty"
)

// A reading of the control record whose answer is late doesn't undo what was heard meanwhile: a pause, here, that was set after the
// reading that confirms a term, and told before it was answered.
func TestLateAnswerUndoesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		slow, delayed := false, 0
		a := w.candidate("a", election.Options{}, func(p *process) {
			p.plan = func(op faulty.Op) faulty.Fault {
				if !slow || op.Kind != faulty.Get || op.Key != ".election/job" {
					return faulty.Fault{}
				}
				delayed++
				return faulty.Fault{ReplyDelay: 2 * time.Second}
			}
		})
		time.Sleep(time.Second)
		a.mu.Lock()
		slow = true
		a.mu.Unlock()
		b.end()
		time.Sleep(time.Second)
		w.expect("b leads, b stopped") // a has the name, and waits for the answer that confirms its term
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl / 2)
		w.expect("")
		if l := w.leader(); l.Owner != "" {
			t.Errorf("it is paused, and held: %+v", l)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if delayed == 0 {
			t.Error("no answer was late: this test shows nothing")
		}
	})
}
