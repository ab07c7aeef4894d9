// Package leasetest has the world in which tests of leases run, and tests of what is made of
// leases. A [World] is one store and the hosts that use it, in virtual time. Each [Host] has a
// clock and a connection of its own, which a test can make wrong, slow or dead:
//
//	leasetest.Run(t, func(t *testing.T, w *leasetest.World) {
//		a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
//		held, waits := a.Take("job"), b.Acquiring(t.Context(), "job")
//		a.Outage.Start() // nothing reaches the store, and nothing comes back
//		…
//	})
//
// A World checks, after each write that lands and each acquisition, what has to hold whatever a
// test does: tokens rise, and no name has two valid holders.
//
// The decisions below package lease have tests that are closer to them: internal/protocol has no
// store, and internal/drive can't import lease. Tests over a network, or of real engines, have
// worlds of their own.
package leasetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// The TTL of every manager unless a test says otherwise, and what its holders count on: the
// defaults.
const (
	TTL      = 15 * time.Second
	Validity = 12 * time.Second
)

// World is one store and the hosts that use it.
type World struct {
	T   *testing.T
	Clk *clocktest.Clock // of the store's machine
	DB  *memory.DB

	// Of the store, for hosts that come: it vouches for no Age, or promises nothing at all by its
	// [store.Properties], as one of a stranger's.
	Ageless, Plain bool
	Unsafe         bool // the test lets two hold at once, on purpose

	wrong   func(format string, args ...any) // T.Errorf
	mu      sync.Mutex
	hosts   int
	writes  int
	rows    map[string]store.Record // as last written
	highest map[string]fence.Token
	terms   map[string][]*lease.Lease // by name: what was acquired here
}

// Run runs f in virtual time, in a world of its own.
func Run(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, New(t)) })
}

// RunBoth runs f twice, in worlds of their own. The first store vouches for the age of its records,
// the second doesn't.
func RunBoth(t *testing.T, f func(t *testing.T, w *World)) {
	t.Helper()
	for _, ageless := range []bool{false, true} {
		t.Run(fmt.Sprintf("ageless=%t", ageless), func(t *testing.T) {
			Run(t, func(t *testing.T, w *World) {
				w.Ageless = ageless
				f(t, w)
			})
		})
	}
}

// New returns a world for a test that runs in a bubble of virtual time already.
func New(t *testing.T) *World {
	clk := clocktest.New(0)
	return &World{
		T: t, wrong: t.Errorf, Clk: clk, DB: memory.NewDB(memory.Options{Clock: clk}),
		rows: map[string]store.Record{}, highest: map[string]fence.Token{}, terms: map[string][]*lease.Lease{},
	}
}

// Open returns a handle of the store as hosts have it. There is no network in between.
func (w *World) Open() store.Store {
	st := store.Store(ledger{w.DB.Open(), w})
	if w.Plain {
		st = plain{st}
	}
	if w.Ageless {
		st = faulty.Ageless(st)
	}
	return st
}

// plain is a store without [store.Properties].
type plain struct{ store.Store }

// Wait implements [store.Waiter].
func (p plain) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return store.Wait(ctx, p.Store, key, version)
}

// Writes returns how many writes have landed.
func (w *World) Writes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// Get reads a record past all networks. One that isn't stored has no Version.
func (w *World) Get(key string) store.Record {
	w.T.Helper()
	rec, err := store.Load(context.Background(), w.DB.Open(), key)
	if err != nil {
		w.T.Fatal(err)
	}
	return rec
}

// Put writes a record past all networks, over what is there, as an outsider does with a tool of the
// store's.
func (w *World) Put(rec store.Record) {
	w.T.Helper()
	rec.Version = w.Get(rec.Key).Version
	if _, err := w.DB.Open().Put(context.Background(), rec); err != nil {
		w.T.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows[rec.Key], w.highest[rec.Key] = rec, rec.Token
}

// Edit changes a record as [World.Put] does.
func (w *World) Edit(key string, change func(*store.Record)) {
	w.T.Helper()
	rec := w.Get(key)
	change(&rec)
	w.Put(rec)
}

// Wipe deletes a record past all networks, as the loss of the store's data does. The tokens have to
// rise all the same.
func (w *World) Wipe(key string) {
	w.T.Helper()
	if err := w.DB.Open().Delete(context.Background(), key, w.Get(key).Version); err != nil {
		w.T.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rows, key)
}

// Restore puts an older version of a record back, as a backup does. The tokens have to rise all the
// same.
func (w *World) Restore(rec store.Record) {
	w.T.Helper()
	w.mu.Lock()
	high := w.highest[rec.Key]
	w.mu.Unlock()
	w.Put(rec)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.highest[rec.Key] = high
}

// Forget has the world expect nothing of the name's next token.
func (w *World) Forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.highest, name)
}

// Acquired has the world watch a lease: no other one of its name may be valid beside it.
func (w *World) Acquired(l *lease.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terms[l.Name()] = append(w.terms[l.Name()], l)
	w.exclusive()
}

// exclusive checks that no name has two valid holders. w.mu is held.
func (w *World) exclusive() {
	if w.Unsafe {
		return
	}
	for key, terms := range w.terms {
		var valid []string
		for _, l := range terms {
			if l.Left() > 0 {
				valid = append(valid, fmt.Sprint(l.Holder(), " ", l.Token()))
			}
		}
		if len(valid) > 1 {
			w.wrong("%s has %d valid holders: %s", key, len(valid), strings.Join(valid, ", "))
		}
	}
}

// ledger checks what lands in the store.
type ledger struct {
	*memory.Store
	w *World
}

// Put implements [store.Store].
func (s ledger) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	got, err := s.Store.Put(ctx, rec)
	if err == nil {
		s.w.landed(rec)
	}
	return got, err
}

// landed checks a write that has just been done. w.mu is held.
func (w *World) landed(rec store.Record) {
	prev, high := w.rows[rec.Key], w.highest[rec.Key]
	renewal := prev.Owner == rec.Owner && prev.Token == rec.Token
	switch {
	case rec.Token < high:
		w.wrong("%s: token lowered from %d to %d", rec.Key, high, rec.Token)
	case rec.Owner != "" && rec.Token == high && !renewal:
		w.wrong("%s: %s took it under token %d, which has been used", rec.Key, rec.Owner, rec.Token)
	}
	w.writes++
	w.rows[rec.Key], w.highest[rec.Key] = rec, rec.Token
	w.exclusive()
}
