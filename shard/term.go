package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// term is a worker under one session. What it owns it owns by the key of that session: after a loss
// the worker begins again as another member.
type term struct {
	o   *Owner
	s   *lease.Session
	key string // of the session

	ctx  context.Context // done when the session is about to end, or the worker is closed
	stop context.CancelCauseFunc
	over atomic.Bool    // set before ctx is done
	wg   sync.WaitGroup // of all goroutines of the term
	told chan struct{}  // room for one: what is wanted of the worker has changed
	news *news          // nil where the store pushes

	mu        sync.Mutex
	keepers   map[int]*keeper
	addresses map[string]string // of sessions, as far as they are known
	unknown   map[string]bool   // sessions whose addresses are being read
	failed    string            // what was reported last
	announced bool              // the others know that it leaves; of the goroutine of run
	looked    clock.Instant     // when it last looked for others; of the same
	freely    bool              // it leaves, and no other worker is there to take over
	asked     clock.Instant     // when it told the others that it leaves; 0 before
}

// open opens a session.
func (o *Owner) open(ctx context.Context) (*term, error) {
	s, err := o.m.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	t := &term{o: o, s: s, key: s.Key(), told: make(chan struct{}, 1), keepers: map[int]*keeper{}, addresses: map[string]string{}, unknown: map[string]bool{}}
	t.ctx, t.stop = context.WithCancelCause(o.ctx)
	t.addresses[t.key] = o.w.Address
	if t.news = newNews(o.st, o.m.Store(), o.space, o.clk, o.m.TTL()); t.news != nil {
		t.wg.Go(func() { t.news.follow(t.ctx) })
	}
	return t, nil
}

// begin opens a session, and lists it among the members.
func (o *Owner) begin(ctx context.Context) (*term, error) {
	t, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	t.s.Carry(shardmap.Carried, o.digest)
	if _, err := t.enlist(ctx, nil); err != nil {
		t.stop(err)
		t.wg.Wait()
		closing, cancel := clock.WithTimeout(context.WithoutCancel(ctx), o.clk, o.m.TTL()/3)
		defer cancel()
		_ = t.s.Close(closing) // else it expires
		return nil, err
	}
	return t, nil
}

// run is the worker until it has left or is closed: one term after the other.
func (o *Owner) run(t *term) {
	defer close(o.done)
	defer o.stop(ErrLeft)
	for n := 0; ; n++ {
		if t != nil {
			n = 0
			o.mu.Lock()
			o.term = t
			o.mu.Unlock()
			left := t.run()
			o.forget()
			if left {
				return
			}
		}
		if o.ctx.Err() != nil || o.leaving() {
			return
		}
		var err error
		if t, err = o.begin(o.ctx); err != nil {
			t = nil
			o.report(err)
			if errors.Is(err, lease.ErrClosed) {
				return
			}
			o.again(o.ctx, n)
		}
	}
}

// forget has nothing of a term that is over be known.
func (o *Owner) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, i := range o.kept {
		o.chunks[i].Store(nil)
	}
	o.kept = nil
}

// again waits before the next try to open a session, after n others that have failed.
func (o *Owner) again(ctx context.Context, n int) {
	pause := min(o.m.TTL()/100<<min(n, 6), o.m.TTL()/3)
	_ = clock.Sleep(ctx, o.clk, pause) // the caller looks at ctx
}

// run is the worker under this session, until that ends. It reports whether the worker has left.
func (t *term) run() (left bool) {
	for _, f := range []func(){t.guard, t.followRecord, t.assign} {
		t.wg.Go(f)
	}
	for t.ctx.Err() == nil && !left {
		left = t.o.leaving() && t.leave()
		if !left {
			t.await()
		}
	}
	t.finish()
	return left
}

// finish closes the session once nothing of the term runs.
func (t *term) finish() {
	t.over.Store(true)
	t.stop(ErrLeft)
	t.wg.Wait() // all slices have stopped: from here on the session may be closed
	ctx, cancel := clock.WithTimeout(context.Background(), t.o.clk, t.o.m.TTL()/3)
	defer cancel()
	_ = t.news.tell(ctx)       // of what was passed on last; else the others find it later
	if t.s.Close(ctx) == nil { // else it expires
		_ = t.delist(ctx) // else the assigner does
		_ = ring(ctx, t.o.st, t.o.space)
	}
}

// await blocks until something is wanted of the worker, or the term is over. Who leaves looks for
// others from time to time.
func (t *term) await() {
	var due <-chan struct{}
	if t.o.leaving() {
		timer := clock.NewTimer(t.o.clk, t.o.m.TTL()/3)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-t.told:
	case <-due:
	case <-t.ctx.Done():
	}
}

