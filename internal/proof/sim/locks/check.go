package locks

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/sim/linear"
)

// Counts says what is in a history; Freed are the shares that are known to have been taken back,
// Settled the given up ones that are known to be gone, Traded the writers that became readers.
type Counts struct{ Granted, Refused, GivenUp, Freed, Settled, Traded int }

// Counts returns what was recorded.
func (h *History) Counts() Counts {
	h.mu.Lock()
	defer h.mu.Unlock()
	var n [turnOver + 1]int
	for _, o := range h.ops {
		n[o.kind]++
	}
	return Counts{n[grant], n[refusal], n[givenUp], n[freed], n[settled], n[traded]}
}

// Check returns an error when what was seen can't have been a lock, that says how far an order can
// be found, or one that matches [linear.ErrUnsettled] when the search took longer than limit. No
// call may be under way.
func (h *History) Check(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ops []porcupine.Operation
	for _, o := range h.ops {
		ops = append(ops, porcupine.Operation{ClientId: o.client, Input: o, Call: o.called, Return: o.returned})
	}
	return linear.Search(porcupine.Model{
		Init: func() any { return state{limit: h.limit} },
		Step: func(s, in, _ any) (bool, any) { return in.(*op).step(s.(state)) },
	}, ops, limit)
}

// maxSlots is more than lock.MaxShares.
const maxSlots = 128

// state is a lock. All but slots and last are weights. Of the shares that nobody relies on any more
// it knows only how much they may still take: one that has to be gone, because another one was
// granted, can't be told from its like.
type state struct {
	limit     int
	used      int // by holders
	lingering int // what is not used, and may be taken all the same, at most
	// What those may take that nobody relies on any more and that are not known to be gone.
	unfreed  int
	doubtful int // shares that were given up
	turns    int // that may be taken
	slots    [maxSlots / 64]uint64
	last     fence.Token // that was granted
	ended    int64       // when the last share ended
	gone     int64       // what had ended by then is gone
}

// slotted reports whether holders have slots of their own: those of a semaphore have.
func (s state) slotted() bool { return s.limit > 1 && s.limit < Writer }

// step returns the state that follows s when o happens, or that o can't happen then.
func (o *op) step(s state) (bool, any) {
	word, bit := o.slot/64, uint64(1)<<(o.slot%64)
	switch o.kind {
	case grant:
		if s.used+o.weight > s.limit || o.token <= s.last || s.slotted() && s.slots[word]&bit != 0 {
			return false, s
		}
		s.used += o.weight
		if s.lingering = min(s.lingering, s.limit-s.used); s.lingering == 0 {
			s.unfreed, s.gone = 0, s.ended
		}
		s.slots[word] |= bit
		s.last = o.token
	case traded:
		if s.used != Writer || o.token <= s.last {
			return false, s
		}
		s.used, s.last = o.weight, o.token
	case refusal:
		excuses := s.used + s.lingering + s.doubtful
		if o.inTurn { // its own turn is no excuse
			excuses += s.turns - o.weight
		}
		return excuses+o.weight > s.limit, s
	case givenUp:
		s.doubtful += o.weight
	case ended:
		s.used -= o.weight
		s.unfreed += o.weight
		s.lingering += o.weight
		s.ended = max(s.ended, o.ended)
		s.slots[word] &^= bit
	case freed:
		if o.ended > s.gone {
			s.unfreed -= o.weight
			s.lingering = min(s.lingering, s.unfreed)
		}
	case settled:
		s.doubtful -= o.weight
	case turn:
		s.turns += o.weight
	case turnOver:
		s.turns -= o.weight
	}
	return true, s
}
