package shard

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// news tells the followers of chunks when to read them, where the store doesn't push. To ask for
// each chunk all the time costs the more, the more chunks concern a worker. So one record is asked
// for, in which each writer of a chunk says which it was. A chunk is read then, and seldom besides:
// a writer may end before it says so. Nothing but time depends on the news.
type news struct {
	st    store.Store // that reads
	push  store.Store // that waits
	space shardmap.Space
	clk   clock.Clock
	every time.Duration // a chunk is read this often at the least

	mu      sync.Mutex
	last    shardmap.News // that were heard
	all     int           // how often any chunk may have changed
	of      map[int]int   // how often a chunk has changed beside that
	changed chan struct{} // closed by the next news
	untold  map[int]bool  // chunks that were written, of which the others don't know
	due     chan struct{} // room for one: there are some
}

// newNews returns nil where the store pushes. st is the store with bounded requests.
func newNews(st, push store.Store, space shardmap.Space, clk clock.Clock, every time.Duration) *news {
	if sessions.Pushes(push) {
		return nil
	}
	return &news{
		st: st, push: push, space: space, clk: clk, every: every, of: map[int]int{}, changed: make(chan struct{}),
		untold: map[int]bool{}, due: make(chan struct{}, 1),
	}
}

// awaitChunk is [store.Wait] for a chunk of the map.
func (t *term) awaitChunk(ctx context.Context, i int, version string) (store.Record, error) {
	if t.news == nil {
		return store.Wait(ctx, t.o.m.Store(), t.o.space.ChunkKey(i), version)
	}
	return t.news.await(ctx, i, version)
}

// await is [store.Wait] for a chunk of the map.
func (n *news) await(ctx context.Context, i int, version string) (store.Record, error) {
	for {
		heard, _ := n.heard(i) // before the read: what comes later counts
		rec, err := store.Load(ctx, n.st, n.space.ChunkKey(i))
		if err != nil || rec.Version != version {
			return rec, err
		}
		if err := n.rest(ctx, i, heard); err != nil {
			return store.Record{}, err
		}
	}
}

// heard returns how often chunk i has changed, as far as was heard, and what is closed by the next
// news.
func (n *news) heard(i int) (int, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all + n.of[i], n.changed
}

// rest blocks until chunk i has changed more often than that, or is to be read anyway.
func (n *news) rest(ctx context.Context, i, before int) error {
	timer := clock.NewTimer(n.clk, n.every-rand.N(n.every/4+1))
	defer timer.Stop()
	for {
		now, changed := n.heard(i)
		if now != before {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow hears the news, and tells the others of what was written here, until ctx is done.
func (n *news) follow(ctx context.Context) {
	var telling sync.WaitGroup
	telling.Go(func() { n.tellAll(ctx) })
	defer telling.Wait()
	for version := "none"; ctx.Err() == nil; {
		rec, err := store.Wait(ctx, n.push, n.space.NewsKey(), version)
		if err != nil {
			_ = clock.Sleep(ctx, n.clk, n.every/50) // ctx is looked at above
			continue
		}
		version = rec.Version
		n.hear(rec)
	}
}

// hear takes the news down.
func (n *news) hear(rec store.Record) {
	told, err := shardmap.ParseNews(rec)
	n.mu.Lock()
	defer n.mu.Unlock()
	chunks, ok := told.Since(n.last)
	if err != nil || !ok || n.all == 0 {
		n.all++
	} else {
		for _, i := range chunks {
			n.of[i]++
		}
	}
	n.last = told
	close(n.changed)
	n.changed = make(chan struct{})
}

// wrote has the others be told that chunk i was written. It doesn't block. n may be nil.
func (n *news) wrote(i int) {
	if n == nil {
		return
	}
	n.mu.Lock()
	n.untold[i] = true
	n.mu.Unlock()
	wake(n.due)
}

// tellAll tells the others what there is to tell until ctx is done. What was written meanwhile goes
// with the next write.
func (n *news) tellAll(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-n.due:
		case <-ctx.Done():
			return
		}
		if n.tell(ctx) != nil {
			wake(n.due)
			_ = clock.Sleep(ctx, n.clk, n.every/50) // ctx is looked at above
		}
	}
}

// tell tells the others of what was written here. n may be nil.
func (n *news) tell(ctx context.Context) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	var chunks []int
	for i := range n.untold {
		chunks = append(chunks, i)
	}
	clear(n.untold)
	n.mu.Unlock()
	err := announce(ctx, n.st, n.space, chunks...)
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, i := range chunks {
			n.untold[i] = true
		}
	}
	return err
}

// announce writes that chunks have changed, where the store doesn't push. After an error the others
// hear of it later.
func announce(ctx context.Context, st store.Store, s shardmap.Space, chunks ...int) error {
	if len(chunks) == 0 || sessions.Pushes(st) {
		return nil
	}
	return store.Update(ctx, st, s.NewsKey(), func(rec *store.Record) (bool, error) {
		n, err := shardmap.ParseNews(*rec)
		if err != nil { // what can't be read is replaced: all is looked at then
			n = shardmap.News{}
		}
		n.Add(chunks...)
		rec.Data, err = n.Marshal()
		return true, err
	})
}
