package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// keeper keeps a worker's slices of one chunk of the map. One goroutine reads and writes the chunk,
// so that at most one write of this worker is on its way to it. A slice that was drained never
// serves again under its token: a write that passes it on may have been sent, and may land later.
type keeper struct {
	t     *term
	index int
	kick  chan struct{} // room for one: there may be something to do

	mu       sync.Mutex
	pushed   *store.Record // what the follower has heard since then
	blind    bool          // the follower heard nothing: the chunk is to be read
	version  string        // of the chunk as it was last acted on
	known    bool
	token    fence.Token              // the highest of any chunk that was acted on
	mine     int                      // entries that name the session
	held     map[string]*Slice        // by ID and token
	prepared map[string]*preparation  // by ID and token
	since    clock.Instant            // when that version was first acted on
	turns    map[string]clock.Instant // by ID and token: how long it waits for its turn
	alarm    clock.Instant            // when the keeper looks again at what there is to do
	hasty    bool                     // slices don't wait for their turns; of the model check
}

// preparation is of a slice that is to come.
type preparation struct {
	cancel context.CancelCauseFunc
	ready  bool
	since  clock.Instant // when it became ready
}

// termID tells the terms of one slice apart.
func termID(s shardmap.Slice) string { return s.ID() + "#" + s.Token.String() }

// run keeps the chunk until the term is over, and then stops its slices.
func (k *keeper) run() {
	ctx := k.t.ctx
	changed := make(chan struct{}, 1)
	var following sync.WaitGroup
	following.Go(func() { k.follow(ctx, changed) })
	var last *shardmap.Chunk // that is known; nil when it has to be read
	for n := 0; ctx.Err() == nil; {
		var err error
		if last == nil {
			last, err = k.load(ctx)
		}
		for c := last; err == nil && c != nil; { // until there is nothing to write
			last = c
			k.apply(c)
			c, err = k.write(ctx, c)
		}
		if err != nil {
			last = nil
			k.t.pause(&n, err)
			continue
		}
		n = 0
		k.t.learn(last)
		select {
		case <-changed:
			last = k.hear(last)
		case <-k.kick:
			k.gather(ctx)
		case <-ctx.Done():
		}
	}
	following.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, s := range k.held {
		k.end(id, s, context.Cause(ctx))
	}
	for id, p := range k.prepared {
		p.cancel(context.Cause(ctx))
		delete(k.prepared, id)
	}
}

