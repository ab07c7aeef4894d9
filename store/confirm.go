package store

import (
	"context"
	"errors"
	"fmt"
)

// Confirmer is the optional interface of stores whose Get isn't durable. Use [Confirm].
type Confirmer interface {
	// Confirm is Get, and durable. It sees every write that was acknowledged to anyone before
	// Confirm was called, also by a leader that has replaced the one at hand. What it shows is lost
	// by no failure that the store survives. Confirm may write, but changes no record. An error
	// that doesn't match [ErrNotFound] says nothing of the record.
	Confirm(ctx context.Context, key string) (Record, error)
}

// Confirm returns the record under key for a caller who relies on it without a write of its own, as
// a guard does. A key that is not stored is Record{Key: key}, as for [Load]. Confirm is a Get where
// Get is durable, or where the store doesn't say. Otherwise it costs a write. It returns an error
// for a store whose reads aren't durable, and that can't confirm them. Confirm blocks as Get does.
func Confirm(ctx context.Context, s Store, key string) (Record, error) {
	p := Describe(s)
	if p.Read == ReadDurable || p.Read == ReadUnknown {
		return Load(ctx, s, key)
	}
	c, ok := s.(Confirmer)
	if !ok {
		return Record{}, fmt.Errorf("%s: a read of %s is worth only %q, and can't be confirmed: guard with a store whose reads are durable", key, p.Engine, p.Read)
	}
	rec, err := c.Confirm(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return Record{Key: key}, nil
	}
	return rec, err
}

// Confirmed returns s with a Get that is durable: see [Confirm]. The other methods are those of s,
// and so is what List shows.
func Confirmed(s Store) Store { return confirmed{s} }

type confirmed struct{ Store }

// Get implements [Store].
func (c confirmed) Get(ctx context.Context, key string) (Record, error) {
	rec, err := Confirm(ctx, c.Store, key)
	if err == nil && rec.Version == "" {
		err = fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	if err != nil {
		return Record{}, err
	}
	return rec, nil
}

// Properties implements [Describer].
func (c confirmed) Properties() Properties {
	p := Describe(c.Store)
	p.Push = false
	if p.Read != ReadUnknown {
		p.Read = ReadDurable
	}
	return p
}
