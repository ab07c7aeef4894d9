//go:build !lite

package open

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
)

// The parameters of a table that another lock library uses as well. Each belongs to the schemas
// that it is listed under.
const (
	paramSchema       = "schema"
	paramWait         = "wait"      // Admiral's waitTimeInSeconds
	paramThreshold    = "threshold" // Admiral's failureThreshold
	paramNeighbourTTL = "ttl"       // the longest lease_ttl_seconds of the neighbours
	paramSkew         = "skew"      // how far wall clocks may be apart
	paramKeyAttribute = "key_attribute"
	paramSortKey      = "sort_key"
	paramSortValue    = "sort_value"
	paramDuration     = "duration" // java or dynamolock
)

// admiralSchema is the schema of Admiral's disaster-recovery leases.
const admiralSchema = "admiral"

var schemaParams = map[string][]string{
	admiralSchema:     {paramWait, paramThreshold, paramSkew},
	"dynamodb-lease":  {paramNeighbourTTL, paramSkew},
	"aws-lock-client": {paramKeyAttribute, paramSortKey, paramSortValue, paramDuration},
}

// neighbourParams returns the parameters of all schemas.
func neighbourParams() []string {
	all := []string{paramSchema}
	for _, params := range schemaParams {
		all = append(all, params...)
	}
	return all
}

// opener makes a store over a neighbour's table. It does no I/O.
type opener func(client dynamotables.Client, access dynamotables.Access) (*dynamotables.Store, error)

// schema returns how to open the table if the URL says that a neighbour uses it, or nil. Options
// that the schema refuses are an error here already.
func (u *dynamoDBURL) schema() (open opener, err error) {
	name, ok := u.params[paramSchema]
	mine, known := schemaParams[name]
	if ok && !known {
		return nil, fmt.Errorf("parameter %s=%q: want %s", paramSchema, name, strings.Join(slices.Sorted(maps.Keys(schemaParams)), ", "))
	}
	for _, p := range neighbourParams() {
		if _, given := u.params[p]; given && p != paramSchema && !slices.Contains(mine, p) {
			return nil, fmt.Errorf("parameter %q: schema %q has no such parameter: it has %q", p, name, mine)
		}
	}
	if !ok {
		return open, nil
	}
	for _, p := range []string{paramServerClock, paramUnchecked} {
		if _, given := u.params[p]; given {
			return nil, fmt.Errorf("parameter %q: it is for tables of Leasehold's own, not for schema %q", p, name)
		}
	}
	if open, err = u.opener(name); err != nil {
		return nil, err
	}
	// To have the options checked.
	st, err := open(new(awsdynamodb.Client), dynamotables.Access{PollMax: u.opts.PollMax})
	if err != nil {
		return nil, err
	}
	return open, st.Close()
}

func (u *dynamoDBURL) opener(name string) (opener, error) {
	skew, err := u.duration(paramSkew, 0)
	if err != nil {
		return nil, err
	}
	switch name {
	case admiralSchema:
		wait, err := u.duration(paramWait, 0)
		if err != nil {
			return nil, err
		}
		threshold, err := strconv.Atoi(u.params[paramThreshold])
		if err != nil {
			return nil, fmt.Errorf("parameter %s=%q: want Admiral's failureThreshold, a number", paramThreshold, u.params[paramThreshold])
		}
		opts := dynamotables.AdmiralOptions{Table: u.table, Wait: wait, Threshold: threshold, Skew: skew}
		return func(c dynamotables.Client, access dynamotables.Access) (*dynamotables.Store, error) {
			opts.Access = access
			return dynamotables.Admiral(c, opts)
		}, nil
	case "dynamodb-lease":
		ttl, err := u.duration(paramNeighbourTTL, time.Minute)
		if err != nil {
			return nil, err
		}
		opts := dynamotables.DynamoDBLeaseOptions{Table: u.table, TTL: ttl, Skew: skew}
		return func(c dynamotables.Client, access dynamotables.Access) (*dynamotables.Store, error) {
			opts.Access = access
			return dynamotables.DynamoDBLease(c, opts)
		}, nil
	}
	opts := dynamotables.AWSLockClientOptions{
		Table: u.table, KeyAttribute: u.params[paramKeyAttribute], SortKey: u.params[paramSortKey], SortValue: u.params[paramSortValue],
		Duration: dynamotables.DurationText(u.params[paramDuration]),
	}
	return func(c dynamotables.Client, access dynamotables.Access) (*dynamotables.Store, error) {
		opts.Access = access
		return dynamotables.AWSLockClient(c, opts)
	}, nil
}

// neighbourStore closes its client with it.
type neighbourStore struct {
	*dynamotables.Store
	target *DynamoDB
}

func (s *neighbourStore) Close() error {
	err := s.Store.Close()
	s.target.Close()
	return err
}

// openNeighbour opens a neighbour's table, and refuses one in which leases aren't safe.
func openNeighbour(ctx context.Context, open opener, d *DynamoDB) (store.Store, error) {
	st, err := open(d.Client, dynamotables.Access{HomeRegion: d.opts.HomeRegion, PollMax: d.opts.PollMax, Identity: d.opts.Identity})
	if err != nil {
		d.Close()
		return nil, err
	}
	s := &neighbourStore{st, d}
	if err := st.Check(ctx); err != nil {
		_ = s.Close() // there is nothing to lose
		return nil, err
	}
	return s, nil
}
