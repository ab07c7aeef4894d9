package identity

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// uses are the ways to use the name "machines" as something else than a pool.
var uses = map[string]struct {
	kind store.Kind
	try  func(ctx context.Context, p *process) (*lease.Lease, error)
}{
	"lease": {store.KindLease, func(ctx context.Context, p *process) (*lease.Lease, error) { return p.m.TryAcquire(ctx, "machines") }},
	"lease of a session": {store.KindLease, func(ctx context.Context, p *process) (*lease.Lease, error) {
		return p.s.TryAcquire(ctx, "machines")
	}},
	"waiting": {store.KindLease, func(ctx context.Context, p *process) (*lease.Lease, error) { return p.m.Acquire(ctx, "machines") }},
	"election": {store.KindElection, func(ctx context.Context, p *process) (*lease.Lease, error) {
		return p.s.Acquire(ctx, "machines", wanted.As(store.KindElection), wanted.Behind(func() time.Duration { return 0 }))
	}},
}

func isKind(t *testing.T, err error, kind, wanted store.Kind) {
	t.Helper()
	other := new(store.KindError)
	if !errors.As(err, &other) || other.Name != "machines" || other.Kind != kind || other.Wanted != wanted {
		t.Errorf("%v, want a %s wanted as %s", err, kind, wanted)
	}
}

// A pool keeps its name from all other uses, also while nobody has a value; and a name that is in use as something else becomes no pool
// before it is free.
func TestFinding_S1_PoolsKeepTheirNames(t *testing.T) {
	for name, u := range uses {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w world) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
				defer cancel()
				p, q := w.process(nil), w.process(nil)
				l, err := u.try(ctx, p)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					_, err = Claim(t.Context(), q.s, "machines", ranged("0-9"))
					isKind(t, err, u.kind, store.KindPool)
				}
				if rec, err := store.Load(t.Context(), q.m.Store(), poolKey("machines")); err != nil || rec.Version != "" {
					t.Errorf("a pool was declared beside it: %v", err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				h := q.claim(ranged("0-9"))
				_, err = u.try(ctx, p)
				isKind(t, err, store.KindPool, u.kind)
				q.release(h, h.Floor())
				_, err = u.try(ctx, p)
				isKind(t, err, store.KindPool, u.kind)
				q.release(q.claim(Options{}), time.Time{})
			})
		})
	}
}

// A pool and a lease are begun under one name at the same time, in any order: one of them has it.
func TestFinding_S1_APoolAndALeaseRace(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		for i := range 50 {
			name := "job" + string(rune('a'+i%26)) + string(rune('a'+i/26))
			var (
				l            *lease.Lease
				lErr, claims error
				wg           sync.WaitGroup
			)
			wg.Go(func() { l, lErr = p.m.TryAcquire(t.Context(), name) })
			wg.Go(func() { _, claims = Claim(t.Context(), q.s, name, ranged("0-9")) })
			wg.Wait()
			switch {
			case lErr == nil && claims == nil:
				t.Fatalf("both have %s", name)
			case claims != nil && !errors.Is(claims, store.ErrKind):
				t.Errorf("the pool's error: %v", claims)
			case lErr != nil && !errors.Is(lErr, store.ErrKind):
				t.Errorf("the lease's error: %v", lErr)
			}
			if l != nil {
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// old declares the pool as versions did that knew no kinds, with that value in use.
func (w world) old(t *testing.T) {
	t.Helper()
	s, err := Values{Range: "0-9"}.check()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(newPool(&s))
	if err != nil {
		t.Fatal(err)
	}
	w.Put(store.Record{Key: poolKey("machines"), Data: data, Nonce: "old"})
}

// A pool that a version without kinds declared takes its name with the next claim. Where somebody holds that name, its values can be
// claimed all the same, and it takes the name when that is free.
func TestFinding_S1_OldPoolsTakeTheirNames(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(map[bool]string{false: "free", true: "held"}[held], func(t *testing.T) {
			inWorld(t, func(t *testing.T, w world) {
				p, q := w.process(nil), w.process(nil)
				w.old(t)
				if held {
					l, err := p.m.Acquire(t.Context(), "machines")
					if err != nil {
						t.Fatal(err)
					}
					h := q.claim(ranged("0-9"))
					if l.Check() != nil || h.Check() != nil {
						t.Error("an upgrade took something away")
					}
					if err := l.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				q.claim(ranged("0-9"))
				_, err := p.m.TryAcquire(t.Context(), "machines")
				isKind(t, err, store.KindPool, store.KindLease)
				if rec, err := store.Load(t.Context(), q.m.Store(), poolKey("machines")); err != nil || rec.Kind != store.KindPool {
					t.Errorf("its record says %q: each claim looks for its name: %v", rec.Kind, err)
				}
			})
		})
	}
}

// A declaration that was cut off after it took the name is made good by the next one.
func TestADeclarationThatWasCutOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		if _, err := p.m.TryAcquire(t.Context(), "machines", wanted.As(store.KindPool)); err != nil {
			t.Fatal(err)
		}
		p.Cut()
		q.claim(ranged("0-9"))
	})
}
