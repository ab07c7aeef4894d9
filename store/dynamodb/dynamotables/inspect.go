package dynamotables

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Inspect implements [driver.Inspector]. It checks the table and its key, whether conditions hold
// in it, DynamoDB's own expiry, and this machine's clock against the server's. It tries the
// permissions on a record of its own, which stays, free, where this identity may not delete it. It
// takes about ten requests.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	all := append([]driver.Finding{{What: "neighbour", Status: driver.StatusOK, Detail: s.schema.name + ": " + s.schema.guarantee}}, s.table.Who(ctx)...)
	all = append(all, s.inspectTable(ctx)...)
	all = append(all, s.inspectWrites(ctx)...)
	return append(all, s.inspectClock(ctx))
}

func (s *Store) inspectTable(ctx context.Context) []driver.Finding {
	all, err := s.review(ctx)
	if err != nil {
		all = append(all, failed("table", err, "leases need that the table is looked at first"))
	}
	return all
}

// review says what the table's description means for leases, as far as it can be read. The error
// says what to do.
func (s *Store) review(ctx context.Context) ([]driver.Finding, error) {
	out, err := s.table.Describe(ctx)
	if err != nil {
		return nil, err
	}
	all := []driver.Finding{
		table.ReviewStatus(out.Table), s.inspectKey(out.Table), table.ReviewRegions(out.Table, table.RegionOf(s.client), s.home),
	}
	ttl, err := s.table.DescribeTTL(ctx)
	if err != nil {
		return all, err
	}
	return append(all, s.inspectTTL(ttl.TimeToLiveDescription)), nil
}

func failed(what string, err error, advice string) driver.Finding {
	return driver.Finding{What: what, Status: driver.StatusFail, Detail: err.Error(), Advice: advice}
}

// inspectKey sees that the table has the neighbour's key.
func (s *Store) inspectKey(t *types.TableDescription) driver.Finding {
	kinds := map[string]types.ScalarAttributeType{}
	for _, a := range t.AttributeDefinitions {
		kinds[aws.ToString(a.AttributeName)] = a.AttributeType
	}
	var found []string
	for _, k := range t.KeySchema {
		name := aws.ToString(k.AttributeName)
		found = append(found, fmt.Sprintf("%s %s %s", name, kinds[name], k.KeyType))
	}
	want := s.schema.key + " S HASH"
	if s.schema.sort != "" {
		want += ", " + s.schema.sort + " S RANGE"
	}
	f := driver.Finding{What: "key schema", Status: driver.StatusOK, Detail: strings.Join(found, ", ")}
	if f.Detail != want {
		f.Status, f.Advice = driver.StatusFail, "this isn't the table of that neighbour as configured: want the key "+want
	}
	return f
}

