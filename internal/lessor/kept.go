package lessor

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// A session's renewals say nothing of the records of what it keeps. So each renewal of one looks at
// these, too, as package lease does for its own sessions, and its answer names what was lost. What
// is looked at is what the holder elsewhere names, and else what was granted for the session here
// since this registry opened or first renewed it: that lives in memory, and what is forgotten is
// not looked at.

// Loss is a lease of a session that is over though the session lives.
type Loss struct {
	Token fence.Token
	Cause lease.Cause // [lease.CauseTaken] or [lease.CauseBroken]
	Err   error       // what its record says
}

// patienceOfLooks is the share of the TTL that the answer to a renewal waits for its look. A look
// that takes longer continues, and its findings are in the next answer.
const patienceOfLooks = 12

// kept is a lease that a session keeps.
type kept struct {
	term store.Record // as far as its session goes: key, owner, token and session
	loss atomic.Pointer[Loss]
}

// Name implements [drive.Member].
func (k *kept) Name() string { return k.term.Key }

// Token implements [drive.Member].
func (k *kept) Token() fence.Token { return k.term.Token }

// keeper is what a registry knows of a session.
type keeper struct {
	roster drive.Roster[*kept]
	// When the session is over unless it is renewed here; guarded by the keepers' mu.
	until clock.Instant

	mu      sync.Mutex
	looks   drive.Looks[*kept]
	looking *glance // that is under way; nil when there is none
}

// keepers are the sessions of a registry, by their owners, each of which has one.
type keepers struct {
	mu  sync.Mutex
	all map[string]*keeper
	few int // with that many there is something to forget, perhaps
}

// manyKeepers is from how many sessions on those that are over are looked for now and then.
const manyKeepers = 1024

// renewed returns the keeper of a session that was just opened or renewed.
func (ks *keepers) renewed(st store.Store, owner string, until, now clock.Instant) *keeper {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	k := ks.all[owner]
	if k == nil {
		k = &keeper{looks: drive.Looks[*kept]{
			Store: st,
			Term:  func(l *kept) store.Record { return l.term },
			Over:  func(l *kept) bool { return l.loss.Load() != nil },
			End: func(l *kept, cause protocol.Cause, why error) {
				l.loss.Store(&Loss{l.term.Token, causes[cause], why})
			},
		}}
		if ks.all == nil {
			ks.all = map[string]*keeper{}
		}
		ks.all[owner] = k
	}
	k.until = until
	if len(ks.all) >= max(ks.few, manyKeepers) {
		for owner, k := range ks.all {
			if k.until <= now {
				delete(ks.all, owner)
			}
		}
		ks.few = 2 * len(ks.all)
	}
	return k
}

// causes are those of looks, as package lease has them.
var causes = map[protocol.Cause]lease.Cause{protocol.CauseTaken: lease.CauseTaken, protocol.CauseBroken: lease.CauseBroken}

func (ks *keepers) of(owner string) *keeper {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.all[owner]
}

// over forgets a session.
func (ks *keepers) over(owner string) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	delete(ks.all, owner)
}

// enlist takes note of a lease that was granted for a session that is known here.
func (ks *keepers) enlist(rec store.Record) {
	if k := ks.of(rec.Owner); k != nil && rec.Session != "" {
		k.enlist(rec.Key, rec.Owner, rec.Session, rec.Token)
	}
}

// forget takes out what was let go, or the session itself.
func (ks *keepers) forget(key, owner string, token fence.Token) {
	k := ks.of(owner)
	switch {
	case k == nil:
	case keyspace.OwnerOf(key) != "":
		ks.over(owner)
	default:
		k.forget(key, token)
	}
}

// letGo takes a lease out, whichever session kept it.
func (ks *keepers) letGo(key string) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for _, k := range ks.all {
		if l, ok := k.roster.Member(key); ok {
			k.roster.Forget(l)
		}
	}
}

// enlist adds a lease. One of that name that was lost makes room, whatever its token: a record that
// was deleted may begin with a lower one.
func (k *keeper) enlist(key, owner, session string, token fence.Token) {
	if l, ok := k.roster.Member(key); ok && l.loss.Load() != nil {
		k.roster.Forget(l)
	}
	k.roster.Enlist(&kept{term: store.Record{Key: key, Owner: owner, Session: session, Token: token}})
}

func (k *keeper) forget(key string, token fence.Token) {
	if l, ok := k.roster.Member(key); ok && l.Token() == token {
		k.roster.Forget(l)
	}
}

// named has the session keep what its holder says that it keeps, and nothing else.
func (k *keeper) named(session store.Record, leases map[string]fence.Token) {
	for _, l := range k.roster.Members() {
		if leases[l.Name()] != l.Token() {
			k.roster.Forget(l)
		}
	}
	for key, token := range leases {
		if _, ok := k.roster.Member(key); !ok {
			k.enlist(key, session.Owner, session.Key, token)
		}
	}
}

// glance is one look at what a session keeps.
type glance struct {
	over  chan struct{}
	whole bool // all was looked at; set before over is closed
}

// look looks at what a session keeps, and adds to the answer of its renewal what was lost. A look
// that began before that, and is under way, is waited for first.
func (r *Registry) look(ctx context.Context, k *keeper, g *Grant) {
	ctx, cancel := clock.WithTimeout(ctx, r.clk, g.Record.TTL/patienceOfLooks)
	defer cancel()
	whole := false
	for mine := false; !mine && ctx.Err() == nil; {
		var l *glance
		if l, mine = r.glance(k, g.Record.TTL); l == nil {
			return
		}
		select {
		case <-l.over:
			whole = mine && l.whole
		case <-ctx.Done():
		}
	}
	for _, l := range k.roster.Members() {
		if whole {
			g.LookedAt++
		}
		if loss := l.loss.Load(); loss != nil {
			if g.Lost == nil {
				g.Lost = map[string]Loss{}
			}
			g.Lost[l.Name()] = *loss
		}
	}
}

// glance returns the look that is under way, or begins one, and reports whether it did; nil when
// the registry is closed.
func (r *Registry) glance(k *keeper, ttl time.Duration) (l *glance, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r.closed:
		return nil, false
	case k.looking != nil:
		return k.looking, false
	}
	l = &glance{over: make(chan struct{})}
	k.looking = l
	t := protocol.Timing{TTL: ttl}.WithDefaults()
	r.wg.Go(func() {
		ctx, cancel := clock.WithTimeout(r.ctx, r.clk, t.Renew)
		defer cancel()
		err := k.looks.Look(ctx, k.roster.Members())
		// The store doesn't answer: again, until the next renewal.
		for err != nil && clock.Sleep(ctx, r.clk, t.Attempt) == nil {
			err = k.looks.Look(ctx, k.roster.Members())
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.looking, l.whole = nil, err == nil
		close(l.over)
	})
	return l, true
}
