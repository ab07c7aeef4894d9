package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// Router tells callers which worker owns a key. It keeps the whole map in memory, by push where the
// store pushes, so that a lookup is no request. A lookup may be late: the worker itself says
// whether it owns the key ([Owner.Check]), and a guard whether the token is the newest. A Router is
// safe for concurrent use.
type Router struct {
	st     store.Store
	clk    clock.Clock
	space  shardmap.Space
	chunks []atomic.Pointer[table]

	mu        sync.Mutex
	addresses map[string]string     // of sessions
	changed   map[int]chan struct{} // by chunk: closed when its table is replaced; made by Await

	news *news // nil where the store pushes

	stop context.CancelFunc
	wg   sync.WaitGroup
}

// readAnyway is how often a router reads a part of the map that isn't said to have changed, where
// the store doesn't push.
const readAnyway = 15 * time.Second

// RouterOptions are the settings of a [Router]. The zero value is right for most programs.
type RouterOptions struct {
	Clock clock.Clock // the source of time; [clock.System] by default

	// OnError is called with what keeps the router from following the map, which is retried. It
	// must not block.
	OnError func(error)
}

// Route is the owner of a slice, as far as a router knows.
type Route struct {
	Address string // of the worker; "" when nobody owns the slice, or the worker gave none
	Session string // of the worker; "" when nobody owns the slice
	Token   fence.Token
}

// NewRouter reads the map of a space, and follows it until Close. It blocks until the map has been
// read, or ctx is done. The store is the caller's, and stays open.
func NewRouter(ctx context.Context, st store.Store, space string, opts RouterOptions) (*Router, error) {
	s, err := load(ctx, st, space)
	if err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	if opts.Clock == nil {
		opts.Clock = clock.System()
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	r := &Router{st: st, clk: opts.Clock, space: s, chunks: make([]atomic.Pointer[table], s.Chunks()), addresses: map[string]string{"": ""}, changed: map[int]chan struct{}{}}
	versions, err := r.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("router of space %s: %w", space, err)
	}
	ctx, r.stop = context.WithCancel(context.Background())
	if r.news = newNews(st, st, s, r.clk, readAnyway); r.news != nil {
		r.wg.Go(func() { r.news.follow(ctx) })
	}
	for i := range r.chunks {
		r.wg.Go(func() { r.follow(ctx, i, versions[i], opts.OnError) })
	}
	return r, nil
}

// load reads all members and all chunks, each by one List.
func (r *Router) load(ctx context.Context) ([]string, error) {
	for rec, err := range r.st.List(ctx, r.space.MemberPrefix()) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
		if m, err := shardmap.ParseMember(rec); err == nil {
			r.addresses[m.Session] = m.Address
		}
	}
	recs := map[string]store.Record{}
	for rec, err := range r.st.List(ctx, r.space.ChunkPrefix()) {
		if err != nil {
			return nil, err
		}
		recs[rec.Key] = rec
	}
	versions := make([]string, len(r.chunks))
	for i := range r.chunks {
		rec := recs[r.space.ChunkKey(i)]
		versions[i] = rec.Version
		if err := r.set(ctx, i, rec, nil); err != nil {
			return nil, err
		}
	}
	return versions, nil
}

