package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// named is the data of the record of an instance's name.
type named struct {
	Format int    `json:"v"`
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"` // that it had last; "" when another instance has got it
}

func readNamed(rec store.Record) (named, error) {
	n := named{Format: format}
	if len(rec.Data) == 0 {
		return n, nil
	}
	if err := json.Unmarshal(rec.Data, &n); err != nil {
		return named{}, store.Corrupt(rec.Key, err)
	}
	if n.Format != format {
		return named{}, store.Corrupt(rec.Key, fmt.Errorf("its data have format %d: this version reads format %d", n.Format, format))
	}
	return n, nil
}

// own takes the value that the name had, and returns it; the lease is nil if there is none that can be had.
func (c *claim) own(ctx context.Context) (had string, l *lease.Lease, place int, err error) {
	if c.opts.As == "" {
		return "", nil, 0, nil
	}
	rec, err := store.Load(ctx, c.st, nameKey(c.name, c.opts.As))
	if err != nil {
		return "", nil, 0, err
	}
	n, err := readNamed(rec)
	if err != nil {
		return "", nil, 0, err
	}
	place, ok := c.set.place(n.Value)
	if !ok {
		return n.Value, nil, 0, nil
	}
	for {
		l, err = c.s.TryAcquire(ctx, leaseKey(c.name, n.Value))
		var held *lease.HeldError
		if !errors.As(err, &held) {
			return n.Value, l, place, err
		}
		mine, failure := c.ownedBySame(ctx, n.Value, held)
		if failure != nil {
			return "", nil, 0, failure
		}
		if !mine {
			return n.Value, nil, 0, nil
		}
		if clock.Sleep(ctx, c.m.Clock(), c.m.TTL()/20) != nil {
			return "", nil, 0, errors.Join(context.Cause(ctx), err)
		}
	}
}

// ownedBySame reports whether a value is held under the claim's own name. A holder whose window isn't stored yet may be.
func (c *claim) ownedBySame(ctx context.Context, value string, held *lease.HeldError) (bool, error) {
	rec, err := store.Load(ctx, c.st, windowKey(c.name, value))
	if err != nil {
		return false, err
	}
	w, err := readWindow(rec)
	return w.Token < held.Token || w.Name == c.opts.As, err
}

// errBound says that the name has got a value meanwhile.
var errBound = errors.New("the name has got another value meanwhile")

// bind writes down that the claim's name has a value now, instead of the one that it had.
func (c *claim) bind(ctx context.Context, had, value string) error {
	return c.rename(ctx, c.opts.As, func(n *named) (bool, error) {
		if n.Value != had && n.Value != value && n.Value != "" {
			return false, errBound
		}
		write := n.Value != value
		n.Value = value
		return write, nil
	})
}

// unbind writes down that another instance has got the value of that name.
func (c *claim) unbind(ctx context.Context, name, value string) error {
	return c.rename(ctx, name, func(n *named) (bool, error) {
		write := n.Value == value
		n.Value = ""
		return write, nil
	})
}

func (c *claim) rename(ctx context.Context, name string, f func(*named) (bool, error)) error {
	if name == "" {
		return nil
	}
	return store.Update(ctx, c.st, nameKey(c.name, name), func(rec *store.Record) (bool, error) {
		n, err := readNamed(*rec)
		if err != nil {
			return false, err
		}
		if write, err := f(&n); err != nil || !write {
			return false, err
		}
		n.Name = name
		rec.Data, err = json.Marshal(n)
		return err == nil, err
	})
}
