package dynamotables

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/poll"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Client is the part of a *dynamodb.Client that the store uses.
type Client = table.Client

// Access says how requests are made. The zero value is ready for use.
type Access = table.Options

// Request is one request to the server, for callers that count.
type Request = table.Request

// Store keeps records in a neighbour's table, while the neighbour uses it. It implements
// [store.Store], [store.Waiter], [store.Describer] and [driver.Inspector]; its Wait polls. Close
// leaves the client open.
type Store struct {
	schema schema
	client Client
	home   string // Access.HomeRegion
	table  *table.Table
	poller *poll.Poller

	mu      sync.Mutex
	settled map[string]known   // by key: rows whose token the companion is known to have
	sighted map[string]sighted // by key: neighbours' holds that last longer than their schema tells
}

// known says of a version of a row, by its id, that the companion has its token.
type known struct {
	id    string
	token fence.Token
}

// sighted is how long a neighbour's hold lasts, as of when its version was first seen.
type sighted struct {
	version string
	ttl     time.Duration
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// open returns a store for a schema whose options have been checked.
func open(client Client, name string, sc schema, access Access) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("%s: client nil: want a *dynamodb.Client", sc.name)
	}
	if name == "" {
		return nil, fmt.Errorf(`%s: Table "": want the name of the table that the neighbour uses`, sc.name)
	}
	if access.PollMax == 0 {
		access.PollMax = time.Second
	}
	if access.PollMax < poll.Min || access.PollMax > time.Hour {
		return nil, fmt.Errorf("%s: Access.PollMax %v: want %v to 1h", sc.name, access.PollMax, poll.Min)
	}
	s := &Store{
		schema: sc, client: client, home: access.HomeRegion, table: table.New(client, name, access),
		settled: map[string]known{}, sighted: map[string]sighted{},
	}
	s.table.Make = "make it as the documentation of " + sc.name + " says"
	if sc.name == "admiral" {
		s.table.Make = "make it as the documentation of admiral says: `leasehold init dynamodb` does"
	}
	s.poller = poll.New(context.Background(), s.table.Clock(), access.PollMax, func(ctx context.Context, key string) (store.Record, error) { return store.Load(ctx, s, key) })
	return s, nil
}

// Wait implements [store.Waiter]. It polls, once for all waiters for a key on this store, ever more
// slowly, up to Access.PollMax.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	return s.poller.Wait(ctx, key, version)
}

// PollEvery changes the longest pause between two looks of a waiter, which was Access.PollMax. What
// is out of its range is brought into it. No lease depends on the pause.
func (s *Store) PollEvery(most time.Duration) { s.poller.Pace(min(max(most, poll.Min), time.Hour)) }

// Hurry has the waiters for key look at once, and often for a while: a change is expected.
func (s *Store) Hurry(key string) { s.poller.Hurry(key) }

// ClockApart returns how far this machine's wall clock and the server's are apart at least, by the
// latest answer, and false before the first one. It does no I/O.
func (s *Store) ClockApart() (time.Duration, bool) { return s.table.Apart() }

// Close implements [store.Store].
func (s *Store) Close() error {
	s.poller.End()
	s.table.Close()
	return nil
}

// Properties implements [store.Describer].
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine:      "DynamoDB, table of " + s.schema.name,
		Consistency: "strongly consistent reads and conditional writes of one Region; the record in the neighbour's row, a floor under its tokens in a row beside it",
		Fencing:     store.FencingLinearizable,
		Read:        store.ReadDurable,
		Settle:      store.SettledByRead,
		OverHTTP:    true,
		Guarantee:   s.schema.guarantee,
	}
}
