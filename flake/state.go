package flake

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// state is time and sequence in one number that only rises: time<<seqBits | sequence. Each number
// that is taken is an id.
type state struct {
	simple bool // an id has up to 64 bits, and time and sequence aren't reversed
	// A long id begins with sequence and time, both reversed: with a number in reverse, in its
	// first 64 bits.
	leading   bool
	trailing  bool // metadata are in the last 32 bits of such an id
	seqBits   uint8
	timeShift uint8
	seqShift  uint8
	mask      uint64 // of the sequence
	node      word   // in its place
	nodeFirst uint64 // the first bytes of it in a long id, as they are written
	nodeLast  uint32 // and the last
	metaMax   uint64 // the highest metadata
	metaShift uint8
	spare     uint8 // bits that an id has less than 96

	layout Layout
	rolls  bool // the sequence goes on from unit to unit of time
	window Window
	begin  uint64 // the first number
	opts   Options
	stale  *time.Timer

	ceiling atomic.Uint64 // numbers below it are in the window, as far as it is known

	// What every call touches. One is written by all, the other only read, so they are on cache
	// lines of their own, and not on neighbours, which processors fetch together.
	_     [128]byte
	next  atomic.Uint64 // the number to be taken next; with the bit halted once it is stopped
	_     [120]byte
	limit atomic.Uint64 // numbers below it can be taken without a look at the clock; 0 for none
	_     [120]byte
}

// halted is a bit above every number that a layout has.
const halted = 1 << 63

// refresh is how many ids are made at most before the clock is read again, should the timer be
// late.
const refresh = 1 << 14

func newState(l Layout, node uint64, w Window, o Options) *state {
	timed, sequence := l.parts[Time], l.parts[Sequence]
	s := &state{
		simple:  l.bits <= 64 && !timed.reversed && !sequence.reversed,
		seqBits: uint8(sequence.bits), timeShift: uint8(timed.shift), seqShift: uint8(sequence.shift), mask: sequence.max(),
		leading: timed.reversed && sequence.reversed && sequence.shift+sequence.bits == uint(l.bits) &&
			timed.shift+timed.bits == sequence.shift && timed.shift >= maxBits-64,
		spare:  uint8(maxBits - l.bits),
		node:   l.parts[Node].put(node),
		layout: l, rolls: !l.Ordered(), window: w, opts: o.withDefaults(&l, w),
	}
	s.nodeFirst, s.nodeLast = bits.ReverseBytes64(s.node.hi<<32|s.node.lo>>32), bits.ReverseBytes32(uint32(s.node.lo))
	metadata := l.parts[Metadata]
	s.metaMax, s.metaShift = metadata.max(), uint8(metadata.shift)
	s.trailing = s.leading && metadata.shift+metadata.bits <= 32 && !metadata.reversed
	s.begin = l.tickFrom(w.Floor()) << s.seqBits
	if s.rolls {
		// Programs that make few ids each must not all begin in the same partition.
		s.begin |= rand.Uint64() & s.mask
	}
	s.next.Store(s.begin)
	s.stale = time.AfterFunc(time.Hour, func() { s.limit.Store(0) })
	s.stale.Stop()
	return s
}

// pack makes an id of a number, without metadata.
func (s *state) pack(n uint64) word {
	if s.simple {
		return s.packSimple(n)
	}
	timed, sequence := &s.layout.parts[Time], &s.layout.parts[Sequence]
	if timed.reversed && sequence.reversed { // both at once
		n = bits.Reverse64(n)
		return sequence.at(n >> (64 - sequence.bits)).or(timed.at(n << sequence.bits >> (64 - timed.bits))).or(s.node)
	}
	return timed.put(n >> s.seqBits).or(sequence.put(n & s.mask)).or(s.node)
}

// packSimple is pack where the layout is simple. The shifts are below 64, which the compiler can't
// know.
func (s *state) packSimple(n uint64) word {
	return word{0, n>>(s.seqBits&63)<<(s.timeShift&63) | n&s.mask<<(s.seqShift&63) | s.node.lo}
}

// leadingID is pack where the layout is leading. It reverses the bits in each byte only: the order
// in which they are written does the rest of it.
func (s *state) leadingID(id *ID96, n uint64) {
	n <<= s.spare & 63
	n = n>>1&0x5555555555555555 | n&0x5555555555555555<<1
	n = n>>2&0x3333333333333333 | n&0x3333333333333333<<2
	n = n>>4&0x0f0f0f0f0f0f0f0f | n&0x0f0f0f0f0f0f0f0f<<4
	binary.LittleEndian.PutUint64(id[:8], n|s.nodeFirst)
	binary.LittleEndian.PutUint32(id[8:], s.nodeLast)
}

// trailingID is leadingID with metadata, where these are trailing.
func (s *state) trailingID(id *ID96, n, metadata uint64) {
	s.leadingID(id, n)
	last := uint32(metadata << (s.metaShift & 31))
	binary.LittleEndian.PutUint32(id[8:], s.nodeLast|bits.ReverseBytes32(last))
}

