package lease

import (
	"context"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Where the store pushes changes, a session hears of those of its first leases at once, and looks
// without delay. The looks in between remain, since a push may be lost. Each lease that is followed
// costs a goroutine and what the store's Wait costs, so they are few, and a lease that is let go at
// once is not followed.
const followed = 8

// wait is what a looker waits for.
type wait int

const (
	waitDue      wait = iota // the next look is due, or the session's end has come
	waitEnlisted             // a lease was enlisted
	waitPushed               // the store pushed a change
	waitFollow               // leases were enlisted a while ago, and are to be followed
)

// follow follows those leases of the session that have room.
func (k *looker) follow(ctx context.Context) {
	k.followAt = clock.NoDeadline
	for l := range k.following {
		if l.term.Until() == clock.Ended {
			delete(k.following, l)
		}
	}
	if len(k.following) == followed {
		return
	}
	for _, l := range k.s.roster.Members() {
		if len(k.following) == followed {
			return
		}
		if _, known := k.following[l]; !known {
			k.following[l] = struct{}{}
			k.followers.Go(func() { k.watch(ctx, l) })
		}
	}
}

// watch has the session look at once when the store pushes that a lease is not the session's any
// more. It blocks until the lease is over.
func (k *looker) watch(ctx context.Context, l *Lease) {
	m := k.s.hold.m
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.Context(), cancel)()
	for version := l.kept.Version; ctx.Err() == nil; {
		rec, err := store.Wait(ctx, m.run.Store, l.key, version)
		if err != nil { // the looks don't need it
			_ = clock.Sleep(ctx, m.clk, m.timing.Renew) // ctx is looked at above
			continue
		}
		version = rec.Version
		if cause, _ := protocol.Ousted(rec, l.kept); cause != protocol.NotLost {
			wake(k.pushed)
		}
	}
}

// wake wakes the goroutine that waits on c, which has room for one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
