package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/store"
)

// probePrefix begins the keys of the records that Inspect makes and deletes again.
const probePrefix = ".doctor/"

// Inspect implements [store.Inspector]: identity (where Options.Identity is set), the table and its mode, permissions by
// trying them on a record of its own, whether conditional writes are honoured, the round trip and the server's clock. It
// takes about 25 read and 6 write units.
func (s *Store) Inspect(ctx context.Context) []store.Finding {
	var all []store.Finding
	if s.opts.Identity != nil {
		all = append(all, s.inspectIdentity(ctx))
	}
	all = append(all, s.inspectTable(ctx)...)
	all = append(all, s.inspectWrites(ctx)...)
	return append(all, s.inspectTime(ctx)...)
}

func (s *Store) inspectIdentity(ctx context.Context) store.Finding {
	who, err := s.opts.Identity(ctx)
	if err != nil {
		return store.Finding{
			What: "identity", Status: store.StatusWarn, Detail: "can't be asked for: " + err.Error(),
			Advice: "check the credentials; asking needs no permission, but the way to STS",
		}
	}
	return store.Finding{What: "identity", Status: store.StatusOK, Detail: who}
}

func (s *Store) inspectTable(ctx context.Context) []store.Finding {
	desc, err := s.table.Describe(ctx)
	if err != nil {
		return []store.Finding{s.blind("table", "dynamodb:DescribeTable", err)}
	}
	all := []store.Finding{{
		What: "table", Status: store.StatusOK, Detail: s.table.Name + " in " + orUnknown(regionOf(s.client)),
	}}
	ttl, err := s.table.DescribeTTL(ctx)
	if err != nil {
		all = append(all, s.blind("time to live", "dynamodb:DescribeTimeToLive", err))
		for _, f := range review(desc.Table, nil, regionOf(s.client), s.opts.HomeRegion) {
			if f.What != "time to live" {
				all = append(all, f)
			}
		}
		return all
	}
	return append(all, review(desc.Table, ttl.TimeToLiveDescription, regionOf(s.client), s.opts.HomeRegion)...)
}

// blind is the finding that something can't be looked at: a failure, unless the caller vouches for the table.
func (s *Store) blind(what, permission string, err error) store.Finding {
	f := store.Finding{What: what, Status: store.StatusFail, Detail: err.Error(), Advice: "give this identity " + permission}
	if s.opts.Unchecked {
		f.Status = store.StatusWarn
	}
	return f
}

func orUnknown(region string) string {
	if region == "" {
		return "an unknown Region"
	}
	return region
}

// inspectWrites does what leases do, on a record of its own.
func (s *Store) inspectWrites(ctx context.Context) (all []store.Finding) {
	key := probePrefix + newVersion()
	fail := func(what, permission string, err error) []store.Finding {
		return append(all, store.Finding{What: what, Status: store.StatusFail, Detail: err.Error(), Advice: "give this identity " + permission})
	}
	if _, err := s.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return fail("permission to read", "dynamodb:GetItem", err)
	}
	all = append(all, store.Finding{What: "permission to read", Status: store.StatusOK, Detail: "GetItem works"})
	first, err := s.Put(ctx, store.Record{Key: key, Token: 1})
	if err != nil {
		return fail("permission to write", "dynamodb:PutItem", err)
	}
	all = append(all, store.Finding{What: "permission to write", Status: store.StatusOK, Detail: "PutItem works"})
	all = append(all, s.inspectCondition(ctx, first))
	current, err := s.Get(ctx, key)
	if err == nil {
		err = s.Delete(ctx, key, current.Version)
	}
	if err != nil {
		return fail("permission to delete", "dynamodb:DeleteItem: a sweep of records that have long been free needs it, and "+key+" is left there", err)
	}
	all = append(all, store.Finding{What: "permission to delete", Status: store.StatusOK, Detail: "DeleteItem works"})
	for _, err := range s.List(ctx, probePrefix) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return append(all, store.Finding{
				What: "permission to list", Status: store.StatusWarn, Detail: err.Error(), Advice: "give this identity dynamodb:Scan, for lists and sweeps",
			})
		}
	}
	return append(all, store.Finding{What: "permission to list", Status: store.StatusOK, Detail: "Scan works"})
}

// inspectCondition sees that a write at another version is refused, and changes nothing.
func (s *Store) inspectCondition(ctx context.Context, stored store.Record) store.Finding {
	f := store.Finding{What: "conditional writes", Status: store.StatusOK, Detail: "a write at a stale version is refused, with the record that is there"}
	stale := stored
	stale.Version, stale.Token = newVersion(), stored.Token+1
	_, err := s.Put(ctx, stale)
	current, readErr := s.Get(ctx, stored.Key)
	if errors.Is(err, store.ErrConflict) && readErr == nil && current.Version == stored.Version {
		return f
	}
	return store.Finding{
		What: f.What, Status: store.StatusFail, Detail: fmt.Sprintf("a write at a stale version came to %v, and a read to token %d, error %v", err, current.Token, readErr),
		Advice: "don't keep leases behind this endpoint",
	}
}

// roundTrips is how many reads are timed.
const roundTrips = 20

func (s *Store) inspectTime(ctx context.Context) []store.Finding {
	var took []time.Duration
	for range roundTrips {
		start := s.opts.Clock.Now()
		if _, err := s.table.Get(ctx, rowKey(probePrefix)); err != nil {
			return []store.Finding{{What: "round trip", Status: store.StatusFail, Detail: err.Error()}}
		}
		took = append(took, s.opts.Clock.Now().Sub(start))
	}
	slices.Sort(took)
	trip := store.Finding{
		What: "round trip", Status: store.StatusOK,
		Detail: fmt.Sprintf("strong read: median %v, slowest of %d %v", took[roundTrips/2].Round(time.Microsecond), roundTrips, took[roundTrips-1].Round(time.Microsecond)),
	}
	if median := took[roundTrips/2]; median > 250*time.Millisecond {
		trip.Status, trip.Advice = store.StatusWarn, fmt.Sprintf("use a table in a nearer Region, or a TTL of %v at least", (60*median).Round(time.Second))
	}
	return []store.Finding{trip, s.inspectClock(ctx)}
}

// inspectClock compares this machine's time of day with the server's. Tokens come from it, so that they rise over a table
// that was wiped; and AWS refuses signatures that are 5 min off.
func (s *Store) inspectClock(ctx context.Context) store.Finding {
	f := store.Finding{What: "clock", Status: store.StatusOK}
	read, err := s.table.Get(ctx, rowKey(probePrefix))
	if err != nil || read.Date.IsZero() {
		f.Status, f.Detail = store.StatusWarn, "the server doesn't tell its time"
		return f
	}
	off := s.opts.Clock.Wall().Sub(read.Date.Add(500 * time.Millisecond)) // the middle of the second that the date names
	f.Detail = fmt.Sprintf("this machine's is off the server's by %v, to a second or so", off.Round(100*time.Millisecond))
	const most = 30 * time.Second
	if off.Abs() > most {
		f.Status = store.StatusWarn
		f.Advice = "set this machine's clock: leases don't depend on it, but signatures of requests and new tokens do"
	}
	return f
}
