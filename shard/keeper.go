package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/leasehold/leasehold/clock"
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
	version  string // of the chunk as it was last acted on
	known    bool
	mine     int                     // entries that name the session
	held     map[string]*Slice       // by ID and token
	prepared map[string]*preparation // by ID and token
}

// preparation is of a slice that is to come.
type preparation struct {
	cancel context.CancelCauseFunc
	ready  bool
}

// termID tells the terms of one slice apart.
func termID(s shardmap.Slice) string { return s.ID() + "#" + s.Token.String() }

// run keeps the chunk until the term is over, and then stops its slices.
func (k *keeper) run() {
	ctx := k.t.ctx
	pushed := make(chan struct{}, 1)
	var following sync.WaitGroup
	following.Go(func() { k.follow(ctx, pushed) })
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
		select {
		case <-pushed:
			last = nil
		case <-k.kick:
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

// follow wakes the keeper when the chunk has changed by another's write.
func (k *keeper) follow(ctx context.Context, pushed chan struct{}) {
	key := k.t.o.space.ChunkKey(k.index)
	for version := ""; ctx.Err() == nil; {
		rec, err := store.Wait(ctx, k.t.o.m.Store(), key, version)
		if err != nil {
			_ = clock.Sleep(ctx, k.t.o.clk, k.t.o.m.TTL()/50) // ctx is looked at above
			wake(pushed)                                      // a read settles it
			continue
		}
		version = rec.Version
		k.mu.Lock()
		own := k.known && k.version == version
		k.mu.Unlock()
		if !own {
			wake(pushed)
		}
	}
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
	c, err := shardmap.ParseChunk(k.t.o.space, k.index, rec)
	if err == nil {
		k.t.learn(ctx, c)
	}
	return c, err
}

// apply makes what this worker does with its slices follow the chunk: it starts what is new, stops
// what isn't its own any more, and drains what is to go.
func (k *keeper) apply(c *shardmap.Chunk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version, k.known, k.mine = c.Version(), true, 0
	present, coming := map[string]bool{}, map[string]bool{}
	for i, e := range c.Slices {
		id := termID(e)
		switch {
		case e.Owner == k.t.key:
			k.mine++
			present[id] = true
			s := k.held[id]
			if s == nil {
				k.held[id] = k.start(e)
			} else if k.goes(c, i) {
				k.drain(s)
			}
		case e.Next == k.t.key:
			coming[id] = true
			k.prepare(id, e)
		}
	}
	for id, s := range k.held {
		if !present[id] {
			k.end(id, s, ErrTaken)
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
	e := c.Slices[i]
	merges := func(i int) bool {
		return i >= 0 && i+1 < len(c.Slices) && c.Slices[i].Ask == shardmap.AskMerge && c.Slices[i].Owner == k.t.key && c.Slices[i+1].Owner == k.t.key
	}
	return e.Next != "" && e.Ready || e.Ask == shardmap.AskSplit || e.Ask == shardmap.AskRemove || merges(i) || merges(i-1) ||
		k.t.o.leaving() && k.t.free()
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
	case errors.As(err, &conflict), errors.Is(err, store.ErrNotFound): // read it again, durably
		return k.load(ctx)
	case err != nil:
		return nil, err
	}
	return shardmap.ParseChunk(next.Space, next.Index, got)
}

// change makes the changes, and reports whether there are any.
func (k *keeper) change(c *shardmap.Chunk) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.t.o.clk.Wall()
	for i := 0; i < len(c.Slices); i++ { //nolint:intrange // a split and a merge change the length
		e := c.Slices[i]
		if p := k.prepared[termID(e)]; e.Next == k.t.key && !e.Ready && (p != nil && p.ready || k.t.o.w.Prepare == nil) {
			c.Slices[i].Ready, changed = true, true
		}
		if !k.drained(e) {
			continue
		}
		switch {
		case e.Ask == shardmap.AskSplit, e.Ask == shardmap.AskRemove:
			err = c.Do(i, k.t.key, nil, now)
		case e.Ask == shardmap.AskMerge && i+1 < len(c.Slices) && c.Slices[i+1].Owner == k.t.key:
			if !k.drained(c.Slices[i+1]) {
				continue
			}
			err = c.Do(i, k.t.key, nil, now)
		case i > 0 && c.Slices[i-1].Ask == shardmap.AskMerge && c.Slices[i-1].Owner == k.t.key && e.Next == "":
			continue // the one before waits for it, or has just merged
		case e.Next != "":
			err = c.Give(i, k.t.key, e.Next, nil, now)
		case k.t.o.leaving(), k.refused(e):
			err = c.Give(i, k.t.key, "", nil, now)
		default: // it stays after all: as another term
			err = c.Give(i, k.t.key, k.t.key, nil, now)
		}
		if err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

// drained reports whether e is a slice of this worker's that has stopped. k.mu is held.
func (k *keeper) drained(e shardmap.Slice) bool {
	s := k.held[termID(e)]
	return e.Owner == k.t.key && s != nil && s.phase == ended
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
