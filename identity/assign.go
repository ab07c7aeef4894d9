package identity

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// AssignOptions of an assignment. The zero value assigns any value of a pool that is declared.
type AssignOptions struct {
	Options

	// Value is the one to assign; "" for any.
	Value string
	// TTL is how long the assignment lasts past the last Assign of that name: [store.MaxTTL], a
	// year, by default.
	TTL time.Duration
	// Holder is the id under which the value is held. It must be unique for good. By default it is
	// made of As and a random part.
	Holder string
	// Session, if set, is the key of an open session's record, whose renewals keep the value
	// instead of the TTL. The holder is the session's then.
	Session string
	// Info is for people.
	Info map[string]string
}

// Assignment is a value that a name has without a process that renews it.
type Assignment struct {
	Pool   string
	Value  string
	Number uint64 // see [Hold.Number]
	Name   string
	Floor  time.Time // times in ids: from here on,
	// Ceiling is up to where. It is stored, and rises with the next Assign only.
	Ceiling time.Time
	Record  store.Record // of the lease
	Renewed bool         // the name had it already
}

// Sequencer returns what a request to a guarded resource carries.
func (a Assignment) Sequencer() fence.Sequencer {
	return fence.Sequencer{Name: a.Record.Key, Holder: a.Record.Owner, Token: a.Record.Token}
}

// Assign gives a value to an instance as long as Assign is repeated within the TTL, or until
// [Release]. No process has to live for that. It is for values that are written down elsewhere,
// such as in a machine's configuration. The values, and which value an instance gets, are as with
// [Claim].
//
// A name that has a value already keeps it, under the same token, and its TTL and window restart.
// So Assign may be repeated. While a process keeps the value under that name, or under another
// session, it is a *[lease.HeldError]. A [Claim] of the name takes over an assignment.
//
// An assignment is a lease without a session, whose TTL is long, and which Assign renews in place.
// m acquires the lease, hands it over and stores its window. The last write sets the long TTL. So
// the TTL of m bounds how long the value stays held if Assign fails halfway.
//
// Assign blocks until the store has answered or ctx is done. After an error that matches
// [store.ErrUnknownOutcome] the value may have been assigned. With a name, Assign can be repeated.
func Assign(ctx context.Context, m *lease.Manager, pool string, o AssignOptions) (Assignment, error) {
	if err := o.complete(pool); err != nil {
		return Assignment{}, fmt.Errorf("assign: %w", err)
	}
	a := &assigning{claim: newClaim(m, m, pool, o.Options), opts: o}
	a.value, a.hasty, a.standing = o.Value, true, o.Session == ""
	got, err := a.run(ctx)
	for errors.Is(err, errBound) { // another one of that name was first
		got, err = a.run(ctx)
	}
	if err != nil {
		return Assignment{}, fmt.Errorf("assign a value of %s: %w", pool, err)
	}
	return got, nil
}

func (o *AssignOptions) complete(pool string) error {
	if err := o.check(pool); err != nil {
		return err
	}
	o.Window = cmp.Or(o.Window, defaultWindow)
	o.TTL = cmp.Or(o.TTL, store.MaxTTL)
	if o.TTL < store.MinTTL || o.TTL > store.MaxTTL {
		return fmt.Errorf("option TTL %v: want %v to %v", o.TTL, store.MinTTL, store.MaxTTL)
	}
	return nil
}

// assigning is one call of Assign.
type assigning struct {
	*claim
	opts AssignOptions
}

func (a *assigning) run(ctx context.Context) (Assignment, error) {
	owner, err := a.owner(ctx)
	if err == nil { // before anything is taken
		err = driver.Check(protocol.Claimed(store.Record{Key: poolKey(a.name)}, a.claimOf(owner), 1, "", time.Time{}, "nonce"))
	}
	if err != nil {
		return Assignment{}, err
	}
	if err := a.load(ctx); err != nil {
		return Assignment{}, err
	}
	if got, found, err := a.again(ctx); found || err != nil {
		return got, err
	}
	l, place, err := a.take(ctx)
	if err != nil {
		return Assignment{}, err
	}
	if err := l.HandOver(ctx, owner); err != nil {
		return Assignment{}, err
	}
	return a.settle(ctx, owner, place)
}

// owner returns the id under which the value is going to be held.
func (a *assigning) owner(ctx context.Context) (string, error) {
	if a.opts.Session == "" {
		if a.opts.Holder != "" {
			return a.opts.Holder, nil
		}
		return strings.TrimPrefix(a.opts.Name+"/"+strings.ToLower(rand.Text()[:13]), "/"), nil
	}
	rec, err := store.Load(ctx, a.st, a.opts.Session)
	if err == nil && rec.Owner == "" {
		err = protocol.Stale(rec, rec.Token)
	}
	return rec.Owner, err
}

