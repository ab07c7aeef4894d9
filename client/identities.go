package client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/pools"
)

// AssignOptions of [Client.Assign].
type AssignOptions struct {
	// Of the pool: the first call sets them; after that they have to be the same, or empty.
	Values identity.Values
	// Of the ids that are made with the values, as [flake.ParseLayout] reads it: the pool keeps the
	// first one. "" names none.
	Layout string
	// The name that gets the value: the same name gets the same value. With "" each call is for a
	// new instance.
	As    string
	Value string // this one, and no other; "" for any
	// How long the value stays held after the last Assign of that name: by default the longest that
	// the server allows.
	TTL time.Duration
	// How far ahead of now ids made with the value may be dated: 2 min by default.
	Window  time.Duration
	Session Session           // keeps the value, instead of the TTL; the zero value for none
	Info    map[string]string // for people
}

// Identity is a value of a pool that an instance has.
type Identity struct {
	Pool      string
	Value     string
	Number    uint64 // the value of a range; else its place in the pool, from 0 on
	As        string
	Standing  bool   // it is assigned until its TTL is over; else a process or a session keeps it
	Holder    string // the id under which it is held
	Token     fence.Token
	Acquired  time.Time     // by the wall clock of the process that granted it; for people
	TTL       time.Duration // 0 if a process or a session keeps it
	ExpiresIn time.Duration // when the server answered, unless it is assigned again; 0 as TTL is
	Session   string
	Floor     time.Time // ids made with it have times from here on: see [identity.Hold.Floor]
	Ceiling   time.Time // up to here, and no others
	Info      map[string]string

	// Sequencer is what requests to a guarded resource carry, and what proves the term to the
	// server. Lists have none.
	Sequencer string
	Renewed   bool // the name had it already
}

// Assign assigns a value of a pool. No other instance has the value. A name that has one already
// gets that, under the same token, and its TTL and window restart. The error matches:
//
//   - [identity.ErrExhausted] when all values are held;
//   - [identity.ErrMismatch] when the pool has other values, or the name another one;
//   - [identity.ErrUndeclared] when the pool's values are not declared yet.
//
// It is a *[lease.HeldError] when a process keeps the name's value. After an error that matches
// [store.ErrUnknownOutcome] the value may have been assigned. With a name, call Assign again.
func (c *Client) Assign(ctx context.Context, pool string, o AssignOptions) (Identity, error) {
	q := request{method: http.MethodPost, path: poolPath(pool), header: http.Header{}}
	o.Session.prove(q.header)
	if o.As == "" {
		q.header.Set(api.HeaderKey, rand.Text())
	}
	var w api.Assigned
	err := c.answered(ctx, effort{what: pool, write: true}, q, func(time.Duration) any {
		return api.IdentityRequest{
			Range: o.Values.Range, Names: o.Values.Names, Prefix: o.Values.Prefix, Bits: o.Values.Bits,
			Layout: o.Layout, As: o.As, Value: o.Value, TTL: seconds(o.TTL), Window: seconds(o.Window), Session: o.Session.ID, Info: o.Info,
		}
	}, &w)
	id := identityOf(w.Identity)
	if err == nil {
		c.kept.add(o.Session.ID, pools.Key(id.Pool, id.Value), id.Token)
	}
	id.Sequencer, id.Renewed = w.Sequencer, w.Renewed
	return id, err
}

// Widen adds values to a pool, and returns the new pool. Values are all that it has, and more; the
// same ones change nothing. Each holder keeps its value, and its number. The error matches
// [store.ErrNotFound] when there is no such pool, and [identity.ErrMismatch] when values would be
// lost. After one that matches [store.ErrUnknownOutcome] the pool may be wider. Widen may be
// repeated.
func (c *Client) Widen(ctx context.Context, pool string, values identity.Values) (identity.Declared, error) {
	var w api.DeclaredPool
	err := c.answered(ctx, effort{what: pool, write: true}, request{method: http.MethodPut, path: poolPath(pool)}, func(time.Duration) any {
		return api.PoolRequest{Range: values.Range, Names: values.Names, Prefix: values.Prefix, Bits: values.Bits}
	}, &w)
	return declaredOf(w), err
}