// gather waits a moment for the other slices that are being drained, so that one write passes them
// on: the next one has to wait for the answer to the first.
func (k *keeper) gather(ctx context.Context) {
	timer := clock.NewTimer(k.t.o.clk, k.t.o.m.TTL()/5000)
	defer timer.Stop()
	for k.draining() {
		select {
		case <-k.kick:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// draining reports whether a slice is being drained.
func (k *keeper) draining() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.held {
		if s.phase == draining {
			return true
		}
	}
	return false
}

// follow wakes the keeper when the chunk has changed by another's write.
func (k *keeper) follow(ctx context.Context, changed chan<- struct{}) {
	for version := ""; ctx.Err() == nil; {
		rec, err := k.t.awaitChunk(ctx, k.index, version)
		if err != nil {
			_ = clock.Sleep(ctx, k.t.o.clk, k.t.o.m.TTL()/50) // ctx is looked at above
			k.told(nil)                                       // a read settles it
			wake(changed)
			continue
		}
		version = rec.Version
		if k.told(&rec) {
			wake(changed)
		}
	}
}

// told takes down what the follower has heard; nil has the chunk read. It reports whether that may
// be new to the keeper.
func (k *keeper) told(rec *store.Record) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pushed = rec
	if rec == nil {
		k.blind = true
	} else if k.known && k.version == rec.Version {
		k.pushed = nil
	}
	return k.blind || k.pushed != nil
}

// hear returns what the follower has heard, in the place of the last chunk that was acted on; nil
// when the chunk has to be read.
func (k *keeper) hear(last *shardmap.Chunk) *shardmap.Chunk {
	k.mu.Lock()
	defer k.mu.Unlock()
	rec, blind := k.pushed, k.blind
	k.pushed, k.blind = nil, false
	switch {
	case blind:
		return nil
	case rec == nil: // it was this worker's own write
		return last
	}
	return k.agreed(*rec)
}

// agreed returns the chunk of a record that may not be durable, or nil if the worker must not act
// on it: by the record it owns something that it doesn't hold, or doesn't own what it holds. A
// failover may take the record back, and a slice that was passed on would then begin again under
// its old token. Else all that may follow from the record is to drain, to prepare and to write.
//
// Where what the store shows is durable, a record of a higher token is as good as a read: it is
// newer than all that was acted on, and each change of what the worker owns raises the token. One
// of the same token may be older than this worker's last write. k.mu is held.
func (k *keeper) agreed(rec store.Record) *shardmap.Chunk {
	c, err := shardmap.ParseChunk(k.t.o.space, k.index, rec)
	if err != nil {
		return nil // the read says so
	}
	if k.known && c.Token > k.token && store.Describe(k.t.o.m.Store()).Read == store.ReadDurable {
		return c
	}
	owned := 0
	for _, e := range c.Slices {
		if e.Owner != k.t.key {
			continue
		}
		if k.held[termID(e)] == nil {
			return nil
		}
		owned++
	}
	if owned != len(k.held) {
		return nil
	}
	return c
}

// load reads the chunk. What it shows is acted on without a write of this worker's own, so the read
// has to be as durable as a write.
func (k *keeper) load(ctx context.Context) (*shardmap.Chunk, error) {
	limited, cancel := clock.WithTimeout(ctx, k.t.o.clk, k.t.o.m.TTL()/10)
	defer cancel()
	rec, err := store.Confirm(limited, k.t.o.m.Store(), k.t.o.space.ChunkKey(k.index))
	if err != nil {
		return nil, err
	}
	return shardmap.ParseChunk(k.t.o.space, k.index, rec)
}

// apply makes what this worker does with its slices follow the chunk: it starts what is new, stops
// what isn't its own any more, and drains what is to go.
func (k *keeper) apply(c *shardmap.Chunk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.known || k.version != c.Version() {
		k.since = k.t.o.clk.Now()
	}
	k.version, k.known, k.token, k.mine = c.Version(), true, max(k.token, c.Token), 0
	present, coming := map[string]bool{}, map[string]bool{}
	for i, e := range c.Slices {
		switch {
		case e.Owner == k.t.key:
			id := termID(e)
			k.mine++
			present[id] = true
			s := k.held[id]
			if s == nil {
				k.held[id] = k.start(e)
			} else if k.goes(c, i) && (k.hasty || k.turn(c, i)) {
				k.drain(s)
			}
		case e.Next == k.t.key:
			id := termID(e)
			coming[id] = true
			k.prepare(id, e)
		}
	}
	for id, s := range k.held {
		if !present[id] {
			k.end(id, s, ErrTaken)
		}
	}
	for id := range k.turns {
		if !present[id] {
			delete(k.turns, id)
		}
	}
	for id, p := range k.prepared {
		if !coming[id] {
			p.cancel(ErrMoved)
			delete(k.prepared, id)
		}
	}
	k.t.o.chunks[k.index].Store(newTable(c, k.t.address, func(e shardmap.Slice) *Slice {
		if e.Owner != k.t.key {
			return nil
		}
		return k.held[termID(e)]
	}))
	if k.mine == 0 && len(k.held) == 0 {
		wake(k.t.told) // it may want to leave
	}
}

// goes reports whether slice i, which is this worker's, has to be drained now.
func (k *keeper) goes(c *shardmap.Chunk, i int) bool {
	return asked(c, i, k.t.key) || k.t.o.leaving() && (k.t.free() || c.Slices[i].Next == "" && k.t.late())
}

// write writes what is to be changed of the chunk: slices that were drained go on, and others are
// ready to come. It returns the chunk after the write, nil if there was nothing to write. After an
// error nothing is known, and the chunk is read again.
func (k *keeper) write(ctx context.Context, c *shardmap.Chunk) (*shardmap.Chunk, error) {
	next := *c
	next.Slices = append([]shardmap.Slice(nil), c.Slices...)
	changed, err := k.change(&next)
	if err != nil || !changed {
		return nil, err
	}
	rec, err := next.Record(rand.Text())
	if err != nil {
		return nil, err
	}
	got, err := k.t.o.st.Put(ctx, rec)
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &conflict):
		k.mu.Lock()
		cur := k.agreed(conflict.Current)
		k.mu.Unlock()
		if cur != nil && cur.Version() != c.Version() {
			return cur, nil
		}
		return k.load(ctx)
	case errors.Is(err, store.ErrNotFound): // read it again, durably
		return k.load(ctx)
	case err != nil:
		k.t.news.wrote(k.index) // it may have landed
		return nil, err
	}
	k.t.news.wrote(k.index)
	return shardmap.ParseChunk(next.Space, next.Index, got)
}

// change makes the changes, and reports whether there are any.
func (k *keeper) change(c *shardmap.Chunk) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.t.o.clk.Wall()
	for i := 0; i < len(c.Slices); i++ { //nolint:intrange // a split and a merge change the length
		e := c.Slices[i]
		if e.Next == k.t.key && !e.Ready {
			if ready, since := k.ready(e); ready && (changed || k.says(c, i, since)) {
				c.Slices[i].Ready, changed = true, true
			}
		}
		if !k.drained(e) {
			continue
		}
		passed, err := passOn(c, i, k.t.key, k.drained, k.t.o.leaving() || k.refused(e), now)
		if err != nil {
			return false, err
		}
		changed = changed || passed
	}
	return changed, nil
}

// ready reports whether the program has prepared for a slice that is to come, and since when. k.mu
// is held.
func (k *keeper) ready(e shardmap.Slice) (bool, clock.Instant) {
	if k.t.o.w.Prepare == nil {
		return true, k.since
	}
	p := k.prepared[termID(e)]
	if p == nil {
		return false, 0
	}
	return p.ready, p.since
}

// drained reports whether e is a slice of this worker's that has stopped. k.mu is held.
func (k *keeper) drained(e shardmap.Slice) bool {
	if e.Owner != k.t.key {
		return false
	}
	s := k.held[termID(e)]
	return s != nil && s.phase == ended
}

// refused reports whether the program couldn't start a slice. k.mu is held.
func (k *keeper) refused(e shardmap.Slice) bool {
	s := k.held[termID(e)]
	return s != nil && errors.Is(context.Cause(s.ctx), errRefused)
}

// empty reports whether nothing of the chunk is this worker's, as far as it has read.
func (k *keeper) empty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known && k.mine == 0 && len(k.held) == 0
}
