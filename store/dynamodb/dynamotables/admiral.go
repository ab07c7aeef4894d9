package dynamotables

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// HoldOwner as the owner of an Admiral lease is an operator's word that every instance is to stay
// passive. A hold of its doesn't expire.
const HoldOwner = "SKIP-LEASE-POD"

// AdmiralOptions of [Admiral].
type AdmiralOptions struct {
	Table     string        // "admiral-lease" by default, the only one that Admiral itself reads
	Wait      time.Duration // Admiral's waitTimeInSeconds: required, in whole seconds
	Threshold int           // Admiral's failureThreshold: required, at least 1
	// Greatest difference between the wall clocks of neighbours and ours; 0 by default.
	Skew   time.Duration
	Access Access
}

// Admiral returns a store over the table in which Admiral instances keep their disaster-recovery
// leases. It does no I/O. Its errors name the option that is wrong.
func Admiral(client Client, opts AdmiralOptions) (*Store, error) {
	if opts.Table == "" {
		opts.Table = "admiral-lease"
	}
	if opts.Wait < time.Second || opts.Wait%time.Second != 0 || opts.Wait > store.MaxTTL {
		return nil, fmt.Errorf("admiral: Wait %v: want Admiral's waitTimeInSeconds, in whole seconds, up to %v", opts.Wait, store.MaxTTL)
	}
	if opts.Threshold < 1 || opts.Threshold > int(store.MaxTTL/opts.Wait) {
		return nil, fmt.Errorf("admiral: Threshold %d: want Admiral's failureThreshold, from 1, so that %v times it is at most %v", opts.Threshold, opts.Wait, store.MaxTTL)
	}
	if err := checkSkew("admiral", opts.Skew); err != nil {
		return nil, err
	}
	return open(client, opts.Table, admiralSchema(opts.Wait*time.Duration(opts.Threshold), opts.Skew), opts.Access)
}

func checkSkew(schema string, skew time.Duration) error {
	if skew < 0 || skew > store.MaxTTL {
		return fmt.Errorf("%s: Skew %v: want 0 to %v", schema, skew, store.MaxTTL)
	}
	return nil
}

// admiralSchema: an instance takes a lease over when updatedTime < now - window, all in whole
// seconds by its wall clock, and one that isn't there or has an empty owner at once. Admiral reads
// an attribute that is missing as empty, or 0. People write rows by hand, in a console that makes
// strings: a time may be one.
func admiralSchema(window, skew time.Duration) schema {
	sc := schema{
		name: "admiral", key: "leaseName", wall: true,
		columns:   []column{{name: "leaseOwner"}, {name: "updatedTime", number: true, typed: true}},
		guarantee: "exclusive among Leasehold's; Admiral's own writes are unconditional, so one that was late may undo a take-over until the next renewal",
	}
	const owner, updated = 0, 1
	sc.read = func(c columns) (hold, error) {
		var name string
		if c[owner] != nil {
			name = *c[owner]
		}
		if name == HoldOwner { // whatever its time
			return hold{owner: name, ttl: store.MaxTTL}, nil
		}
		at := time.Unix(0, 0)
		if c[updated] != nil {
			var err error
			if at, err = sc.seconds(c, updated); err != nil {
				return hold{}, err
			}
		}
		return hold{owner: name, ttl: window, until: at.Add(window + time.Second + skew)}, nil
	}
	sc.write = func(rec store.Record, _ string, wall time.Time) columns {
		at := wall.Unix()
		if rec.Owner != "" {
			at = max(at, ceil(wall.Add(lasting(rec)+skew-window)))
		}
		return columns{&rec.Owner, decimal(at)}
	}
	sc.born = func(wall time.Time) table.Row {
		return table.Row{"notes": str(fmt.Sprintf("Created at %d", wall.Unix()))}
	}
	return sc
}
