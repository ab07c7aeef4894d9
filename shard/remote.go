package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Remote is a worker whose process has no store: a server writes for it, which keeps its session.
// The rules are those of an [Owner]. The process may act on a slice while its session is valid and
// the last [Remote.Step] has named the slice, under the token that Step said. A Remote has no state
// of its own, so that any server can take the next step. Nobody assigns to it but an [Owner] or
// [Assign].
type Remote struct {
	Store   store.Store
	Space   string // the name of the space
	Session string // the key of the session that owns slices
}

// Part is a slice of a [Remote].
type Part struct {
	Entry

	// Goes is true when the process is to stop what it does for the slice, and to say so in its
	// next step. The slice is its own until that step.
	Goes bool
}

// Step is what a [Remote] has stopped, and what it wants.
type Step struct {
	// Stopped has the tokens of the slices, by their IDs, that the process has stopped and for
	// which it won't act again under these tokens.
	Stopped map[string]fence.Token
	Leave   bool // hand over all slices
	Free    bool // with Leave: free what no other worker is to have, too
}

// Holding is what a [Remote] has after a step.
type Holding struct {
	Parts []Part // its slices, in the order of the map
	Left  bool   // it is leaving, and has nothing left: it is no member any more

	versions map[string]string // of the records that it was read from, by key
}

// Join makes the session a worker of the space, and the space if there is none, as the function
// [Join] does. Of w the fields that say what the worker is count. Join blocks until the store has
// answered, or ctx is done. The error matches [store.ErrInvalid] where space or w is wrong. After
// another error Join can be called again.
func (r Remote) Join(ctx context.Context, space Space, w Worker) error {
	if w.Capacity == 0 {
		w.Capacity = 1
	}
	if w.Name == "" {
		w.Name = shardmap.Member{Session: r.Session}.Owner()
	}
	space.Name = r.Space
	if err := errors.Join(space.check(), w.sized()); err != nil {
		return &invalidError{err}
	}
	s, err := space.open(ctx, r.Store)
	if err != nil {
		return err
	}
	return r.enlist(ctx, s, func(m *shardmap.Member) error {
		if m.Session == "" {
			m.Session, m.Since = r.Session, wall()
		}
		m.Name, m.Address, m.Zone, m.Capacity, m.Labels = w.Name, w.Address, w.Zone, w.Capacity, w.Labels
		return nil
	})
}

// invalidError is what is wrong with what a caller wants.
type invalidError struct{ error }

// Is makes it a [store.ErrInvalid].
func (*invalidError) Is(target error) bool { return target == store.ErrInvalid }

// Unwrap returns what is wrong.
func (e *invalidError) Unwrap() error { return e.error }

// enlist changes the record of the member, and rings the bell.
func (r Remote) enlist(ctx context.Context, s shardmap.Space, change func(m *shardmap.Member) error) error {
	err := store.Update(ctx, r.Store, s.MemberKey(r.Session), func(rec *store.Record) (bool, error) {
		var m shardmap.Member
		if len(rec.Data) > 0 {
			var err error
			if m, err = shardmap.ParseMember(*rec); err != nil {
				return false, err
			}
		}
		if err := change(&m); err != nil {
			return false, err
		}
		var err error
		*rec, err = m.Record(*rec, rand.Text())
		return true, err
	})
	if err == nil {
		err = ring(ctx, r.Store, s)
	}
	return err
}

