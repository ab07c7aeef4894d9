package admiral

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Operator has an operator's actions on a lease: see who is active, switch over, make every
// instance passive, and undo that. Its methods block until the store has answered, or ctx is done.
// After an error that matches [store.ErrUnknownOutcome] they can be called again.
type Operator struct {
	Store  store.Store
	Config Config // of any instance: the name of the lease, and its TTL
	By     string // the caller, for the record: user@host
	Clock  clock.Clock

	// Term, if it isn't 0, is the token of the term that Switchover and Hold are to end. They
	// change nothing, and return a *[fence.StaleError], when another one has begun.
	Term fence.Token
}

func (o Operator) clk() clock.Clock {
	if o.Clock == nil {
		return clock.System()
	}
	return o.Clock
}

// Record returns the row of the lease; one that isn't there is free.
func (o Operator) Record(ctx context.Context) (store.Record, error) {
	return store.Load(ctx, o.Store, o.Config.LeaseName)
}

// HolderOf returns the pod and the Region that rec names for its holder. They are "" where it names
// none, as a row that Admiral itself wrote.
func HolderOf(rec store.Record) (pod, region string) { return pairs.HolderOf(rec) }

// What the Info of an operator's hold says.
const (
	infoTTL = "ttl" // of the term that it ended
	infoBy  = "by"
)

// Hold keeps every instance passive until [Operator.Resume], by a row whose owner is [SkipOwner],
// and returns that row. Once it is written no instance becomes active. An active instance notices
// at its next renewal, or when its validity ends, at the latest after the TTL. note says why, for
// people. Hold changes nothing if there is a hold already.
func (o Operator) Hold(ctx context.Context, note string) (store.Record, error) {
	rec, err := o.Record(ctx)
	for err == nil && rec.Owner != SkipOwner {
		if err := o.current(rec); err != nil {
			return rec, err
		}
		if rec.Session != "" {
			return rec, fmt.Errorf("%s is kept by a session: it is not the lease of a state checker; break it instead", rec.Key)
		}
		wall := o.clk().Wall()
		token, tokenErr := protocol.NextToken(rec.Token, wall)
		if tokenErr != nil {
			return rec, tokenErr
		}
		info := map[string]string{infoTTL: max(o.Config.TTL(), rec.TTL).String(), infoBy: o.By}
		if rec.Owner == "" {
			info[pairs.InfoSettled] = "true"
		}
		claim := protocol.Claim{Owner: SkipOwner, TTL: store.MaxTTL, Info: info}
		next := protocol.Claimed(rec, claim, token, "held passive by "+o.By, wall, rand.Text())
		next.Note = noted(o.By, note)
		rec, err = o.put(ctx, next)
	}
	return rec, err
}

// current refuses a row of another term than the one that is to end.
func (o Operator) current(rec store.Record) error {
	if o.Term == 0 || rec.Token == o.Term {
		return nil
	}
	return &fence.StaleError{Name: rec.Key, Got: o.Term, Current: rec.Token, Holder: rec.Owner}
}

// put writes next, and returns what is there instead, without an error, when the row was changed
// meanwhile.
func (o Operator) put(ctx context.Context, next store.Record) (store.Record, error) {
	rec, err := o.Store.Put(ctx, next)
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &conflict):
		return conflict.Current, nil
	case errors.Is(err, store.ErrNotFound):
		return store.Record{Key: next.Key}, nil
	}
	return rec, err
}

func noted(by, note string) string {
	if note != "" {
		by += ": " + note
	}
	if len(by) > store.MaxKey {
		by = string([]rune(by)[:store.MaxKey/4]) // a rune has 4 bytes at most
	}
	return by
}

// Settled reports whether held is a hold under which certainly no instance is active.
func (o Operator) Settled(held store.Record) bool { return pairs.Settled(held) }

// Settle blocks until the instance that was active when Hold wrote held has certainly stopped,
// which takes the TTL. It notes that in the row: from then on Resume frees the lease at once.
func (o Operator) Settle(ctx context.Context, held store.Record) error {
	if o.Settled(held) {
		return nil
	}
	if err := clock.Sleep(ctx, o.clk(), o.endedTTL(held)); err != nil {
		return err
	}
	next := held.Clone()
	next.Info[pairs.InfoSettled], next.Nonce = "true", rand.Text()
	_, err := o.Store.Put(ctx, next)
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%s was changed meanwhile: %w", held.Key, err)
	}
	return err
}

// endedTTL is the TTL of the term that a hold ended. A row that was written by hand doesn't say; 0
// if nothing does.
func (o Operator) endedTTL(held store.Record) time.Duration {
	d, err := time.ParseDuration(held.Info[infoTTL])
	if err != nil {
		d = 0 // written by hand
	}
	return min(max(d, o.Config.TTL()), store.MaxTTL)
}

// Resume ends an operator's hold. It returns the row, and how long the instances leave it alone.
// That is 0 when the hold is settled. Otherwise it is the TTL, since the instance that was active
// before may not have noticed yet. The error matches [ErrNotHeld] when there is no hold, and
// [ErrNoTTL] when neither the row nor Config says that time.
func (o Operator) Resume(ctx context.Context) (rec store.Record, wait time.Duration, err error) {
	rec, err = o.Record(ctx)
	for err == nil {
		if rec.Owner != SkipOwner {
			return rec, 0, fmt.Errorf("%s: %w", o.Config.LeaseName, ErrNotHeld)
		}
		if !o.Settled(rec) && o.endedTTL(rec) == 0 {
			return rec, 0, fmt.Errorf("%s: %w: resume it by `leasehold standby resume --config FILE`", o.Config.LeaseName, ErrNoTTL)
		}
		next, ttl := o.resumed(rec)
		var conflict *store.ConflictError
		stored, putErr := o.Store.Put(ctx, next)
		if !errors.As(putErr, &conflict) {
			return stored, ttl, putErr
		}
		rec = conflict.Current
	}
	return rec, 0, err
}

// resumed returns the row without the hold. One that is not settled gets an owner that nobody is:
// it counts as abandoned when an instance has seen it unchanged for the TTL.
func (o Operator) resumed(rec store.Record) (store.Record, time.Duration) {
	next := protocol.Freed(rec, "resumed by "+o.By, o.clk().Wall(), rand.Text())
	if o.Settled(rec) {
		return next, 0
	}
	next.Owner, next.TTL, next.Acquired = pairs.ResumedOwner, o.endedTTL(rec), o.clk().Wall()
	next.Note = noted(o.By, "the hold is over; the TTL of the instance that was active before it has to pass")
	return next, next.TTL
}
