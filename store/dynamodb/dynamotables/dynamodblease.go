package dynamotables

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// DynamoDBLeaseOptions of [DynamoDBLease]. The zero value is the crate's own defaults.
type DynamoDBLeaseOptions struct {
	Table string // "leases" by default
	// The longest lease_ttl_seconds of any neighbour: 60 s by default, at least 2 s.
	TTL time.Duration
	// Greatest difference between the wall clocks of neighbours and ours; 0 by default.
	Skew   time.Duration
	Access Access
}

// DynamoDBLease returns a store over the table of the Rust crate dynamodb-lease. It does no I/O.
// Its errors name the option that is wrong.
func DynamoDBLease(client Client, opts DynamoDBLeaseOptions) (*Store, error) {
	if opts.Table == "" {
		opts.Table = "leases"
	}
	if opts.TTL == 0 {
		opts.TTL = time.Minute
	}
	if opts.TTL < 2*time.Second || opts.TTL > store.MaxTTL {
		return nil, fmt.Errorf("dynamodb-lease: TTL %v: want the longest lease_ttl_seconds of the neighbours, 2 s to %v", opts.TTL, store.MaxTTL)
	}
	if err := checkSkew("dynamodb-lease", opts.Skew); err != nil {
		return nil, err
	}
	return open(client, opts.Table, dynamodbLeaseSchema(opts.TTL, opts.Skew), opts.Access)
}

// dynamodbLeaseSchema: a client takes a row that has no lease_version, or whose lease_expiry < now
// in whole seconds by its wall clock. So a free row of ours has neither, which also keeps
// DynamoDB's own expiry from it.
func dynamodbLeaseSchema(ttl, skew time.Duration) schema {
	sc := schema{
		name: "dynamodb-lease", key: "key", ttl: "lease_expiry", wall: true,
		columns:   []column{{name: "lease_version"}, {name: "lease_expiry", number: true}},
		guarantee: "exclusive as long as no neighbour's wall clock is ahead by more than the margin of the TTL and the skew allowed for",
	}
	const version, expiry = 0, 1
	sc.read = func(c columns) (hold, error) {
		if _, err := sc.text(c, version); err != nil {
			return hold{}, err
		}
		at, err := sc.seconds(c, expiry)
		if err != nil {
			return hold{}, err
		}
		// Its rows don't say who.
		return hold{owner: sc.name, ttl: ttl, until: at.Add(time.Second + skew)}, nil
	}
	sc.write = func(rec store.Record, id string, wall time.Time) columns {
		if rec.Owner == "" {
			return columns{nil, nil}
		}
		return columns{&id, decimal(ceil(wall.Add(lasting(rec) + skew)))}
	}
	return sc
}
