// Package fencetest is the test that every guard has to pass: the story that fencing tokens are
// for, told to a real resource.
//
//	func TestStory(t *testing.T) {
//		fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
//			return table.Write(ctx, s, "…") // one write to the guarded resource under that sequencer
//		}, fencetest.Options{})
//	}
//
// R1 is sent in the first term of A and delayed. A loses the lease, B takes it and does R2, and
// loses it back to A. Then R1 arrives: from the very holder of the lease, and yet it must be
// refused.
package fencetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// Write does one write to the guarded resource under s. It returns nil when the write is done. When
// the guard refused it, and nothing was written, it returns an error that has a *[fence.StaleError]
// in its chain.
type Write = func(ctx context.Context, s fence.Sequencer) error

// Options of a [Story]: what else is known of the guard and its resource.
type Options struct {
	// Begin is called before the first write of a term. It tells the source of an online guard that
	// the term has begun. Guards that learn of a term by its writes need none.
	Begin func(s fence.Sequencer)

	// Reopen restarts the guard: what it knows only in memory is gone, and what it has stored is
	// there. Write then uses the new guard.
	Reopen func()

	// Written returns the tokens of all writes that the resource has done in this test, oldest
	// first.
	Written func() []fence.Token
}

// The holders have names that break what puts them into SQL, JSON, Lua or headers without quoting.
const (
	holderA = `web-1/17/a "'\;%$1{}`
	holderB = "web-2/9/ж\n:@,="
)

// starts are the first tokens of the stories that are told one after the other, each over three
// terms: of new names, where text and numbers are in different orders, of this age, and the largest
// that there are.
var starts = []fence.Token{1, 9, 99, 1<<31 - 1, 1767226111909, fence.MaxToken - 2}

// Story plays the story to a guard, several times, and fails t where the guard does anything else
// than it should. The lease has the name of t. The resource must be one that was never written to
// under that name. An equal token of another holder must be refused as well, and after a restart
// all that was refused before it. Story makes some 80 writes.
func Story(t *testing.T, write Write, opts Options) {
	t.Helper()
	s := &story{ctx: t.Context(), name: t.Name(), write: write, opts: opts}
	for _, first := range starts {
		if err := s.tell(first); err != nil {
			t.Fatalf("the story from token %d on: %v", first, err)
		}
	}
}

// story is one that is being told.
type story struct {
	ctx   context.Context
	name  string
	write Write
	opts  Options
	done  []fence.Token // the writes that were done
}

// tell tells the story from a first token on.
func (s *story) tell(first fence.Token) error {
	a1, b2, a3 := s.seq(holderA, first), s.seq(holderB, first+1), s.seq(holderA, first+2)
	s.begin(a1)
	if first != starts[0] { // the first time, R1 is the first request that there is
		if err := s.accept("A's R0, in its first term", a1); err != nil {
			return err
		}
	}
	r1 := a1 // is sent, and delayed
	s.begin(b2)
	err := errors.Join(s.accept("B's R2", b2), s.accept("B's R2 again", b2))
	s.begin(a3)
	return errors.Join(err,
		s.refuse("A's R1 of its first term, which arrives when A holds the lease again", r1, b2, a3),
		s.accept("A's R3, in its second term", a3),
		s.late(a3, r1, b2),
		s.reopened(a3, r1, b2),
		s.accept("A's R4, in its second term", a3),
	)
}

// late sends what must be refused once now has been heard of.
func (s *story) late(now, r1, b2 fence.Sequencer) error {
	return errors.Join(
		s.refuse("A's R1, sent again", r1, now),
		s.refuse("a late request of B's term", b2, now),
		s.refuse("a request of B under A's token", s.seq(holderB, now.Token), now),
		s.refuse("a request of A under B's token", s.seq(holderA, b2.Token), now),
	)
}

func (s *story) reopened(now, r1, b2 fence.Sequencer) error {
	if s.opts.Reopen == nil {
		return nil
	}
	s.opts.Reopen()
	if err := s.late(now, r1, b2); err != nil {
		return fmt.Errorf("after a restart of the guard: %w", err)
	}
	return nil
}

func (s *story) seq(holder string, token fence.Token) fence.Sequencer {
	return fence.Sequencer{Name: s.name, Holder: holder, Token: token}
}

func (s *story) begin(now fence.Sequencer) {
	if s.opts.Begin != nil {
		s.opts.Begin(now)
	}
}

// accept has the guard accept a write.
func (s *story) accept(what string, q fence.Sequencer) error {
	if err := s.write(s.ctx, q); err != nil {
		return fmt.Errorf("%s (token %d) was not done: %w", what, q.Token, err)
	}
	s.done = append(s.done, q.Token)
	return s.written(what)
}

// refuse has the guard refuse a write, and name the term for whose sake it did: one of those.
func (s *story) refuse(what string, q fence.Sequencer, since ...fence.Sequencer) error {
	err := s.write(s.ctx, q)
	var stale *fence.StaleError
	switch {
	case err == nil:
		return fmt.Errorf("%s (token %d) was done: it has to be refused", what, q.Token)
	case !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale):
		return fmt.Errorf("%s (token %d): %w: want a *fence.StaleError", what, q.Token, err)
	}
	names := func(n fence.Sequencer) bool {
		return *stale == fence.StaleError{Name: q.Name, Got: q.Token, Current: n.Token, Holder: n.Holder}
	}
	if !slices.ContainsFunc(since, names) {
		return fmt.Errorf("%s was refused with %+v: want it to name %+v, refused because of %+v", what, *stale, q, since)
	}
	return s.written(what)
}

// written sees that the resource has done what was accepted, and no more.
func (s *story) written(what string) error {
	if s.opts.Written == nil {
		return nil
	}
	if got := s.opts.Written(); !slices.Equal(got, s.done) {
		return fmt.Errorf("after %s the resource was written under the tokens %v: want %v", what, got, s.done)
	}
	return nil
}
