package dynamotables

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// DurationText is how a client writes the duration of its leases. Either kind is read; neither
// neighbour reads the other's.
type DurationText string

// The texts.
const (
	DurationJava       DurationText = "java"       // milliseconds: 20000
	DurationDynamolock DurationText = "dynamolock" // Go's: 20s
)

// AWSLockClientOptions of [AWSLockClient].
type AWSLockClientOptions struct {
	Table        string // required
	KeyAttribute string // the partition key: "key" by default
	SortKey      string // the sort key's attribute, if the table has one
	// The one value of the sort key under which this store's locks are; "" only without a SortKey.
	SortValue string
	// Duration is how durations are written. By default it is the text that the table's rows have:
	// of the row that was read last, or of one of 25 that are looked at before the first write; and
	// DurationJava in a table without rows, or where this identity may not scan.
	Duration DurationText
	Access   Access
}

// AWSLockClient returns a store over the table of the AWS lock client for Java
// (com.amazonaws:dynamodb-lock-client) or of dynamolock for Go. It does no I/O. Its errors name the
// option that is wrong.
func AWSLockClient(client Client, opts AWSLockClientOptions) (*Store, error) {
	if opts.KeyAttribute == "" {
		opts.KeyAttribute = "key"
	}
	if opts.Duration != "" && opts.Duration != DurationJava && opts.Duration != DurationDynamolock {
		return nil, fmt.Errorf("aws-lock-client: Duration %q: want %q or %q", opts.Duration, DurationJava, DurationDynamolock)
	}
	if (opts.SortKey == "") != (opts.SortValue == "") {
		return nil, fmt.Errorf("aws-lock-client: SortKey %q with SortValue %q: want both or neither", opts.SortKey, opts.SortValue)
	}
	sc := awsLockSchema(opts.Duration)
	sc.key, sc.sort, sc.sortValue = opts.KeyAttribute, opts.SortKey, opts.SortValue
	for _, col := range sc.columns {
		if col.name == sc.key || col.name == sc.sort || sc.key == sc.sort {
			return nil, fmt.Errorf("aws-lock-client: KeyAttribute %q, SortKey %q: want names of their own, not %q", sc.key, sc.sort, col.name)
		}
	}
	return open(client, opts.Table, sc, opts.Access)
}

// released is the value of isReleased in a row that is kept although nobody holds it.
const released = "1"

// sampled is how many rows are looked at for the text of their durations.
const sampled = 25

// durations says how durations are written.
type durations struct {
	fixed DurationText // "" for what the table's rows have
	seen  atomic.Pointer[DurationText]
}

// saw notes the text of a row, unless either client could have written it.
func (d *durations) saw(text string) {
	if strings.Trim(text, "0") == "" {
		return
	}
	as := DurationDynamolock
	if strings.Trim(text, "0123456789") == "" {
		as = DurationJava
	}
	d.seen.Store(&as)
}

// text is how to write a duration.
func (d *durations) text() DurationText {
	switch seen := d.seen.Load(); {
	case d.fixed != "":
		return d.fixed
	case seen != nil:
		return *seen
	}
	return DurationJava
}

// learn looks at some rows, once, if that is needed. Where it fails, the default has to do: the
// identity may not be allowed to scan.
func (d *durations) learn(ctx context.Context, t *table.Table) {
	if d.fixed != "" || d.seen.Load() != nil {
		return
	}
	rows, err := t.Sample(ctx, sampled)
	if err != nil && ctx.Err() != nil {
		return // the caller's write will say so
	}
	for _, row := range rows {
		if text, err := scalar(row, column{name: "leaseDuration"}); err == nil && text != nil {
			d.saw(*text)
		}
	}
	java := DurationJava
	d.seen.CompareAndSwap(nil, &java)
}

// awsLockSchema: a client takes a row that isn't there or is released at once, and any other when
// its recordVersionNumber has not changed for its leaseDuration on the client's own clock.
func awsLockSchema(fixed DurationText) schema {
	lengths := &durations{fixed: fixed}
	sc := schema{
		learn:     lengths.learn,
		name:      "aws-lock-client",
		guarantee: "exclusive: either side observes the other's heartbeats on its own clock",
		columns:   []column{{name: "ownerName"}, {name: "leaseDuration"}, {name: "recordVersionNumber"}, {name: "isReleased"}},
	}
	const owner, duration, version, free = 0, 1, 2, 3
	sc.read = func(c columns) (hold, error) {
		name, err := sc.text(c, owner)
		if err != nil {
			return hold{}, err
		}
		length, err := sc.text(c, duration)
		if err != nil {
			return hold{}, err
		}
		ttl, err := parseDuration(length)
		if err != nil {
			return hold{}, &attributeError{sc.columns[duration].name, err.Error()}
		}
		lengths.saw(length)
		if _, err = sc.text(c, version); err != nil {
			return hold{}, err
		}
		switch {
		case c[free] != nil && *c[free] != released:
			return hold{}, &attributeError{sc.columns[free].name, fmt.Sprintf("%q: want %q, or no such attribute", *c[free], released)}
		case c[free] != nil:
			return hold{}, nil
		case name == "":
			return hold{}, &attributeError{sc.columns[owner].name, "it is empty, and the row isn't released"}
		}
		return hold{owner: name, ttl: min(max(ttl, store.MinTTL), store.MaxTTL)}, nil
	}
	sc.write = func(rec store.Record, id string, _ time.Time) columns {
		cols := columns{&rec.Owner, formatDuration(lasting(rec), lengths.text()), &id, nil}
		if rec.Owner == "" {
			cols[owner], cols[free] = lastOwner(rec), ptr(released)
		}
		return cols
	}
	// A released lock, which either neighbour can read.
	sc.beside = func(id string) table.Row {
		return table.Row{
			"ownerName": str("leasehold"), "leaseDuration": str("0"), "recordVersionNumber": str(id), "isReleased": str(released),
		}
	}
	return sc
}

// lastOwner returns the name that a released row bears: the last holder's, as neighbours leave it.
func lastOwner(rec store.Record) *string {
	if len(rec.Past) > 0 && rec.Past[0].Owner != "" {
		return &rec.Past[0].Owner
	}
	return ptr("leasehold")
}

// parseDuration reads the text of either client.
func parseDuration(text string) (time.Duration, error) {
	if text != "" && strings.Trim(text, "0123456789") == "" {
		ms, err := strconv.ParseInt(text, 10, 64)
		if err != nil || ms > math.MaxInt64/int64(time.Millisecond) {
			return 0, fmt.Errorf("%q: want fewer milliseconds", text)
		}
		return time.Duration(ms) * time.Millisecond, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want milliseconds (20000) or a Go duration (20s)", text)
	}
	return d, nil
}

// formatDuration writes d, rounded up to what the text can say.
func formatDuration(d time.Duration, text DurationText) *string {
	if text == DurationDynamolock {
		return ptr(d.String())
	}
	return decimal(int64((d + time.Millisecond - 1) / time.Millisecond))
}

func ptr[T any](v T) *T { return &v }