// Step writes what the process has stopped, and returns what is its own after that. It blocks until
// the store has answered, or ctx is done. After an error the process takes the step again: what it
// has stopped may have been passed on. The error matches [ErrNoWorker] when the session is no
// member, or none any more.
func (r Remote) Step(ctx context.Context, step Step) (Holding, error) {
	h := Holding{versions: map[string]string{}}
	s, err := load(ctx, r.Store, r.Space)
	if err != nil {
		return h, err
	}
	m, err := r.member(ctx, s, &h)
	if err != nil {
		return h, err
	}
	if step.Leave && !m.Leaving {
		if m, err = r.leave(ctx, s, &h); err != nil {
			return h, err
		}
	}
	alone := false
	if m.Leaving {
		if alone, err = r.alone(ctx, s); err != nil {
			return h, err
		}
	}
	goes := func(e shardmap.Slice) bool { return m.Leaving && (alone || step.Free && e.Next == "") }
	for _, i := range m.Chunks {
		if i < 0 || i >= s.Chunks() {
			continue
		}
		c, err := r.settle(ctx, s, i, step.Stopped, m.Leaving)
		if err != nil {
			return h, err
		}
		h.versions[s.ChunkKey(i)] = c.Version()
		for n, e := range c.Slices {
			if e.Owner == r.Session {
				h.Parts = append(h.Parts, Part{Entry: entryOf(e), Goes: asked(c, n, r.Session) || goes(e)})
			}
		}
	}
	if h.Left = m.Leaving && len(h.Parts) == 0; h.Left {
		r.delist(ctx, s)
	}
	return h, nil
}

// delist takes the worker's own record away; else the assigner does.
func (r Remote) delist(ctx context.Context, s shardmap.Space) {
	rec, err := r.Store.Get(ctx, s.MemberKey(r.Session))
	if err == nil {
		_ = r.Store.Delete(ctx, rec.Key, rec.Version)
	}
	_ = ring(ctx, r.Store, s)
}

// leave writes that the worker goes, and reads its record again.
func (r Remote) leave(ctx context.Context, s shardmap.Space, h *Holding) (shardmap.Member, error) {
	err := r.enlist(ctx, s, func(m *shardmap.Member) error {
		if m.Session == "" {
			return r.unknown()
		}
		m.Leaving = true
		return nil
	})
	if err != nil {
		return shardmap.Member{}, err
	}
	return r.member(ctx, s, h)
}

func (r Remote) unknown() error {
	return fmt.Errorf("session %s is no worker of space %s: join first: %w", r.Session, r.Space, ErrNoWorker)
}

// member reads the member's own record.
func (r Remote) member(ctx context.Context, s shardmap.Space, h *Holding) (shardmap.Member, error) {
	rec, err := store.Load(ctx, r.Store, s.MemberKey(r.Session))
	if err == nil && len(rec.Data) == 0 {
		err = r.unknown()
	}
	if err != nil {
		return shardmap.Member{}, err
	}
	h.versions[rec.Key] = rec.Version
	m, err := shardmap.ParseMember(rec)
	if err == nil && m.Session != r.Session {
		err = r.unknown()
	}
	return m, err
}

// alone reports whether no other worker could take over.
func (r Remote) alone(ctx context.Context, s shardmap.Space) (bool, error) {
	for rec, err := range r.Store.List(ctx, s.MemberPrefix()) {
		if err != nil {
			return false, err
		}
		if m, err := shardmap.ParseMember(rec); err == nil && m.Session != r.Session && !m.Goes() {
			return false, nil
		}
	}
	return true, nil
}

// settle passes on what was stopped in a chunk, and returns the chunk after that. Its read is as
// durable as a write, since the process acts on it.
func (r Remote) settle(ctx context.Context, s shardmap.Space, i int, stopped map[string]fence.Token, leaving bool) (*shardmap.Chunk, error) {
	for {
		rec, err := store.Confirm(ctx, r.Store, s.ChunkKey(i))
		if err != nil {
			return nil, err
		}
		c, err := shardmap.ParseChunk(s, i, rec)
		if err != nil {
			return nil, err
		}
		next := *c
		next.Slices = slices.Clone(c.Slices)
		changed, err := r.pass(&next, stopped, leaving)
		if err != nil || !changed {
			return c, err
		}
		if rec, err = next.Record(rand.Text()); err != nil {
			return nil, err
		}
		got, err := r.Store.Put(ctx, rec)
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
			continue
		case err != nil:
			return nil, err
		}
		_ = announce(ctx, r.Store, s, i) // else the others find it later
		return shardmap.ParseChunk(s, i, got)
	}
}

