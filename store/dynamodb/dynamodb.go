package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/poll"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Client is the part of a *dynamodb.Client of the AWS SDK, version 2, that the store uses.
type Client = table.Client

// Request is one request that was made, retries included, with the units that it took.
type Request = table.Request

// Options of [Open]. The zero value is right for a table in one Region.
type Options struct {
	// HomeRegion is the one Region from which the table may be written. It is needed for a global
	// table in eventual mode, where exclusion holds only among writers in one Region. A client of
	// another Region is refused then.
	HomeRegion string

	// ServerClock, if above 0, makes the store vouch for [store.Record.Age] by the server's clock.
	// It is a bound that the caller states: how far that clock may be set or differ from host to
	// host, plus how long a write may be on its way. The store subtracts it from every age. A
	// minute is a careful value for AWS. At most 24 h.
	ServerClock time.Duration

	// Attempt bounds one request: 30 s by default, 10 ms to 1 min. A call makes up to 8, with
	// pauses between them. A read that has no answer after 2 s is made again, and each time the
	// wait doubles.
	Attempt time.Duration

	// PollMax is the longest pause between two reads of a Wait: 1 s by default, 20 ms at least. A
	// waiter costs a read unit each time, and learns of a release that late. See [Store.Wait].
	PollMax time.Duration

	// Unchecked opens the table without a look at it, for identities that may not describe it. The
	// caller then vouches for its key schema and its mode: see [Open].
	Unchecked bool

	// OnRequest, if set, is called after each request. It must not block.
	OnRequest func(Request)

	// Identity, if set, returns the client's identity at AWS, for [Store.Inspect].
	Identity func(context.Context) (string, error)

	// Clock is where time comes from; [clock.System] by default.
	Clock clock.Clock
}

func (o Options) withDefaults() Options {
	if o.Attempt == 0 {
		o.Attempt = table.DefaultAttempt
	}
	if o.PollMax == 0 {
		o.PollMax = time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o
}

func (o Options) check() error {
	for _, d := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"ServerClock", o.ServerClock, 0, 24 * time.Hour},
		{"Attempt", o.Attempt, 10 * time.Millisecond, time.Minute},
		{"PollMax", o.PollMax, poll.Min, time.Hour},
	} {
		if d.value < d.least || d.value > d.most {
			return fmt.Errorf("dynamodb options: %s %v: want %v to %v", d.name, d.value, d.least, d.most)
		}
	}
	return nil
}

// Store keeps records in one table. It implements [store.Store], [store.Waiter], [store.Describer]
// and [driver.Inspector].
type Store struct {
	table  *table.Table
	client Client
	opts   Options
	poller *poll.Poller
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Open opens the store in the table of that name, in the account and Region of the client, which
// stays the caller's. It looks at the table first (unless Options.Unchecked is set), and refuses
// one where leases would not work or not be safe. Such a table:
//
//   - doesn't exist or isn't ready;
//   - has another key schema;
//   - is a global table in eventual mode without a HomeRegion;
//   - has a time to live on an attribute of Leasehold's.
//
// The error says why, and what to do. Open blocks until the server has answered or ctx is done.
func Open(ctx context.Context, client Client, name string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errors.New(`dynamodb: table "": want the name of a table`)
	}
	if region := table.RegionOf(client); opts.HomeRegion != "" && region != "" && region != opts.HomeRegion {
		return nil, fmt.Errorf("table %s: its home Region is %s, and this client is one of %s: %s", name, opts.HomeRegion, region, table.AdviseHome)
	}
	s := &Store{
		client: client, opts: opts,
		table: table.New(client, name, table.Options{Attempt: opts.Attempt, Clock: opts.Clock, OnRequest: opts.OnRequest, Identity: opts.Identity}),
	}
	s.table.Make = "make it with `leasehold init dynamodb`"
	s.poller = poll.New(ctx, opts.Clock, opts.PollMax, func(ctx context.Context, key string) (store.Record, error) { return store.Load(ctx, s, key) })
	if !opts.Unchecked {
		if err := s.checkTable(ctx); err != nil {
			s.table.Close()
			return nil, err
		}
	}
	return s, nil
}

// Properties implements [store.Describer].
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine: "dynamodb", Consistency: "strong reads, conditional writes of one item",
		Fencing: store.FencingLinearizable, Read: store.ReadDurable, Settle: store.SettledByRead, Push: false, Age: s.opts.ServerClock > 0, OverHTTP: true,
		Guarantee: "exclusive within one Region, or in all Regions of a global table in strong mode; tokens rise",
	}
}

// ClockApart returns how far this machine's wall clock and the server's are apart at least, by the
// latest answer, and false before the first one. It does no I/O.
func (s *Store) ClockApart() (time.Duration, bool) { return s.table.Apart() }

// Close implements [store.Store]. It ends running calls and waits for them. The client stays open.
func (s *Store) Close() error {
	s.poller.End()
	s.table.Close()
	return nil
}