// noNumber is none.
const noNumber = 1<<64 - 1

// step takes a number without a look at the clock, if that was read lately; ok says that it can be
// used. One that can't be used yet is the caller's all the same: take waits for its time. It is
// noNumber if the clock has to be read first.
func (s *state) step() (n uint64, ok bool) {
	limit := s.limit.Load()
	if limit == 0 {
		return noNumber, false
	}
	n = s.next.Add(1)
	return n - 1, n <= limit
}

// take takes up to n numbers, one at least, and returns the first and how many: mine, if the caller
// has one whose time isn't over, else what is next, after it has pushed the state up to the clock.
// Where the state is too far ahead, it waits, without a hold on anything.
func (s *state) take(n, mine uint64) (first, count uint64, err error) {
	for waited := time.Duration(0); ; {
		now := s.opts.Now()
		old := s.next.Load()
		if old >= halted {
			return 0, 0, ErrStopped
		}
		if first = mine; mine == noNumber || s.ticks(now, 0) > mine>>s.seqBits {
			mine, first = noNumber, s.pushed(old, now)
		}
		limit, room := s.room(first, now)
		if first < limit {
			count = min(n, limit-first)
			if mine == noNumber && !s.next.CompareAndSwap(old, first+count) {
				continue
			}
			s.publish(min(limit, first+count+refresh))
			return first, count, nil
		}
		s.limit.Store(0) // no more steps beyond it
		if room != nil {
			return 0, 0, room
		}
		wait, ahead := s.wait(first, now)
		if waited+wait > s.opts.MaxWait {
			return 0, 0, &AheadError{ahead, s.opts.MaxAhead}
		}
		time.Sleep(wait)
		waited += wait
	}
}

// pushed returns the next number when it is now.
func (s *state) pushed(next uint64, now time.Time) uint64 {
	tick := s.ticks(now, 0)
	if tick <= next>>s.seqBits {
		return next
	}
	first := tick << s.seqBits
	if s.rolls {
		first |= next & s.mask
	}
	return first
}

// room returns the number before which one has to be to be taken now. If the reason is the window,
// or the end of the layout, it is that error for first.
func (s *state) room(first uint64, now time.Time) (limit uint64, err error) {
	end := s.layout.ticks << s.seqBits
	if first >= end {
		return 0, &ExhaustedError{s.layout.Name(), s.layout.Exhausted()}
	}
	ceiling := s.ceiling.Load()
	if first >= ceiling {
		told := s.window.Ceiling()
		ceiling = s.raise(s.layout.tickFrom(told) << s.seqBits)
		if first >= ceiling {
			return 0, &WindowError{s.nodeNumber(), s.window.Floor(), told, s.layout.start(int64(first >> s.seqBits))}
		}
	}
	return min(ceiling, s.ticks(now, 1+int64(s.opts.MaxAhead/s.layout.spec.Unit))<<s.seqBits), nil
}

// ticks returns the unit of time at now, or so many units later, from 0 to the end of the layout.
func (s *state) ticks(now time.Time, later int64) uint64 {
	return min(uint64(max(s.layout.tick(now)+later, 0)), s.layout.ticks)
}

// raise makes the ceiling n, unless it is higher already.
func (s *state) raise(n uint64) uint64 {
	for {
		old := s.ceiling.Load()
		if n <= old {
			return old
		}
		if s.ceiling.CompareAndSwap(old, n) {
			return n
		}
	}
}

func (s *state) nodeNumber() uint64 { return s.layout.parts[Node].get(s.node) }

// wait returns how long it is until first can be taken, and how far ahead that is of the clock.
func (s *state) wait(first uint64, now time.Time) (wait, ahead time.Duration) {
	unit := s.layout.spec.Unit
	ahead = s.layout.start(int64(first >> s.seqBits)).Sub(now)
	return max(ahead-s.opts.MaxAhead.Truncate(unit), 0), ahead
}

// publish lets numbers below limit be taken without a look at the clock, for Lag.
func (s *state) publish(limit uint64) {
	if s.opts.Lag < 0 {
		return
	}
	s.limit.Store(limit)
	s.stale.Reset(s.opts.Lag)
}

// issued returns a number above all that were taken, by a few at most.
func (s *state) issued() uint64 { return s.next.Load() &^ halted }

func (s *state) used() time.Time {
	n := s.issued()
	tick := n >> s.seqBits
	if n != s.begin {
		// Up from a unit that has begun. Steps beyond the ceiling were not taken.
		tick = min((n+s.mask)>>s.seqBits, s.ceiling.Load()>>s.seqBits)
	}
	return s.layout.start(int64(tick))
}

func (s *state) stop() {
	s.next.Or(halted)
	s.limit.Store(0)
	s.stale.Stop()
}