// guard ends the term StopMargin before the session does.
func (t *term) guard() {
	margin := t.o.w.StopMargin
	for {
		left := t.s.Left()
		if left <= margin {
			t.over.Store(true)
			t.stop(ErrExpiring)
			return
		}
		pause, cancel := clock.WithTimeout(t.ctx, t.o.clk, left-margin)
		select {
		case <-pause.Done():
		case <-t.s.Context().Done():
		}
		cancel()
		if t.ctx.Err() != nil {
			return
		}
	}
}

// enlist writes the worker's own record, and rings the bell. change, if set, changes the record.
func (t *term) enlist(ctx context.Context, change func(m *shardmap.Member)) (store.Record, error) {
	o := t.o
	var written store.Record
	key := o.space.MemberKey(t.key)
	err := store.Update(ctx, o.st, key, func(rec *store.Record) (bool, error) {
		m := shardmap.Member{Since: o.since}
		if len(rec.Data) > 0 {
			var err error
			if m, err = shardmap.ParseMember(*rec); err != nil {
				return false, err
			}
		}
		m.Session, m.Name, m.Address, m.Zone, m.Capacity = t.key, o.w.Name, o.w.Address, o.w.Zone, o.w.Capacity
		m.Labels, m.Prepares, m.Leaving = o.w.Labels, o.w.Prepare != nil, m.Leaving || o.leaving()
		if change != nil {
			change(&m)
		}
		var err error
		*rec, err = m.Record(*rec, rand.Text())
		written = *rec
		return true, err
	})
	if err != nil {
		return written, err
	}
	// Rung or not, the assigner looks at the members at the latest after a third of the TTL.
	if err := ring(ctx, o.st, o.space); err != nil {
		o.report(err)
	}
	return written, nil
}

// delist takes the worker's own record away.
func (t *term) delist(ctx context.Context) error {
	key := t.o.space.MemberKey(t.key)
	rec, err := t.o.st.Get(ctx, key)
	if err == nil {
		err = t.o.st.Delete(ctx, key, rec.Version)
	}
	return err
}

// ring tells the assigner that members have changed. A conflict is as good: somebody else has rung
// since this worker's own record was written.
func ring(ctx context.Context, st store.Store, s shardmap.Space) error {
	rec, err := store.Load(ctx, st, s.BellKey())
	if err != nil {
		return err
	}
	rec.Nonce = rand.Text()
	_, err = st.Put(ctx, rec)
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// followRecord follows the worker's own record, in which the assigner says which chunks concern the
// worker.
func (t *term) followRecord() {
	key := t.o.space.MemberKey(t.key)
	for n := 0; t.ctx.Err() == nil; {
		rec, err := store.Load(t.ctx, t.o.st, key)
		// An outsider deleted it; or the assigner, when the session is over.
		if err == nil && rec.Version == "" {
			if err = t.s.Check(); err == nil {
				rec, err = t.enlist(t.ctx, nil)
				rec.Version = ""
			}
		}
		var m shardmap.Member
		if err == nil {
			m, err = shardmap.ParseMember(rec)
		}
		if err == nil {
			n = 0
			for _, i := range m.Chunks {
				t.keep(i)
			}
			_, err = store.Wait(t.ctx, t.o.m.Store(), key, rec.Version)
		}
		if err != nil {
			t.pause(&n, err)
		}
	}
}

// pause reports what failed, once for each reason, and waits before the next try.
func (t *term) pause(n *int, err error) {
	if t.ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	news := t.failed != err.Error()
	t.failed = err.Error()
	t.mu.Unlock()
	if news {
		t.o.report(err)
	}
	ttl := t.o.m.TTL()
	_ = clock.Sleep(t.ctx, t.o.clk, min(ttl/500<<min(*n, 8), ttl/10)) // the caller looks at t.ctx
	*n++
}

// keep has a chunk of the map kept from now on.
func (t *term) keep(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i < 0 || i >= t.o.space.Chunks() || t.keepers[i] != nil || t.ctx.Err() != nil {
		return
	}
	k := &keeper{t: t, index: i, kick: make(chan struct{}, 1), held: map[string]*Slice{}, prepared: map[string]*preparation{}, turns: map[string]clock.Instant{}}
	t.keepers[i] = k
	t.o.mu.Lock()
	t.o.kept = append(t.o.kept, i)
	t.o.mu.Unlock()
	t.wg.Go(k.run)
}
