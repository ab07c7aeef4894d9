package lessor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The errors to branch on beside those of packages lease and store.
var (
	ErrClosed   = errors.New("the registry is closed")
	ErrReplaced = errors.New("the same request was sent again, and has this one's place")
	ErrRemoved  = errors.New("the request was taken out of the queue")
)

// Request is what a holder elsewhere wants.
type Request struct {
	Key     string
	Owner   string            // under which the name is held: nobody else's, ever
	TTL     time.Duration     // how long the hold lasts past its last renewal
	Session string            // key of the session that keeps it; "" when it is renewed by itself
	Info    map[string]string // for people
	Wait    time.Duration     // how long to wait for the name at most; 0 for not at all

	// ID is the same when the request is sent again, and no other's. A request that is sent again
	// takes the place of the first one in the queue, and if that has been granted, it is granted
	// the same term and told the same secret. "" for one that never is. It begins with who the
	// caller is, so that nobody else sends it. It is neither stored nor shown.
	ID string

	// Secret, if set, is the secret of the grant: 128 bits or more that nobody can guess. Otherwise
	// the registry makes one.
	Secret string
}

// Grant is a name that is held.
type Grant struct {
	Record store.Record
	// ValidUntil is until when the holder may rely on it, by the registry's clock;
	// [clock.NoDeadline] if a session keeps it.
	ValidUntil clock.Instant
	Notice     []byte // on a session's record: what the session is told; see package lease
	// Lost are the leases of a session that is renewed which are over though it lives, by name;
	// LookedAt is how many were looked at for this answer.
	Lost     map[string]Loss
	LookedAt int
	// Of a new grant: what proves it from now on. Nobody else sees it, and it is stored nowhere.
	Secret string
}

// Waiter is a place in a queue.
type Waiter struct {
	Owner string
	ID    string
	Info  map[string]string
	Since clock.Instant
	Until clock.Instant
}

// Options of a [Registry].
type Options struct {
	Clock clock.Clock // [clock.System] by default
	// Names bounds how many names without a request under way are remembered: 10,000 by default.
	// What is forgotten costs a read, or on a store without Age a wait of one TTL, not safety.
	Names int
	// OnQueue, if set, is told when a queue has become longer or shorter. It must not block, nor
	// call the registry.
	OnQueue func(key string, waiting int)
}

// Registry grants names in one store. It is safe for concurrent use.
type Registry struct {
	st  store.Store
	clk clock.Clock
	run drive.Runner // on both

	watch *sessions.Watch // of members of names that are of another kind
	opts  Options

	suppose bool // a name that isn't known is supposed to be new

	ctx  context.Context // done when the registry is closed
	stop context.CancelCauseFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	names  map[string]*name
	queued atomic.Int64 // how many wait in all queues

	places  places
	keepers keepers
}

// New returns a registry on st, which it doesn't own. It does no I/O. Close it when it is done
// with.
func New(st store.Store, opts Options) *Registry {
	if opts.Clock == nil {
		opts.Clock = clock.System()
	}
	if opts.Names == 0 {
		opts.Names = 10_000
	}
	props := store.Describe(st)
	r := &Registry{
		st: st, clk: opts.Clock, run: drive.Runner{Store: st, Clock: opts.Clock, HTTP: props.OverHTTP}, opts: opts, names: map[string]*name{},
		suppose: props.CheapRefusal,
	}
	r.run.Go = r.start
	r.watch = sessions.NewWatch(look{st, opts.Clock}, nil)
	r.places.until, r.places.turn = r.clk.Now().Add(returning), make(chan struct{}, 1)
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r
}

// look is how the registry looks at sessions: each request is bounded by a tenth of its TTL.
type look struct {
	st  store.Store
	clk clock.Clock
}

func (l look) Store() store.Store { return l.st }
func (l look) Clock() clock.Clock { return l.clk }
func (l look) TTL() time.Duration { return patience }

// Close ends all requests with [ErrClosed] and waits for what is under way. What is granted stays
// granted. Requests with an ID that are sent again to the next registry on the store, within 30 s
// of its beginning, have their places in its queues. Closing twice is no error.
func (r *Registry) Close() error {
	r.mu.Lock()
	var waited savedPlaces
	if !r.closed {
		waited = r.queues()
	}
	r.closed = true
	r.mu.Unlock()
	r.stop(ErrClosed)
	r.wg.Wait()
	r.save(waited)
	return nil
}