// set makes a record that was read the table of a chunk, if that is still old.
func (r *Router) set(ctx context.Context, i int, rec store.Record, old *table) error {
	c, err := shardmap.ParseChunk(r.space, i, rec)
	if err != nil {
		return err
	}
	for _, s := range c.Slices {
		if err := r.learn(ctx, s.Owner); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	swapped := r.chunks[i].CompareAndSwap(old, newTable(c, func(session string) string { return r.addresses[session] }, nil))
	if changed := r.changed[i]; swapped && changed != nil {
		close(changed)
		delete(r.changed, i)
	}
	return nil
}

// learn reads the address of a session that isn't known.
func (r *Router) learn(ctx context.Context, session string) error {
	r.mu.Lock()
	_, known := r.addresses[session]
	r.mu.Unlock()
	if known {
		return nil
	}
	rec, err := store.Load(ctx, r.st, r.space.MemberKey(session))
	if err != nil {
		return err
	}
	m, err := shardmap.ParseMember(rec)
	if err != nil {
		m.Address = "" // it has left
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.addresses) > maxAddresses {
		r.addresses = map[string]string{"": ""}
	}
	r.addresses[session] = m.Address
	return nil
}

// follow follows one chunk.
func (r *Router) follow(ctx context.Context, i int, version string, report func(error)) {
	for ctx.Err() == nil {
		rec, err := r.await(ctx, i, version)
		if err == nil {
			for done := false; err == nil && !done; { // Refresh may come in between
				old := r.chunks[i].Load()
				err = r.set(ctx, i, rec, old)
				done = r.chunks[i].Load() != old
			}
		}
		if err == nil {
			version = rec.Version
			continue
		}
		if ctx.Err() == nil {
			report(fmt.Errorf("follow space %s: %w", r.space.Name, err))
			_ = clock.Sleep(ctx, r.clk, 100*time.Millisecond) // ctx is looked at above
		}
	}
}

// await is [store.Wait] for a chunk.
func (r *Router) await(ctx context.Context, i int, version string) (store.Record, error) {
	if r.news == nil {
		return store.Wait(ctx, r.st, r.space.ChunkKey(i), version)
	}
	return r.news.await(ctx, i, version)
}

// Lookup returns the owner of a key: of a name, or of any key of a hashed space. It returns false
// where nobody owns the key, as far as the router knows, or the name isn't in the space. Lookup
// does no I/O, takes well under a microsecond and allocates nothing.
func (r *Router) Lookup(key string) (Route, bool) {
	hash := shardmap.Hash(key)
	e := r.chunks[r.space.ChunkOf(hash)].Load().find(key, hash, r.space.Hashed)
	if e == nil || e.session == "" {
		return Route{}, false
	}
	return Route{Address: e.address, Session: e.session, Token: e.token}, true
}

// Refresh reads the part of the map that a key is in, and returns its owner: for a caller whose
// worker has just returned a [WrongOwner] without an address, or has gone.
func (r *Router) Refresh(ctx context.Context, key string) (Route, error) {
	i := r.space.ChunkOf(shardmap.Hash(key))
	old := r.chunks[i].Load()
	rec, err := store.Load(ctx, r.st, r.space.ChunkKey(i))
	if err == nil {
		err = r.set(ctx, i, rec, old) // else the follower has heard of a change meanwhile
	}
	if err != nil {
		return Route{}, fmt.Errorf("look %q up in space %s: %w", key, r.space.Name, err)
	}
	route, ok := r.Lookup(key)
	if !ok {
		return Route{}, errUnknownOwner
	}
	return route, nil
}

// Await blocks until the key has another owner than old, as far as the router knows, or the same
// owner under a new token, and returns that. It is for a caller whom the worker of old has refused:
// the slice is on its way, or its worker has gone. A zero old stands for none. Await does no I/O.
// When the name isn't in the space, Await returns an error that matches [ErrNoSlice] at once. When
// ctx is done, it returns the cause.
func (r *Router) Await(ctx context.Context, key string, old Route) (Route, error) {
	hash := shardmap.Hash(key)
	i := r.space.ChunkOf(hash)
	for {
		r.mu.Lock()
		changed := r.changed[i]
		if changed == nil {
			changed = make(chan struct{})
			r.changed[i] = changed
		}
		r.mu.Unlock()
		e := r.chunks[i].Load().find(key, hash, r.space.Hashed)
		if e == nil {
			return Route{}, fmt.Errorf("%q in space %s: %w", key, r.space.Name, ErrNoSlice)
		}
		if now := (Route{Address: e.address, Session: e.session, Token: e.token}); e.session != "" && now != old {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Route{}, context.Cause(ctx)
		}
	}
}

// Close ends the following, and blocks until nothing of it runs. Lookups answer on by what was
// known.
func (r *Router) Close() {
	r.stop()
	r.wg.Wait()
}