// Check returns an error when leases in the table don't work or aren't safe. Such a table:
//
//   - doesn't exist or isn't ready;
//   - has another key;
//   - has DynamoDB's own expiry by an attribute that isn't the neighbour's;
//   - is a global table of eventual consistency, unless Access.HomeRegion is the Region of this
//     client. All clients have to write in that Region, neighbours included.
//
// The error says what to do. Check blocks until the server has answered or ctx is done.
func (s *Store) Check(ctx context.Context) error {
	all, err := s.review(ctx)
	errs := []error{err}
	for _, f := range all {
		if f.Status == driver.StatusFail {
			errs = append(errs, fmt.Errorf("table %s: %s: %s: %s", s.table.Name, f.What, f.Detail, f.Advice))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) inspectTTL(ttl *types.TimeToLiveDescription) driver.Finding {
	f := driver.Finding{What: "time to live", Status: driver.StatusOK, Detail: "off"}
	attr := ""
	if ttl != nil && (ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		attr = aws.ToString(ttl.AttributeName)
		f.Detail = "on, by " + attr
	}
	switch {
	case attr == s.schema.ttl:
	case attr == "":
		f.Status, f.Advice = driver.StatusWarn, fmt.Sprintf("turn it on by %s: this neighbour demands it", s.schema.ttl)
	default:
		f.Status, f.Advice = driver.StatusFail, "turn it off: it may delete a lease that is held"
	}
	return f
}

// probePrefix begins the keys of what Inspect reads and writes.
const probePrefix = "leasehold-doctor/"

// inspectWrites does what leases do, on a record of its own. Nobody holds it, so neighbours that
// see it leave it alone. It has one name, so that an identity that may not delete it leaves one row
// however often it looks.
func (s *Store) inspectWrites(ctx context.Context) []driver.Finding {
	const what = "permissions"
	key := probePrefix + "probe"
	found, err := store.Load(ctx, s, key)
	if err != nil {
		return []driver.Finding{failed(what, err, "give this identity dynamodb:GetItem")}
	}
	stale, err := s.probe(ctx, found)
	if err != nil {
		return []driver.Finding{failed(what, err, "give this identity dynamodb:UpdateItem")}
	}
	rec, err := s.probe(ctx, stale)
	if err != nil {
		return []driver.Finding{failed(what, err, "give this identity dynamodb:UpdateItem")}
	}
	if _, err := s.Put(ctx, stale); !errors.Is(err, store.ErrConflict) {
		return []driver.Finding{failed("conditional writes", fmt.Errorf("a write at a stale version: %v, want a conflict", err), "don't keep leases behind this endpoint")}
	}
	may := driver.Finding{What: what, Status: driver.StatusOK, Detail: "GetItem, UpdateItem and DeleteItem work"}
	switch err := s.Delete(ctx, key, rec.Version); {
	case table.Denied(err):
		may.Detail = "GetItem and UpdateItem work; DeleteItem isn't allowed, which no lease needs: the free row " + key + " stays"
	case err != nil && !errors.Is(err, store.ErrConflict): // with another who looks
		may = failed(what, err, "give this identity dynamodb:DeleteItem, and delete "+key)
	}
	return []driver.Finding{may, {What: "conditional writes", Status: driver.StatusOK, Detail: "a write at a stale version is refused"}}
}

// probeTries is how often a probe gives way to others who look at the same time.
const probeTries = 50

// probe writes the record at its version, or at what another who looks has made of it.
func (s *Store) probe(ctx context.Context, rec store.Record) (store.Record, error) {
	var err error
	for range probeTries {
		rec.Token = max(rec.Token, 1)
		var done store.Record
		if done, err = s.Put(ctx, rec); err == nil {
			return done, nil
		}
		var conflict *store.ConflictError
		switch {
		case errors.As(err, &conflict):
			rec = conflict.Current
		case errors.Is(err, store.ErrNotFound): // deleted meanwhile
			rec = store.Record{Key: rec.Key}
		default:
			return rec, err
		}
	}
	return rec, err
}

// clockApart is how far this machine's clock may be from the server's before it is worth a warning.
// The server tells whole seconds.
const clockApart = 2 * time.Second

func (s *Store) inspectClock(ctx context.Context) driver.Finding {
	const what = "clock"
	before := s.table.Clock().Wall()
	read, err := s.table.Get(ctx, s.schema.keyRow(probePrefix+"clock"))
	after := s.table.Clock().Wall()
	switch {
	case err != nil:
		return failed(what, err, "give this identity dynamodb:GetItem")
	case read.Date.IsZero():
		return driver.Finding{What: what, Status: driver.StatusOK, Detail: "the server doesn't tell its own"}
	}
	// The server's clock showed a time from read.Date on, for less than a second.
	apart := max(read.Date.Sub(after), before.Sub(read.Date.Add(time.Second)), 0)
	f := driver.Finding{What: what, Status: driver.StatusOK, Detail: fmt.Sprintf("at least %v from the server's", apart.Round(time.Millisecond))}
	if s.schema.wall && apart > clockApart {
		f.Status = driver.StatusWarn
		f.Advice = "set this machine's clock right: this neighbour compares wall clocks, and Skew has to cover how far they are apart"
	}
	return f
}
