package lease

import (
	"log/slog"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// State is where a lease stands.
type State string

// The states. The last two are final.
const (
	StateHeld     State = "held"
	StateJeopardy State = "jeopardy" // a renewal failed; still valid, and retried fast
	StateLost     State = "lost"
	StateReleased State = "released" // its holder released it or handed it over
)

// Event is a change of a lease's state.
type Event struct {
	Name   string
	Token  fence.Token
	Holder string // the owner id
	State  State
	Left   time.Duration // the validity that was left then
	Err    error         // in jeopardy, what failed; when lost, a *LostError
}

// LogValue implements [slog.LogValuer]. The value is that of the term's [fence.Sequencer], with
// state, left in seconds, and error:
//
//	OnEvent: func(e lease.Event) { log.Info("the lease has changed", "lease", e) }
func (e Event) LogValue() slog.Value {
	attrs := fence.Sequencer{Name: e.Name, Token: e.Token, Holder: e.Holder}.LogValue().Group()
	attrs = append(attrs, slog.String("state", string(e.State)), slog.Float64("left", max(e.Left, 0).Seconds()))
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	return slog.GroupValue(attrs...)
}

// eventBuffer is how many events a lease keeps for a reader that is slow. The last place is for the
// final event.
const eventBuffer = 16

// stream is the ordered path of one lease's events. It is used by one goroutine at a time.
type stream struct {
	c      chan Event
	state  State
	passes bool // the dispatcher takes the events, too
	trace  *TermTrace
}

// emit passes e on if it is news. An event is left out when the reader is far behind; the final one
// never is.
func (s *stream) emit(e Event, d *dispatcher) {
	if e.State == s.state {
		return
	}
	s.state = e.State
	s.trace.event(e)
	final := e.State == StateLost || e.State == StateReleased
	if s.passes {
		d.pass(e, final)
	}
	if s.c == nil {
		return
	}
	if final || len(s.c) < cap(s.c)-1 {
		s.c <- e
	}
	if final {
		close(s.c)
	}
}