// again finds what the name has already, and counts it anew.
func (a *assigning) again(ctx context.Context) (got Assignment, found bool, err error) {
	if a.opts.Name == "" {
		return Assignment{}, false, nil
	}
	n, err := a.named(ctx, a.opts.Name)
	if err != nil {
		return Assignment{}, false, err
	}
	place, ok := a.set.place(n.Value)
	if !ok || a.opts.Value != "" && a.opts.Value != n.Value {
		return Assignment{}, false, nil // take says what is wrong with that
	}
	w, err := a.window(ctx, n.Value)
	if err != nil || w.Name != a.opts.Name {
		return Assignment{}, false, err
	}
	rec, err := a.extend(ctx, n.Value, w.Token, func(rec store.Record) bool {
		return rec.Session == a.opts.Session && w.Standing == a.standing
	})
	if errors.Is(err, errTaken) {
		return Assignment{}, false, nil
	}
	if err == nil {
		err = raise(ctx, a.st, windowKey(a.name, n.Value), w.Token, a.m.Clock().Wall().Add(a.opts.Window))
	}
	if err == nil {
		w, err = a.window(ctx, n.Value)
	}
	got = a.assignment(rec, place, w)
	got.Renewed = true
	return got, true, err
}

// extend counts the TTL of a lease anew, if it is held under that token in the way that mine wants.
// Else it is errTaken.
func (a *assigning) extend(ctx context.Context, value string, token fence.Token, mine func(store.Record) bool) (store.Record, error) {
	return a.rewrite(ctx, value, func(rec store.Record) (store.Record, bool, error) {
		if rec.Owner == "" || rec.Token != token || rec.Intervention != "" || !mine(rec) {
			return rec, false, errTaken
		}
		if a.opts.Session != "" { // which keeps it
			return rec, false, nil
		}
		rec.TTL = a.opts.TTL
		return rec, true, nil
	})
}

// rewrite changes the record of a value's lease, and returns it as it is then.
func (a *assigning) rewrite(ctx context.Context, value string, f func(store.Record) (store.Record, bool, error)) (out store.Record, err error) {
	err = store.Update(ctx, a.st, pools.Key(a.name, value), func(rec *store.Record) (bool, error) {
		next, write, err := f(*rec)
		*rec, out = next, next
		return write, err
	})
	return out, err
}

// claimOf is what is written of the holder.
func (a *assigning) claimOf(owner string) protocol.Claim {
	return protocol.Claim{Owner: owner, TTL: a.m.TTL(), Session: a.opts.Session, Info: a.opts.Info}
}

// settle makes an assignment of what was handed over to owner. The long TTL comes last: what fails
// before that ends soon.
func (a *assigning) settle(ctx context.Context, owner string, place int) (Assignment, error) {
	value := a.set.value(place)
	taken := false
	rec, err := a.rewrite(ctx, value, func(rec store.Record) (store.Record, bool, error) {
		switch {
		case rec.Owner == owner && rec.Intervention == store.InterventionHandedOver:
			token, err := protocol.NextToken(rec.Token, a.m.Clock().Wall())
			taken = true
			return protocol.Claimed(rec, a.claimOf(owner), token, protocol.WhyHanded, a.m.Clock().Wall(), ""), true, err
		case rec.Owner == owner && taken: // an earlier try of this one landed
			return rec, false, nil
		}
		return rec, false, protocol.Stale(rec, rec.Token)
	})
	if err != nil {
		return Assignment{}, err
	}
	w, err := a.grant(ctx, place, rec.Token, a.standing)
	if err == nil {
		rec, err = a.extend(ctx, value, rec.Token, func(now store.Record) bool { return now.Owner == owner })
	}
	return a.assignment(rec, place, w), err
}

func (a *assigning) assignment(rec store.Record, place int, w window) Assignment {
	return Assignment{
		Pool: a.name, Value: a.set.value(place), Number: a.set.low + uint64(place), Name: a.opts.Name,
		Floor: w.Floor, Ceiling: w.Ceiling, Record: rec,
	}
}

// relieve has the claim's manager be the successor of a standing assignment under that token, so
// that the next try takes the lease.
func (c *claim) relieve(ctx context.Context, value string, token fence.Token) error {
	return store.Update(ctx, c.st, pools.Key(c.name, value), func(rec *store.Record) (bool, error) {
		if rec.Token != token || rec.Owner == "" || rec.Session != "" || rec.Intervention != "" {
			return false, nil // it has changed: the next try tells
		}
		next, err := protocol.HandedOver(*rec, c.m.Holder(), c.m.TTL(), c.m.Clock().Wall(), "")
		*rec = next
		return err == nil, err
	})
}