// pass makes the changes that follow from what was stopped, and reports whether there are any.
func (r Remote) pass(c *shardmap.Chunk, stopped map[string]fence.Token, leaving bool) (changed bool, err error) {
	drained := func(e shardmap.Slice) bool {
		token, ok := stopped[e.ID()]
		return ok && e.Owner == r.Session && e.Token == token
	}
	for i := 0; i < len(c.Slices); i++ { //nolint:intrange // a split and a merge change the length
		if e := c.Slices[i]; e.Next == r.Session && !e.Ready {
			c.Slices[i].Ready, changed = true, true
		}
		if !drained(c.Slices[i]) {
			continue
		}
		passed, err := passOn(c, i, r.Session, drained, leaving, wall())
		if err != nil {
			return false, err
		}
		changed = changed || passed
	}
	return changed, nil
}

// Await blocks until something has changed since the step that returned h, or ctx is done: the
// error is then the cause of ctx. Not every change is one for this worker.
func (r Remote) Await(ctx context.Context, h Holding) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	news := make(chan error, len(h.versions))
	for key, version := range h.versions {
		go func() {
			_, err := store.Wait(ctx, r.Store, key, version)
			news <- err
		}()
	}
	var first error
	for n := range len(h.versions) { // one that has changed, and those that are cancelled then
		err := <-news
		if n == 0 {
			first = err
			cancel()
		}
	}
	return first
}

// passOn passes a slice on that me has stopped: to whom it is to go, or to nobody if frees says so,
// or as another term to me. It reports whether it has changed the chunk: a slice that is to be
// merged waits for the other one.
func passOn(c *shardmap.Chunk, i int, me string, drained func(shardmap.Slice) bool, frees bool, now time.Time) (bool, error) {
	e := c.Slices[i]
	switch {
	case e.Ask == shardmap.AskSplit, e.Ask == shardmap.AskRemove:
		return true, c.Do(i, me, nil, now)
	case e.Ask == shardmap.AskMerge && i+1 < len(c.Slices) && c.Slices[i+1].Owner == me:
		if !drained(c.Slices[i+1]) {
			return false, nil
		}
		return true, c.Do(i, me, nil, now)
	case i > 0 && c.Slices[i-1].Ask == shardmap.AskMerge && c.Slices[i-1].Owner == me && e.Next == "":
		return false, nil // the one before waits for it, or has just merged
	case e.Next != "":
		return true, c.Give(i, me, e.Next, nil, now)
	case frees:
		return true, c.Give(i, me, "", nil, now)
	}
	return true, c.Give(i, me, me, nil, now) // it stays after all: as another term
}

// asked reports whether slice i, which is me's, has to be stopped since the map says so.
func asked(c *shardmap.Chunk, i int, me string) bool {
	e := c.Slices[i]
	merges := func(i int) bool {
		return i >= 0 && i+1 < len(c.Slices) && c.Slices[i].Ask == shardmap.AskMerge && c.Slices[i].Owner == me && c.Slices[i+1].Owner == me
	}
	return e.Next != "" && e.Ready || e.Ask == shardmap.AskSplit || e.Ask == shardmap.AskRemove || merges(i) || merges(i-1)
}

// Assign assigns the slices of a space until ctx is done, as one of its workers does: for a space
// whose workers can't. It owns nothing. Any number of processes may call it, beside any number of
// workers; one at a time proposes who is to own what. strategy is [Balance] if it is nil, and
// onError, which must not block, is called with what is retried. Assign returns the cause of ctx,
// or why the space can't be read.
func Assign(ctx context.Context, m *lease.Manager, space string, strategy Strategy, onError func(error)) error {
	w := Worker{Strategy: strategy, OnError: onError}
	if err := w.check(m); err != nil {
		return err
	}
	o := newOwner(m, w)
	var err error
	if o.space, err = load(ctx, o.st, space); err != nil {
		return err
	}
	o.ctx, o.stop = context.WithCancelCause(ctx)
	defer o.stop(nil)
	for n := 0; ctx.Err() == nil; n++ {
		t, err := o.open(ctx)
		if err != nil {
			o.report(err)
			o.again(o.ctx, n)
			continue
		}
		n = 0
		t.wg.Go(t.guard)
		t.assign()
		t.finish()
	}
	return context.Cause(ctx)
}
