// Package locks records what programs see of a lock, and checks that it is one: that there is an
// order of what they saw, each at an instant between its call and its return, in which a weighted
// semaphore or a read/write lock that knows everything at once would have granted and refused so.
//
//	h := locks.Semaphore(5)
//	call := h.Call(client, weight)
//	… // acquire
//	share := call.Granted(token, slot) // or call.Refused(), or call.GivenUp()
//	…
//	share.End()   // before it is released, or when its validity ends
//	… // release
//	share.Freed() // when that is known to be done, or the session is known to be over
//	err := h.Check(time.Minute)
//
// A share counts from its grant until its holder has stopped to rely on it. After that the lock may
// take it back at any instant, until it is known to have: for a dead holder when its session is
// closed. An acquisition that was given up may have been granted for a while, or never: it excuses
// refusals until it is settled, by the end of its session, too. After that nobody may be refused
// for its sake. Tokens have to rise with every grant, and no two holders have one slot.
//
// The search for an order is that of package linear.
package locks

import (
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/fence"
)

// Writer is the weight of a writer, who takes the whole of a read/write lock. A reader's is 1.
const Writer = 1 << 30

// History is what the users of one lock saw, in the order in which this process made their calls
// and got their answers. It is safe for concurrent use.
type History struct {
	limit int // of the weights of all holders

	mu     sync.Mutex
	events int64 // calls and returns so far: the clock of the history
	ops    []*op
}

// Semaphore returns the empty history of a weighted semaphore; of a mutex, when the limit is 1.
func Semaphore(limit int) *History { return &History{limit: limit} }

// RWMutex returns the empty history of a read/write lock.
func RWMutex() *History { return &History{limit: Writer} }

type kind uint8

const (
	grant   kind = iota // a share was granted
	refusal             // it was not to be had
	givenUp             // a share that may be granted from now on, or never
	ended               // the holder of a share has stopped to rely on it
	freed               // it is known to have been taken back
	settled             // one that was given up is known not to be granted, and never to be
	// The writer, who held it until then, became a reader: nobody else held it in between.
	traded
	turn     // a turn that may be taken from now on
	turnOver // it is known to have been given back
)

// op is one thing that was seen. It took from its call to its return; what happens at an instant
// has the two side by side.
type op struct {
	kind   kind
	id     int // of the acquisition: the instant of its call
	client int
	weight int
	token  fence.Token
	slot   int
	ended  int64 // when the share ended, if it has
	inTurn bool  // it takes a turn before the share

	called, returned int64
}

func (o *op) String() string {
	share := fmt.Sprintf("share %d", o.id)
	if o.weight == Writer {
		share += " (a writer's)"
	} else {
		share += fmt.Sprintf(" (weight %d)", o.weight)
	}
	what := [...]string{"is granted", "is refused", "is given up", "is not relied on any more", "has been taken back", "is known to be gone", "becomes a reader's", "may be in turn", "has had its turn"}[o.kind]
	if o.kind == grant || o.kind == traded {
		what += fmt.Sprintf(" slot %d, token %d", o.slot, o.token)
	}
	return fmt.Sprintf("[%d–%d] client %d: %s %s", o.called, o.returned, o.client, share, what)
}

// Call is an acquisition that is under way. It ends by one of its methods.
type Call struct {
	h *History
	o op
}

// Call takes down that a client, known by a number, wants a share.
func (h *History) Call(client, weight int) *Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.tick()
	return &Call{h, op{client: client, weight: weight, id: int(now), called: now}}
}

// tick returns the time of the history, at which something happens now. h.mu is held.
func (h *History) tick() int64 {
	h.events++
	return h.events
}

// add takes down what was seen. h.mu is held.
func (h *History) add(o op) {
	o.returned = h.tick()
	if o.kind == givenUp || o.kind == turn {
		o.returned = o.called
	}
	h.ops = append(h.ops, &o)
}

func (c *Call) record(k kind) {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.o.kind = k
	c.h.add(c.o)
}

// InTurn says that the acquisition takes a turn before the share itself, as a fair mutex does.
// Until the turn is settled, others that take turns may be refused for its sake, though nobody
// holds the share: the turn is taken before that, and given back after it.
func (c *Call) InTurn() *Doubt {
	c.o.inTurn = true
	c.record(turn)
	return &Doubt{h: c.h, o: c.o, kind: turnOver}
}

// Granted says that the share was granted.
func (c *Call) Granted(token fence.Token, slot int) *Share {
	c.o.token, c.o.slot = token, slot
	c.record(grant)
	return &Share{h: c.h, o: c.o}
}

// Traded is Granted for a reader's share that the holder of a writer's, which has not ended before,
// got in its place.
func (c *Call) Traded(token fence.Token) *Share {
	c.o.token = token
	c.record(traded)
	return &Share{h: c.h, o: c.o}
}

// Refused says that the share was not to be had, and that nobody waited for it before.
func (c *Call) Refused() { c.record(refusal) }

// GivenUp says that nothing is known. If the share was granted, it is being taken back.
func (c *Call) GivenUp() *Doubt {
	c.record(givenUp)
	return &Doubt{h: c.h, o: c.o, kind: settled}
}

// Doubt is an acquisition that was given up, or a turn.
type Doubt struct {
	h    *History
	o    op
	kind kind // of its end
}

// Settled says that nothing of it is left, and that nothing of it will come: its session is over,
// or the turn was given back. It is called once.
func (d *Doubt) Settled() {
	d.h.mu.Lock()
	defer d.h.mu.Unlock()
	d.o.kind, d.o.called = d.kind, d.h.tick()
	d.h.add(d.o)
}

// Share is one that was granted.
type Share struct {
	h *History
	o op
}

// End says that the holder has stopped to rely on it. Only the first time counts.
func (s *Share) End() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.o.ended == 0 {
		s.o.kind, s.o.called = ended, s.h.tick()
		s.o.ended = s.o.called
		s.h.add(s.o)
	}
}

// EndSince is End at some instant since a call was made that was to trade the share, and failed.
func (s *Share) EndSince(c *Call) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.o.kind, s.o.called, s.o.ended = ended, c.o.called, s.h.tick()
	s.h.add(s.o)
}

// Freed says that the share is known to have been taken back. It is called once, after End.
func (s *Share) Freed() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.o.kind, s.o.called = freed, s.h.tick()
	s.h.add(s.o)
}