// mayMove returns an error if the name holds that value.
func (c *claim) mayMove(ctx context.Context, value string) error {
	w, err := c.window(ctx, value)
	if err != nil || w.Name != c.opts.Name {
		return err
	}
	rec, err := store.Load(ctx, c.st, pools.Key(c.name, value))
	if err == nil && rec.Owner != "" && rec.Token == w.Token {
		err = &OtherValueError{Pool: c.name, Name: c.opts.Name, Value: value}
	}
	return err
}

// ReleaseOptions select the assignment to end.
type ReleaseOptions struct {
	// Value is the one to end the assignment of; "" is that which Name has.
	Value string
	// Token of the term to end. It has to be there if a process or a session keeps the value; else
	// 0 is whichever there is.
	Token fence.Token
	// As is the name that the value has to belong to; "" for any name.
	Name string
	// Used is the time from which on no id was made with the value. The zero time means unknown:
	// then the next holder's window begins at the ceiling.
	Used time.Time
	// By is the caller, for people: user@host.
	By string
	// Clock is where time comes from; [clock.System] by default.
	Clock clock.Clock
}

// NotAssignedError says that a value is not an assignment: a process or a session keeps it. It
// matches [ErrNotAssigned].
type NotAssignedError struct {
	Pool, Value string
	Record      store.Record // of the lease
}

func (e *NotAssignedError) Error() string {
	return fmt.Sprintf("%s of %s is kept by %s, under token %d: end that, or name the token", e.Value, e.Pool, e.Record.Owner, e.Record.Token)
}

// Is reports whether target is [ErrNotAssigned].
func (e *NotAssignedError) Is(target error) bool { return target == ErrNotAssigned }

// Release ends an assignment, and returns its value. The caller vouches that the value is not used
// any more: it is free at once. The name gets the value back later if it is still free then.
//
// Release blocks until the store has answered or ctx is done. The error is a
// *[fence.StaleError] if nobody has the value, or another instance than the named one. It is a
// *[NotAssignedError] if the value isn't an assignment.
func Release(ctx context.Context, st store.Store, pool string, o ReleaseOptions) (string, error) {
	value, err := release(ctx, st, pool, o)
	if err != nil {
		return value, fmt.Errorf("release a value of %s: %w", pool, err)
	}
	return value, nil
}

func release(ctx context.Context, st store.Store, pool string, o ReleaseOptions) (string, error) {
	if err := (Options{Name: o.Name}).check(pool); err != nil {
		return "", err
	}
	c, value := &claim{st: st, name: pool}, o.Value
	var err error
	if _, _, c.set, err = declared(ctx, st, pool, Values{}); err != nil {
		return "", err
	}
	if value == "" && o.Name != "" {
		n, err := c.named(ctx, o.Name)
		if err != nil {
			return "", err
		}
		if value = n.Value; value == "" {
			return "", &fence.StaleError{Name: pools.Key(pool, o.Name)}
		}
	}
	if _, ok := c.set.place(value); !ok {
		return value, &OutsideError{Pool: pool, Value: value, Values: c.set.Values}
	}
	rec, err := c.releasable(ctx, value, o)
	if err != nil {
		return value, err
	}
	err = closeWindow(ctx, st, windowKey(pool, value), rec.Token, o.Used)
	_, failed := drive.Free(ctx, st, orSystem(o.Clock), rec.Key, drive.EndTerm{Token: rec.Token, By: o.By})
	if err = errors.Join(err, failed); err == nil {
		offer(ctx, st, orSystem(o.Clock), pool, value, offerPause)
	}
	return value, err
}

// releasable returns the record of a value's lease, if it is one that o says to end.
func (c *claim) releasable(ctx context.Context, value string, o ReleaseOptions) (store.Record, error) {
	rec, err := store.Load(ctx, c.st, pools.Key(c.name, value))
	if err != nil {
		return rec, err
	}
	w, err := c.window(ctx, value)
	current := w.Token == rec.Token
	switch {
	case err != nil:
		return rec, err
	case rec.Owner == "", o.Token != 0 && o.Token != rec.Token, o.Name != "" && current && w.Name != o.Name:
		return rec, protocol.Stale(rec, cmp.Or(o.Token, rec.Token))
	case o.Token == 0 && !(current && w.Standing && rec.Session == ""):
		return rec, &NotAssignedError{c.name, value, rec}
	}
	return rec, nil
}

// offerPause is about how long an offer that lost a race waits before the next.
const offerPause = 50 * time.Millisecond
