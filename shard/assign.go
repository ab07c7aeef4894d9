package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/store"
)

// assigner is the worker that proposes who is to own what, while it holds the lease of the space.
// It only proposes: what others own it never takes, unless it knows that their session was closed.
// So two assigners at a time do no harm, and none leaves the map as it is.
type assigner struct {
	t     *term
	watch *sessions.Watch
	wake  chan struct{} // room for one
	pacer pacer         // of the goroutine of lead

	mu      sync.Mutex
	chunks  []*shardmap.Chunk // as last read; nil before
	members []member
	space   shardmap.Space // with the placement of now
	closed  map[string]bool
	asleep  map[string]bool // sessions that were not renewed for a while: nothing goes to them
	due     clock.Instant   // when to look at members and sessions again

	loads *loads // of the goroutine of lead
}

type member struct {
	shardmap.Member
	key string
}

// assign is the assigner whenever this worker holds the lease for that. The lease is kept by the
// worker's own session, so that it costs no heartbeat of its own.
func (t *term) assign() {
	if t.o.w.Bystander {
		return
	}
	for n := 0; t.ctx.Err() == nil; {
		l, err := t.s.Acquire(t.ctx, t.o.space.LeaderName())
		if err != nil {
			t.pause(&n, err)
			continue
		}
		n = 0
		ctx, cancel := context.WithCancel(t.ctx)
		unlink := context.AfterFunc(l.Context(), cancel)
		t.lead(ctx)
		unlink()
		cancel()
		release, done := clock.WithTimeout(context.WithoutCancel(t.ctx), t.o.clk, t.o.m.TTL()/3)
		_ = l.Release(release) // else it ends with the session
		done()
	}
}

// lead is the assigner until ctx is done.
func (t *term) lead(ctx context.Context) {
	a := &assigner{
		t: t, watch: sessions.NewWatch(t.o.m, t.o.m.Options().Sightings), wake: make(chan struct{}, 1), space: t.o.space,
		chunks: make([]*shardmap.Chunk, t.o.space.Chunks()), closed: map[string]bool{},
		loads: newLoads(t.o.space.Chunks()), pacer: pacer{began: map[int]clock.Instant{}},
	}
	a.watch.Remember(maxAddresses)
	a.watch.Tell(a.loads.hear)
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range a.chunks {
		following.Go(func() { a.follow(ctx, i) })
	}
	following.Go(func() { a.listen(ctx) })
	for n := 0; ctx.Err() == nil; {
		began := t.o.clk.Now()
		if err := a.round(ctx); err != nil {
			t.pause(&n, err)
			continue
		}
		n = 0
		// A large map takes at most half of a core.
		_ = clock.Sleep(ctx, t.o.clk, t.o.clk.Now().Sub(began))
		a.rest(ctx)
	}
}

