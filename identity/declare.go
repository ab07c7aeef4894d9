package identity

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// declare is declared for claims and assignments: it writes the record if there is none yet and
// values are given. Before that, the pool's name becomes that of a pool: one that is in use as
// another kind is a *[store.KindError].
func declare(ctx context.Context, m *lease.Manager, st store.Store, name string, o Options) (store.Record, pool, set, error) {
	fail := func(err error) (store.Record, pool, set, error) { return store.Record{}, pool{}, set{}, err }
	var asked set
	if !o.Values.isZero() {
		var err error
		if asked, err = o.Values.check(); err != nil {
			return fail(err)
		}
	}
	rec, err := store.Load(ctx, st, poolKey(name))
	switch {
	case err != nil:
	case rec.Version == "" && asked.size == 0:
		err = ErrUndeclared
	case rec.Version == "":
		rec, err = found(ctx, m, st, name, asked, o.Layout)
	case rec.Kind == "":
		rec, err = adopt(ctx, m, st, name, rec)
	}
	if err != nil {
		return fail(err)
	}
	rec, p, s, err := matching(name, rec, o.Values)
	if err != nil || o.Layout.Bits() == 0 {
		return rec, p, s, err
	}
	of := layoutOf{name, o.Layout}
	if err := of.check(p.Layout, &s); err != nil {
		return fail(err)
	}
	if p.Layout != "" {
		return rec, p, s, nil
	}
	if err := of.keep(ctx, st); err != nil {
		return fail(err)
	}
	return declared(ctx, st, name, o.Values)
}

// found writes the record of a new pool.
func found(ctx context.Context, m *lease.Manager, st store.Store, name string, asked set, l flake.Layout) (store.Record, error) {
	p := newPool(&asked)
	if err := (layoutOf{name, l}).check("", &asked); err != nil {
		return store.Record{}, err
	}
	p.Layout = l.String()
	if err := occupy(ctx, m, st, name); err != nil {
		return store.Record{}, err
	}
	err := store.Update(ctx, st, poolKey(name), func(rec *store.Record) (write bool, err error) {
		if rec.Version != "" {
			return false, nil
		}
		rec.Kind = store.KindPool
		rec.Data, err = json.Marshal(p)
		return err == nil, err
	})
	if err != nil {
		return store.Record{}, err
	}
	return st.Get(ctx, poolKey(name))
}

// adopt has a pool that a version without kinds declared take its name. One whose name is in use as
// another kind remains a pool beside that, as it was, until the name is free: an upgrade takes
// nobody's values away.
func adopt(ctx context.Context, m *lease.Manager, st store.Store, name string, rec store.Record) (store.Record, error) {
	if err := occupy(ctx, m, st, name); errors.Is(err, store.ErrKind) {
		return rec, nil
	} else if err != nil {
		return store.Record{}, err
	}
	p, _, err := readPool(rec)
	if err != nil {
		return store.Record{}, err
	}
	rec.Kind = store.KindPool
	if marked, ok := put(ctx, st, rec, p); ok {
		return marked, nil
	}
	return st.Get(ctx, poolKey(name)) // another write was first
}

// occupy makes a pool's name that of a pool. Nobody can use a name that is none for a lease, so
// there is nothing to be made of it.
func occupy(ctx context.Context, m *lease.Manager, st store.Store, name string) error {
	if keyspace.Reserved(name) || driver.CheckKey(name) != nil {
		return nil
	}
	var held *lease.HeldError
	for {
		rec, err := store.Load(ctx, st, name)
		switch {
		case err != nil:
			return err
		case rec.Kind == store.KindPool:
			return nil
		case held != nil && rec.Owner == held.Holder && rec.Token == held.Token:
			return &store.KindError{Name: name, Kind: store.KindLease, Wanted: store.KindPool, Holder: rec.Owner}
		}
		m.Notice(rec)
		l, err := m.TryAcquire(ctx, name, wanted.As(store.KindPool))
		if err == nil {
			_ = l.Release(ctx) // it is a pool's from now on, held or not
			return nil
		}
		if !errors.As(err, &held) {
			return err
		}
	}
}
