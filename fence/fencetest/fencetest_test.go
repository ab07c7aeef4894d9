package fencetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// register is a guarded resource in memory, with the faults that the tests put in.
type register struct {
	mu      sync.Mutex
	mark    fence.Mark
	log     []fence.Token
	blind   bool                                          // it checks nothing
	ignores bool                                          // it doesn't compare holders
	refuse  bool                                          // it refuses everything
	silent  bool                                          // it acknowledges what it doesn't do
	writes  bool                                          // what it refuses as well
	forgets bool                                          // its mark, in a restart
	less    func(a, b fence.Token) bool                   // how it compares tokens
	says    func(stale fence.StaleError) fence.StaleError // how it tells of a refusal
}

func (r *register) write(_ context.Context, s fence.Sequencer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.admit(s)
	if err == nil && !r.silent || err != nil && r.writes {
		r.log = append(r.log, s.Token)
	}
	return err
}

func (r *register) admit(s fence.Sequencer) error {
	holder := s.Holder
	if r.ignores {
		holder = r.mark.Holder
	}
	_, err := r.mark.Admit(s.Name, holder, s.Token)
	refused := err != nil
	if r.less != nil {
		refused = r.less(s.Token, r.mark.Token) || s.Token == r.mark.Token && s.Holder != r.mark.Holder
	}
	stale := fence.StaleError{Name: s.Name, Got: s.Token, Current: r.mark.Token, Holder: r.mark.Holder}
	switch {
	case r.blind:
		return nil
	case !refused && !r.refuse:
		r.mark = fence.Mark{Token: s.Token, Holder: s.Holder}
		return nil
	case r.says != nil:
		stale = r.says(stale)
	}
	return &stale
}

func (r *register) written() []fence.Token {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

func (r *register) reopen() {
	if r.forgets {
		r.mark = fence.Mark{}
	}
}

func tell(t *testing.T, r *register) error {
	s := &story{ctx: t.Context(), name: "n", write: r.write, opts: Options{Reopen: r.reopen, Written: r.written}}
	for _, first := range starts {
		if err := s.tell(first); err != nil {
			return err
		}
	}
	return nil
}

func TestStory(t *testing.T) {
	r := &register{}
	Story(t, r.write, Options{Reopen: r.reopen, Written: r.written})
}

func TestStoryFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		guard *register
		says  string
	}{
		{"no guard", &register{blind: true}, "R1 of its first term, which arrives when A holds the lease again (token 1) was done"},
		{"refuses all", &register{refuse: true}, "B's R2 (token 2) was not done"},
		{"holders not compared", &register{ignores: true}, "a request of B under A's token"},
		{"nothing is done", &register{silent: true}, "after B's R2 the resource was written under the tokens []: want [2]"},
		{"refusals are done", &register{writes: true}, "the resource was written under the tokens"},
		{"mark not durable", &register{forgets: true}, "after a restart of the guard: A's R1"},
		{"tokens compared as text", &register{less: func(a, b fence.Token) bool { return a.String() < b.String() }}, "B's R2 (token 10) was not done"},
		{"tokens cut to 32 bits", &register{less: func(a, b fence.Token) bool { return uint32(a) < uint32(b) }}, "R0, in its first term (token 1767226111909) was not done"},
		{"tokens rounded", &register{less: func(a, b fence.Token) bool { return float32(a) < float32(b) }}, "was done: it has to be refused"},
		{"another name", &register{says: func(e fence.StaleError) fence.StaleError { e.Name = "x"; return e }}, "want it to name"},
		{"not what was refused", &register{says: func(e fence.StaleError) fence.StaleError { e.Got++; return e }}, "want it to name"},
		{"not whose it is", &register{says: func(e fence.StaleError) fence.StaleError { e.Holder = ""; return e }}, "want it to name"},
	} {
		if err := tell(t, c.guard); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

func TestRace(t *testing.T) {
	r := &register{}
	Race(t, r.write, r.written)
}

func TestRaceFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		guard *register
		says  string
	}{
		{"no guard", &register{blind: true}, "a write came after one of a later term"},
		{"refuses all", &register{refuse: true}, "the newest write"},
		{"nothing is done", &register{silent: true}, "and acknowledged"},
	} {
		r := &race{name: "n", write: c.guard.write}
		err := r.run(t.Context())
		if err == nil {
			err = r.judge(c.guard.written())
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}