// Acquire takes a name. While somebody else holds it, Acquire waits in its queue, for req.Wait at
// most: then the error is a *[lease.HeldError]. When ctx is done the place in the queue is given
// up, and a grant that crossed that is freed. A store that doesn't answer is asked again for as
// long, and for 10 s if there is nothing to wait for.
//
// An error that matches [store.ErrInvalid] says what is wrong with the request.
func (r *Registry) Acquire(ctx context.Context, req Request) (Grant, error) {
	about, err := check(req)
	if err != nil {
		return Grant{}, err
	}
	rank := r.rank(ctx, req)
	w := newWaiter(req, about, r.clk.Now())
	w.rank = rank
	n, idle, err := r.ask(req.Key, func(n *name) { n.enqueue(w) })
	if err != nil {
		return Grant{}, err
	}
	if idle {
		n.try(ctx, w)
	}
	a := n.answered(ctx, w)
	if a.err == nil && ctx.Err() != nil { // nobody is there to be told
		r.free(a.grant.Record)
		return Grant{}, context.Cause(ctx)
	}
	if a.err == nil {
		r.keepers.enlist(a.grant.Record)
		a.grant.Secret, _ = w.secretOf(a.grant.Record)
	}
	return a.grant, a.err
}

// free frees in the background what was granted to nobody.
func (r *Registry) free(rec store.Record) {
	r.start(func() { _, _ = r.Release(r.ctx, rec.Key, rec.Owner, rec.Token, protocol.WhyGivenUp, nil) })
}

// Renew renews a term, with another TTL if ttl isn't 0. The error is a *[fence.StaleError] when the
// term is over, and a *[lease.LostError] when an operator broke it: then it is to be released; and
// that of by, if the request does not prove the term. After one that matches
// [store.ErrUnknownOutcome] it may be called again.
func (r *Registry) Renew(ctx context.Context, key, owner string, token fence.Token, ttl time.Duration, by Proof) (Grant, error) {
	return r.renew(ctx, key, owner, token, ttl, by, untouched)
}

// untouched leaves a notice for the session that it is for.
func untouched(notice []byte) []byte { return notice }

func (r *Registry) renew(ctx context.Context, key, owner string, token fence.Token, ttl time.Duration, by Proof, left func([]byte) []byte) (Grant, error) {
	if ttl != 0 && (ttl < store.MinTTL || ttl > store.MaxTTL) {
		return Grant{}, badTTL(ttl)
	}
	return r.change(ctx, key, func(ctx context.Context, n *name) (Grant, error) { return n.renew(ctx, owner, token, ttl, by, left) })
}

// Release ends a term, and returns the record as it is then: the next term's, if somebody was
// waiting. The error is a *[fence.StaleError] when the term is over already, and that of by, if the
// request does not prove the term. After one that matches [store.ErrUnknownOutcome] it may be
// called again.
func (r *Registry) Release(ctx context.Context, key, owner string, token fence.Token, why string, by Proof) (store.Record, error) {
	g, err := r.change(ctx, key, func(ctx context.Context, n *name) (Grant, error) { return n.release(ctx, owner, token, why, by) })
	if err == nil || errors.Is(err, fence.ErrStale) {
		r.keepers.forget(key, owner, token)
	}
	return g.Record, err
}

// change has the goroutine of a name do something. It is not begun once ctx is done. A change that
// was begun goes on when ctx is cancelled, and is given up, with an outcome that may be unknown,
// when the time of ctx is over.
func (r *Registry) change(ctx context.Context, key string, do func(context.Context, *name) (Grant, error)) (Grant, error) {
	done := make(chan answer, 1)
	var settled atomic.Bool // it was begun, or given up before
	n, idle, err := r.ask(key, func(n *name) {
		n.todo = append(n.todo, func() {
			if !settled.CompareAndSwap(false, true) {
				return
			}
			if ctx.Err() != nil {
				done <- answer{err: context.Cause(ctx)}
				return
			}
			timed, cancel := context.WithCancelCause(r.ctx)
			defer cancel(nil)
			defer context.AfterFunc(ctx, func() {
				if why := context.Cause(ctx); errors.Is(why, context.DeadlineExceeded) {
					cancel(why)
				}
			})()
			g, err := do(timed, n)
			done <- answer{g, err}
		})
	})
	if err != nil {
		return Grant{}, err
	}
	if idle {
		n.turn()
	}
	select {
	case a := <-done:
		return a.grant, a.err
	case <-ctx.Done():
		if settled.CompareAndSwap(false, true) { // it is not its turn yet
			return Grant{}, context.Cause(ctx)
		}
	}
	a := <-done
	return a.grant, a.err
}