func declaredOf(w api.DeclaredPool) identity.Declared {
	return identity.Declared{
		Pool: w.Pool, Values: identity.Values{Range: w.Range, Names: w.Names, Prefix: w.Prefix, Bits: w.Bits}, Size: w.Size, Layout: w.Layout,
	}
}

// Identities returns a pool, and its values that an instance has, in order. The error matches
// [store.ErrNotFound] when there is no such pool.
func (c *Client) Identities(ctx context.Context, pool string) (identity.Declared, []Identity, error) {
	var w api.Identities
	err := c.read(ctx, pool, poolPath(pool), nil, &w)
	var all []Identity
	for _, id := range w.Identities {
		all = append(all, identityOf(id))
	}
	return declaredOf(w.DeclaredPool), all, err
}

// Unassign releases a value that [Client.Assign] returned, and that is not used any more. used is
// the time from which on no id was made with it. The zero time means unknown: then the next
// holder's ids begin at the ceiling. It is sent even if ctx is done, and blocks for 10 s at most.
// The error is a *[fence.StaleError] when the term was over already.
func (c *Client) Unassign(ctx context.Context, id Identity, used time.Time) error {
	q := request{
		method: http.MethodDelete, path: poolPath(id.Pool) + "/" + segment(id.Value), query: url.Values{},
		header: http.Header{fence.Header: {id.Sequencer}},
	}
	if !used.IsZero() {
		q.query.Set("used", used.UTC().Format(time.RFC3339Nano))
	}
	over := func(err error) bool { return errors.Is(err, fence.ErrStale) }
	c.kept.remove(id.Session, pools.Key(id.Pool, id.Value), id.Token)
	return c.answered(context.WithoutCancel(ctx), effort{what: id.Pool, write: true, settled: over}, q, nil, nil)
}

// IDs returns n unique ids of a layout, 1 to 10,000. The layout is a text as [flake.ParseLayout]
// reads it. Ids are decimal, or base 32 if they have more than 64 bits, as package flake writes and
// reads them. The error matches [ErrUnavailable] when the server can't make any now.
func (c *Client) IDs(ctx context.Context, layout string, n int) ([]string, error) {
	return c.ids(ctx, layout, url.Values{"n": {strconv.Itoa(n)}})
}

// IDsWith is IDs, and puts metadata into each id, for the layouts that have bits for it.
func (c *Client) IDsWith(ctx context.Context, layout string, n int, metadata uint64) ([]string, error) {
	return c.ids(ctx, layout, url.Values{"n": {strconv.Itoa(n)}, "metadata": {strconv.FormatUint(metadata, 10)}})
}

func (c *Client) ids(ctx context.Context, layout string, query url.Values) ([]string, error) {
	var w api.IDs
	err := c.read(ctx, layout, "/v1/ids/"+segment(layout), query, &w)
	return w.IDs, err
}

func identityOf(w api.Identity) Identity {
	id := Identity{
		Pool: w.Pool, Value: w.Value, Number: w.Number, As: w.As, Standing: w.Kept == api.KeptAssigned, Holder: w.Holder, Token: w.Token,
		Acquired: w.Acquired, Session: w.Session, Info: w.Info,
	}
	if w.TTL != nil {
		id.TTL = time.Duration(*w.TTL)
	}
	if w.ExpiresIn != nil {
		id.ExpiresIn = time.Duration(*w.ExpiresIn)
	}
	if w.Floor != nil && w.Ceiling != nil {
		id.Floor, id.Ceiling = *w.Floor, *w.Ceiling
	}
	return id
}

func poolPath(pool string) string { return "/v1/identities/" + segment(pool) }