// rest blocks until the map or the members have changed, or it is time to look at them.
func (a *assigner) rest(ctx context.Context) {
	a.mu.Lock()
	due := a.due
	a.mu.Unlock()
	if again := a.pacer.again; again != 0 {
		due = min(due, again)
	}
	timer := clock.NewTimer(a.t.o.clk, max(due.Sub(a.t.o.clk.Now()), 0))
	defer timer.Stop()
	select {
	case <-a.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// follow keeps one chunk of the assigner's picture of the map.
func (a *assigner) follow(ctx context.Context, i int) {
	o := a.t.o
	for version := "none"; ctx.Err() == nil; {
		rec, err := a.t.awaitChunk(ctx, i, version)
		if err == nil {
			version = rec.Version
			err = a.saw(i, rec, nil)
		}
		if err != nil && ctx.Err() == nil {
			o.report(err)
			_ = clock.Sleep(ctx, o.clk, o.m.TTL()/50) // ctx is looked at above
		}
	}
}

// saw takes down a chunk as it was read. What is known of a write counts only in the place of the
// chunk that it was planned on: another write may have followed, of which the follower has heard.
func (a *assigner) saw(i int, rec store.Record, instead *shardmap.Chunk) error {
	c, err := shardmap.ParseChunk(a.t.o.space, i, rec)
	if err != nil {
		return err
	}
	a.mu.Lock()
	if instead == nil || a.chunks[i] == instead {
		a.chunks[i] = c
	}
	a.mu.Unlock()
	wake(a.wake)
	return nil
}

// listen hears of members that come and go.
func (a *assigner) listen(ctx context.Context) {
	o := a.t.o
	for version := "none"; ctx.Err() == nil; {
		rec, err := store.Wait(ctx, o.m.Store(), o.space.BellKey(), version)
		if err != nil {
			_ = clock.Sleep(ctx, o.clk, o.m.TTL()/50) // ctx is looked at above
			continue
		}
		version = rec.Version
		a.mu.Lock()
		a.due = clock.Ended
		a.mu.Unlock()
		wake(a.wake)
	}
}

// round looks at what has changed, plans, and writes what is wanted.
func (a *assigner) round(ctx context.Context) error {
	a.mu.Lock()
	due := a.due
	complete := !slices.Contains(a.chunks, nil)
	a.mu.Unlock()
	if a.t.o.clk.Now() >= due {
		if err := a.look(ctx); err != nil {
			return err
		}
	}
	if !complete {
		return nil // the last chunk that comes wakes the assigner
	}
	return a.act(ctx)
}

// look reads the members, and whether their sessions live. One that is over was closed before it
// counts as such.
func (a *assigner) look(ctx context.Context) error {
	o := a.t.o
	rec, err := store.Load(ctx, o.st, o.space.Key())
	if err != nil {
		return err
	}
	space, err := shardmap.ParseSpace(rec)
	if err != nil {
		return err
	}
	var members []member
	for rec, err := range o.st.List(ctx, o.space.MemberPrefix()) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return err
		}
		if m, err := shardmap.ParseMember(rec); err == nil {
			members = append(members, member{m, rec.Key})
		}
	}
	slices.SortFunc(members, func(a, b member) int { return a.Since.Compare(b.Since) })
	over, next, err := a.sessions(ctx, members)
	if err != nil {
		return err
	}
	for _, m := range members {
		if over[m.Session] {
			a.forget(ctx, m)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.space, a.closed, a.members, a.asleep = space, over, nil, map[string]bool{}
	for _, m := range members {
		if over[m.Session] {
			continue
		}
		if m.Session != a.t.key && a.watch.Silent(m.Session) {
			a.asleep[m.Session] = true
		}
		a.members = append(a.members, m)
	}
	now := o.clk.Now()
	pause := o.m.TTL() / 3
	if store.Describe(o.m.Store()).Push {
		pause = min(pause, lookEvery)
	}
	a.due = max(min(next, now.Add(pause)), now.Add(o.m.TTL()/100))
	return nil
}

// forget takes the record of a member away whose session is over.
func (a *assigner) forget(ctx context.Context, m member) {
	rec, err := a.t.o.st.Get(ctx, m.key)
	if err == nil {
		_ = a.t.o.st.Delete(ctx, m.key, rec.Version) // else the next look does
	}
}

// sessions returns which sessions of members and owners are over. It closes those that were not
// renewed for their TTL.
func (a *assigner) sessions(ctx context.Context, members []member) (over map[string]bool, next clock.Instant, err error) {
	seen := map[string]bool{a.t.key: true, "": true}
	var keys []string
	add := func(key string) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, m := range members {
		add(m.Session)
	}
	a.mu.Lock()
	for _, c := range a.chunks {
		if c == nil {
			continue
		}
		for _, s := range c.Slices {
			add(s.Owner)
			add(s.Next)
		}
	}
	a.mu.Unlock()
	a.loads.keep(seen)
	if text := a.t.o.carried.Load(); text != nil { // its own session isn't looked at
		a.loads.take(a.t.key, *text)
	}
	next = clock.NoDeadline
	if len(keys) > lookSingly {
		if keys, err = a.doubtful(ctx, keys); err != nil {
			return nil, 0, err
		}
	}
	over, due, err := a.watch.Over(ctx, keys)
	return over, min(next, due), err
}

// Sessions up to lookSingly are read one by one. More are listed. Where the store pushes, the
// assigner looks every lookEvery, or every third of the TTL if that is shorter.
const (
	lookSingly = 16
	lookEvery  = 750 * time.Millisecond
)

// doubtful lists all sessions, and returns those of keys that were not renewed lately.
func (a *assigner) doubtful(ctx context.Context, keys []string) ([]string, error) {
	wanted := make(map[string]bool, len(keys))
	for _, k := range keys {
		wanted[k] = true
	}
	for rec, err := range a.t.o.st.List(ctx, sessionPrefix) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
		if err == nil && wanted[rec.Key] && rec.Owner != "" {
			a.watch.Heard(rec)
		}
	}
	var doubtful []string
	for _, k := range keys {
		if !a.watch.Renews(k) {
			doubtful = append(doubtful, k)
		}
	}
	return doubtful, nil
}

// sessionPrefix begins the keys of sessions (internal/keyspace).
const sessionPrefix = ".session/"

// act plans, and writes the chunks that are to change, each once.
func (a *assigner) act(ctx context.Context) error {
	a.mu.Lock()
	p := a.picture()
	a.mu.Unlock()
	a.loads.follow(p.chunks, p.ttl, p.wall)
	p.decide(a.t.o.w.Strategy)
	a.pacer.putOff(p, a.t.o.clk.Now(), a.t.o.m.TTL()/paceWithin)
	if err := a.tell(ctx, p); err != nil { // who is to be an owner has to look at the chunk
		return err
	}
	for _, i := range p.changed() {
		if err := a.write(ctx, p, i); err != nil {
			return err
		}
	}
	return nil
}

// write writes one chunk of what was planned. One that has changed meanwhile is planned again: its
// change wakes the assigner.
func (a *assigner) write(ctx context.Context, p *picture, i int) error {
	rec, err := p.next[i].Record(rand.Text())
	if errors.Is(err, shardmap.ErrFull) {
		a.t.o.report(err)
		return nil
	}
	if err != nil {
		return err
	}
	got, err := a.t.o.st.Put(ctx, rec)
	var conflict *store.ConflictError
	switch {
	case err == nil:
		a.t.news.wrote(i)
		a.tellQuarantines(p, i)
		return a.saw(i, got, p.chunks[i])
	case errors.As(err, &conflict):
		return a.saw(i, conflict.Current, p.chunks[i])
	case errors.Is(err, store.ErrNotFound):
		return nil // the follower hears of it
	}
	a.t.news.wrote(i) // it may have landed
	return err
}
