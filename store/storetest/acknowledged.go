package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// acknowledged is the writes of several handles, so that it can be told whether a record comes
// after all that were acknowledged. The zero value is ready for use.
type acknowledged struct {
	mu     sync.Mutex
	over   map[[2]string]map[string]bool // by key and nonce: the versions that such a write demands
	nonces map[[2]string]string          // by key and version: of the write that made it
	done   map[string]map[string]bool    // by key: the versions that were acknowledged
}

// watch returns st with its writes taken down, and what its answers tell of them.
func (a *acknowledged) watch(st store.Store) store.Store {
	w := watched{Store: st, a: a}
	if _, pushes := st.(store.Waiter); pushes {
		return watchedWaiter{w}
	}
	return w
}

// saw takes down that a version was made by the write of that nonce.
func (a *acknowledged) saw(rec store.Record, acknowledged bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.nonces == nil {
		a.nonces, a.done = map[[2]string]string{}, map[string]map[string]bool{}
	}
	a.nonces[[2]string{rec.Key, rec.Version}] = rec.Nonce
	if !acknowledged {
		return
	}
	if a.done[rec.Key] == nil {
		a.done[rec.Key] = map[string]bool{}
	}
	a.done[rec.Key][rec.Version] = true
}

// sent takes down a write before it is sent.
func (a *acknowledged) sent(rec store.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over == nil {
		a.over = map[[2]string]map[string]bool{}
	}
	of := [2]string{rec.Key, rec.Nonce}
	if a.over[of] == nil {
		a.over[of] = map[string]bool{}
	}
	a.over[of][rec.Version] = true
}

// before returns how many writes of rec's key were acknowledged, all of which are rec or came
// before it, or else an error.
func (a *acknowledged) before(rec store.Record) (int, error) {
	a.saw(rec, false)
	a.mu.Lock()
	defer a.mu.Unlock()
	came := map[string]bool{}
	for left := []string{rec.Version}; len(left) > 0; {
		version := left[0]
		left = left[1:]
		if came[version] || version == "" {
			continue
		}
		came[version] = true
		for over := range a.over[[2]string{rec.Key, a.nonces[[2]string{rec.Key, version}]}] {
			left = append(left, over)
		}
	}
	for version := range a.done[rec.Key] {
		if !came[version] {
			return 0, fmt.Errorf("%s: version %q was acknowledged and is lost: version %q doesn't come after it", rec.Key, version, rec.Version)
		}
	}
	return len(a.done[rec.Key]), nil
}

// watched is a store whose writes are taken down.
type watched struct {
	store.Store
	a *acknowledged
}

// answer takes down what an answer tells.
func (w watched) answer(rec store.Record, err error) (store.Record, error) {
	var c *store.ConflictError
	switch {
	case errors.As(err, &c):
		w.a.saw(c.Current, false)
	case err == nil && rec.Version != "":
		w.a.saw(rec, false)
	}
	return rec, err
}

// Get implements [store.Store].
func (w watched) Get(ctx context.Context, key string) (store.Record, error) {
	return w.answer(w.Store.Get(ctx, key))
}

// Put implements [store.Store].
func (w watched) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	w.a.sent(rec)
	got, err := w.Store.Put(ctx, rec)
	if err == nil {
		w.a.saw(got, true)
	}
	return w.answer(got, err)
}

// Confirm implements [store.Confirmer].
func (w watched) Confirm(ctx context.Context, key string) (store.Record, error) {
	rec, err := w.answer(store.Confirm(ctx, w.Store, key))
	if err == nil && rec.Version == "" {
		err = driver.NotFound(key)
	}
	return rec, err
}

// Properties implements [store.Describer].
func (w watched) Properties() store.Properties { return store.Describe(w.Store) }

// watchedWaiter is one that pushes.
type watchedWaiter struct{ watched }

// Wait implements [store.Waiter].
func (w watchedWaiter) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return w.answer(store.Wait(ctx, w.Store, key, version))
}
