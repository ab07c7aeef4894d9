package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// probePrefix begins the keys of the records that Inspect makes and deletes again.
const probePrefix = ".doctor/"

// Inspect implements [store.Inspector]. It reports the identity (where Options.Identity is set),
// the table and its mode, and the server's clock. It tries the permissions on a record of its own.
// It reads the table once, as List does.
func (s *Store) Inspect(ctx context.Context) []store.Finding {
	all := append(s.table.Who(ctx), s.inspectTable(ctx)...)
	all = append(all, s.inspectPermissions(ctx)...)
	return append(all, s.inspectClock(ctx))
}

func (s *Store) inspectTable(ctx context.Context) []store.Finding {
	desc, err := s.table.Describe(ctx)
	if err != nil {
		return []store.Finding{s.blind("table", "dynamodb:DescribeTable", err)}
	}
	all := []store.Finding{{
		What: "table", Status: store.StatusOK, Detail: s.table.Name + " in " + orUnknown(table.RegionOf(s.client)),
	}}
	ttl, err := s.table.DescribeTTL(ctx)
	if err != nil {
		all = append(all, s.blind("time to live", "dynamodb:DescribeTimeToLive", err))
		for _, f := range review(desc.Table, nil, table.RegionOf(s.client), s.opts.HomeRegion) {
			if f.What != "time to live" {
				all = append(all, f)
			}
		}
		return all
	}
	return append(all, review(desc.Table, ttl.TimeToLiveDescription, table.RegionOf(s.client), s.opts.HomeRegion)...)
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

// inspectPermissions does what leases do, on a record of its own.
func (s *Store) inspectPermissions(ctx context.Context) (all []store.Finding) {
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
	if err := s.Delete(ctx, key, first.Version); err != nil {
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
