package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// probePrefix begins the keys of the records that Inspect makes and deletes again.
const probePrefix = ".doctor/"

// Inspect implements [driver.Inspector]. It reports the identity (where Options.Identity is set),
// the table and its mode, and the server's clock. It tries the permissions on a record of its own.
// It reads the table once, as List does.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	all := append(s.table.Who(ctx), s.inspectTable(ctx)...)
	all = append(all, s.inspectPermissions(ctx)...)
	return append(all, s.inspectClock(ctx))
}

func (s *Store) inspectTable(ctx context.Context) []driver.Finding {
	desc, err := s.table.Describe(ctx)
	if err != nil {
		return []driver.Finding{s.blind("table", "dynamodb:DescribeTable", err)}
	}
	all := []driver.Finding{{
		What: "table", Status: driver.StatusOK, Detail: s.table.Name + " in " + orUnknown(table.RegionOf(s.client)),
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

// blind is the finding that something can't be looked at: a failure, unless the caller vouches for
// the table.
func (s *Store) blind(what, permission string, err error) driver.Finding {
	f := driver.Finding{What: what, Status: driver.StatusFail, Detail: err.Error(), Advice: "give this identity " + permission}
	if s.opts.Unchecked {
		f.Status = driver.StatusWarn
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
func (s *Store) inspectPermissions(ctx context.Context) (all []driver.Finding) {
	key := probePrefix + newVersion()
	fail := func(what, permission string, err error) []driver.Finding {
		return append(all, driver.Finding{What: what, Status: driver.StatusFail, Detail: err.Error(), Advice: "give this identity " + permission})
	}
	if _, err := s.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return fail("permission to read", "dynamodb:GetItem", err)
	}
	all = append(all, driver.Finding{What: "permission to read", Status: driver.StatusOK, Detail: "GetItem works"})
	first, err := s.Put(ctx, store.Record{Key: key, Token: 1})
	if err != nil {
		return fail("permission to write", "dynamodb:PutItem", err)
	}
	all = append(all, driver.Finding{What: "permission to write", Status: driver.StatusOK, Detail: "PutItem works"})
	if err := s.Delete(ctx, key, first.Version); err != nil {
		return fail("permission to delete", "dynamodb:DeleteItem: a sweep of records that have long been free needs it, and "+key+" is left there", err)
	}
	all = append(all, driver.Finding{What: "permission to delete", Status: driver.StatusOK, Detail: "DeleteItem works"})
	for _, err := range s.List(ctx, probePrefix) {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return append(all, driver.Finding{
				What: "permission to list", Status: driver.StatusWarn, Detail: err.Error(), Advice: "give this identity dynamodb:Scan, for lists and sweeps",
			})
		}
	}
	return append(all, driver.Finding{What: "permission to list", Status: driver.StatusOK, Detail: "Scan works"})
}

// inspectClock compares this machine's time of day with the server's. Tokens come from it, so that
// they rise over a table that was wiped; and AWS refuses signatures that are 5 min off.
func (s *Store) inspectClock(ctx context.Context) driver.Finding {
	f := driver.Finding{What: "clock", Status: driver.StatusOK}
	read, err := s.table.Get(ctx, rowKey(probePrefix))
	if err != nil || read.Date.IsZero() {
		f.Status, f.Detail = driver.StatusWarn, "the server doesn't tell its time"
		return f
	}
	// The middle of the second that the date names.
	off := s.opts.Clock.Wall().Sub(read.Date.Add(500 * time.Millisecond))
	f.Detail = fmt.Sprintf("this machine's is off the server's by %v, to a second or so", off.Round(100*time.Millisecond))
	const most = 30 * time.Second
	if off.Abs() > most {
		f.Status = driver.StatusWarn
		f.Advice = "set this machine's clock: leases don't depend on it, but signatures of requests and new tokens do"
	}
	return f
}
