package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
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
		return named{}, driver.Corrupt(rec.Key, err)
	}
	if n.Format != format {
		return named{}, driver.Corrupt(rec.Key, fmt.Errorf("its data have format %d: this version reads format %d", n.Format, format))
	}
	return n, nil
}

// named returns what is stored of an instance's name.
func (c *claim) named(ctx context.Context, name string) (named, error) {
	rec, err := store.Load(ctx, c.st, nameKey(c.name, name))
	if err != nil {
		return named{}, err
	}
	return readNamed(rec)
}

// own takes the value that the name had, and returns it; the lease is nil if there is none that can
// be had, or if another one was asked for. A standing assignment of that name is taken over.
func (c *claim) own(ctx context.Context) (had string, l *lease.Lease, place int, err error) {
	if c.opts.Name == "" {
		return "", nil, 0, nil
	}
	n, err := c.named(ctx, c.opts.Name)
	if err != nil {
		return "", nil, 0, err
	}
	place, ok := c.set.place(n.Value)
	if !ok {
		return n.Value, nil, 0, nil
	}
	if c.value != "" && c.value != n.Value {
		return n.Value, nil, 0, c.mayMove(ctx, n.Value)
	}
	for {
		l, err = c.acquire(ctx, place)
		var held *lease.HeldError
		if !errors.As(err, &held) {
			return n.Value, l, place, err
		}
		w, failure := c.window(ctx, n.Value)
		switch {
		case failure != nil:
			return "", nil, 0, failure
		case w.Token < held.Token: // its window isn't stored yet: it may be of the same name
		case w.Name != c.opts.Name:
			return n.Value, nil, 0, nil
		case w.Standing && held.Note == "" && c.standing:
			return "", nil, 0, errBound // somebody has just assigned it
		case w.Standing && held.Note == "":
			if err := c.relieve(ctx, n.Value, held.Token); err != nil {
				return "", nil, 0, err
			}
			continue
		case c.hasty:
			return "", nil, 0, held
		}
		if clock.Sleep(ctx, c.m.Clock(), c.m.TTL()/20) != nil {
			return "", nil, 0, errors.Join(context.Cause(ctx), err)
		}
	}
}

// window returns what is stored of a value's windows.
func (c *claim) window(ctx context.Context, value string) (window, error) {
	rec, err := store.Load(ctx, c.st, windowKey(c.name, value))
	if err != nil {
		return window{}, err
	}
	return readWindow(rec)
}

// errBound says that the name has got a value meanwhile.
var errBound = errors.New("the name has got another value meanwhile")

// bind writes down that the claim's name has a value now, instead of the one that it had.
func (c *claim) bind(ctx context.Context, had, value string) error {
	return c.rename(ctx, c.opts.Name, func(n *named) (bool, error) {
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