// Remove takes the request of that ID out of the queue of a name, or all for "", and returns how
// many it found. Their error is then [ErrRemoved].
func (r *Registry) Remove(key, id string) int {
	r.mu.Lock()
	n := r.names[key]
	r.mu.Unlock()
	if n == nil {
		return 0
	}
	return n.remove(id)
}

// Queued returns how many wait for a name here.
func (r *Registry) Queued(key string) int {
	r.mu.Lock()
	n := r.names[key]
	r.mu.Unlock()
	if n == nil {
		return 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queue.Len()
}

// QueuedInAll returns how many wait for any name here. It takes no lock: whoever reads metrics
// keeps no request waiting.
func (r *Registry) QueuedInAll() int { return int(r.queued.Load()) }

// Waiting returns who waits for a name here, in order.
func (r *Registry) Waiting(key string) []Waiter {
	r.mu.Lock()
	n := r.names[key]
	r.mu.Unlock()
	if n == nil {
		return nil
	}
	return n.waiting()
}

// start runs f in a goroutine that Close waits for. It reports false, and doesn't, when the
// registry is closed.
func (r *Registry) start(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.wg.Go(f)
	}
	return !r.closed
}

// ask puts something to the goroutine of a name. If the name was idle, there is none: the caller
// has to call start or turn.
func (r *Registry) ask(key string, put func(*name)) (n *name, idle bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false, ErrClosed
	}
	n = r.names[key]
	if n == nil {
		r.evict()
		n = newName(r, key)
		r.names[key] = n
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	put(n)
	if idle = !n.running; idle {
		n.running = true
		r.wg.Add(1)
	}
	n.poke()
	return n, idle, nil
}

// evict makes room for one more name, if there are too many of which nothing is asked. It looks at
// a few only.
func (r *Registry) evict() {
	looked := 0
	for key, n := range r.names {
		if looked++; len(r.names) < r.opts.Names || looked > 16 {
			return
		}
		n.mu.Lock()
		if !n.running {
			delete(r.names, key)
		}
		n.mu.Unlock()
	}
}

// check returns the info of the record that a request asks for, with room for what the record keeps
// of a secret; or what is wrong with the request.
func check(req Request) (map[string]string, error) {
	if keyspace.Reserved(req.Key) {
		return nil, &store.InvalidError{Field: "Key", Value: fmt.Sprintf("%.40q", req.Key), Want: "a name that does not begin with a dot: those are Leasehold's own"}
	}
	if req.Owner == "" {
		return nil, &store.InvalidError{Field: "Owner", Value: `""`, Want: "the holder's id"}
	}
	for key := range req.Info {
		if OwnInfo(key) {
			return nil, badInfo(key)
		}
	}
	if req.Wait < 0 {
		return nil, &store.InvalidError{Field: "Wait", Value: req.Wait.String(), Want: "0, which is not to wait, or more"}
	}
	m := info(req, strings.Repeat("x", keptSize))
	return m, driver.Check(store.Record{Key: req.Key, Owner: req.Owner, Token: 1, TTL: req.TTL, Session: req.Session, Info: m, Nonce: "nonce"})
}

// keptSize is how many bytes a record keeps of a secret.
var keptSize = len(keptOf(make([]byte, 16), ""))

func badInfo(key string) error {
	return &store.InvalidError{Field: "Info", Value: fmt.Sprintf("%.40q", key), Want: "keys that do not begin with a dot: those are Leasehold's own"}
}

func badTTL(ttl time.Duration) error {
	return &store.InvalidError{Field: "TTL", Value: ttl.String(), Want: fmt.Sprintf("%v to %v", store.MinTTL, store.MaxTTL)}
}
