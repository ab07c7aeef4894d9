package linear

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Len returns how many operations were recorded.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, l := range h.keys {
		n += len(l.ops)
	}
	return n
}

// Check returns an error when the history isn't linearizable, that says how far an order can be
// found, or one that matches [ErrUnsettled] when a key took longer than limit. No operation may be
// under way. A history that was checked can go on.
func (h *History) Check(limit time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(h.keys)) {
		if err := h.keys[key].check(limit); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (l *log) add(o op) {
	l.ops = append(l.ops, o)
	if o.kind == put {
		l.wrote(o)
	}
	l.hear(o.version, o.seen)
}

// hear takes down that a version was made by the write of that nonce.
func (l *log) hear(version, nonce string) {
	if version == "" {
		return
	}
	if before, ok := l.heard[version]; ok && before != nonce && l.flaw == nil {
		l.flaw = fmt.Errorf("version %q was made by two writes, %q and %q", version, before, nonce)
	}
	l.heard[version] = nonce
}

// wrote takes down a write that was tried.
func (l *log) wrote(o op) {
	over, again := l.writes[o.nonce]
	if (o.nonce == "" || again && over != o.over) && l.flaw == nil {
		l.flaw = fmt.Errorf("can't be checked: nonce %q of %v is not its own", o.nonce, o)
	}
	l.writes[o.nonce] = o.over
}

func (l *log) check(limit time.Duration) error {
	if l.flaw != nil {
		return l.flaw
	}
	return Search(model, l.settled(), limit)
}

// settled returns the operations for the search, without the doubts about Puts that their nonces
// settle. One whose nonce nobody ever heard changed nothing that anybody saw: to replace its
// version, one has to have heard of it. Of several requests of one Put, at most one lands, unless
// the record was deleted in between: one that is known to have, or else any of those of unknown
// outcome, at some instant after the earliest.
func (l *log) settled() []porcupine.Operation {
	seen, reported := map[string]bool{}, map[string]bool{}
	for _, nonce := range l.heard {
		seen[nonce] = true
	}
	earliest, removed := map[string]int64{}, false
	for _, o := range l.ops {
		switch {
		case o.kind == remove:
			removed = true
		case o.kind == put && o.outcome == done:
			reported[o.nonce] = true
		case o.outcome == unknown:
			if t, again := earliest[o.nonce]; !again || o.called < t {
				earliest[o.nonce] = o.called
			}
		}
	}
	var ops []porcupine.Operation
	for _, o := range l.ops {
		if o.kind == put && o.outcome == unknown {
			once := o.over != "" || !removed
			if !seen[o.nonce] || once && (reported[o.nonce] || o.called != earliest[o.nonce]) {
				continue
			}
			if once {
				o.outcome = landed
			}
		}
		o.before = l.heard[o.over]
		ops = append(ops, porcupine.Operation{ClientId: o.client, Input: o, Call: o.called, Return: o.returned})
	}
	return ops
}

// state is one record. Its version is "" until an answer has told it.
type state struct {
	stored         bool
	nonce, version string
}

var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(s, in, _ any) (bool, any) { return in.(op).step(s.(state)) },
}

// step returns the state that follows s when o happens, or that o can't happen then. One that never
// happens comes last.
func (o op) step(s state) (bool, any) {
	after := state{stored: o.kind == put, nonce: o.nonce, version: o.version}
	fits := s.is(o.over, o.before)
	switch {
	case o.outcome == conflict: // but not with the very version that it demanded
		ok, shown := s.shown(o)
		return ok && o.version != o.over, shown
	case o.outcome == done && o.kind == get:
		return s.shown(o)
	case o.outcome == done:
		return fits && (o.kind == remove || o.seen == o.nonce && o.version != ""), after
	case o.outcome == missing:
		return !s.stored && (o.kind != put || o.over != ""), s
	case fits:
		return true, after
	}
	return o.outcome == unknown, s
}

// is reports whether s has that version; before is its nonce. The version "" is that of a key that
// is not stored.
func (s state) is(version, before string) bool {
	switch {
	case !s.stored || version == "":
		return !s.stored && version == ""
	case s.version == "":
		return before == s.nonce
	}
	return version == s.version
}

// shown returns what follows when an answer shows the record of o, or that s can't be that.
func (s state) shown(o op) (bool, any) {
	if !s.stored || o.version == "" || s.nonce != o.seen || (s.version != "" && s.version != o.version) {
		return false, s
	}
	s.version = o.version
	return true, s
}

func (o op) String() string {
	what := [...]string{"gets", "puts", "removes"}[o.kind]
	switch o.kind {
	case put:
		what += fmt.Sprintf(" %q over version %q", o.nonce, o.over)
	case remove:
		what += fmt.Sprintf(" version %q", o.over)
	}
	came := [...]string{"done", "not found", "conflict", "outcome unknown", "outcome unknown, but it landed"}[o.outcome]
	if o.version != "" {
		came += fmt.Sprintf(", version %q by %q", o.version, o.seen)
	}
	until := fmt.Sprint(o.returned)
	if o.outcome >= unknown {
		until = "…"
	}
	return fmt.Sprintf("[%d–%s] client %d %s: %s", o.called, until, o.client, what, came)
}
