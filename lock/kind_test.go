package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// use is a way to use a name.
type use struct {
	kind store.Kind
	try  func(ctx context.Context, s *lease.Session) (*Hold, error)
}

// uses are all ways to use the name x.
func uses(t testing.TB) map[string]use {
	ofMutex := func(fair bool) func(ctx context.Context, s *lease.Session) (*Hold, error) {
		return func(ctx context.Context, s *lease.Session) (*Hold, error) {
			m, err := NewMutex(s, "x", MutexOptions{Fair: fair})
			if err != nil {
				t.Fatal(err)
			}
			return m.TryLock(ctx)
		}
	}
	ofRW := func(lock func(rw *RWMutex, ctx context.Context) (*Hold, error)) func(ctx context.Context, s *lease.Session) (*Hold, error) {
		return func(ctx context.Context, s *lease.Session) (*Hold, error) {
			rw, err := NewRWMutex(s, "x")
			if err != nil {
				t.Fatal(err)
			}
			return lock(rw, ctx)
		}
	}
	return map[string]use{
		"lease": {store.KindLease, func(ctx context.Context, s *lease.Session) (*Hold, error) {
			l, err := s.Manager().TryAcquire(ctx, "x")
			if err != nil {
				return nil, err
			}
			return ofLeases("x", []*lease.Lease{l}, nil), nil
		}},
		"lease of a session": {store.KindLease, func(ctx context.Context, s *lease.Session) (*Hold, error) {
			l, err := s.TryAcquire(ctx, "x")
			if err != nil {
				return nil, err
			}
			return ofLeases("x", []*lease.Lease{l}, nil), nil
		}},
		"mutex":      {store.KindLease, ofMutex(false)},
		"fair mutex": {store.KindLease, ofMutex(true)},
		"reader":     {store.KindRW, ofRW((*RWMutex).TryRLock)},
		"writer":     {store.KindRW, ofRW((*RWMutex).TryLock)},
		"semaphore": {store.KindSemaphore, func(ctx context.Context, s *lease.Session) (*Hold, error) {
			sem, err := NewSemaphore(s, "x", SemaphoreOptions{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			return sem.TryAcquire(ctx, 1)
		}},
		"election": {store.KindElection, func(ctx context.Context, s *lease.Session) (*Hold, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second) // it doesn't try
			defer cancel()
			l, err := s.Acquire(ctx, "x", wanted.As(store.KindElection), wanted.Behind(func() time.Duration { return 0 }))
			if err != nil {
				return nil, err
			}
			return ofLeases("x", []*lease.Lease{l}, nil), nil
		}},
		"pool": {store.KindPool, func(ctx context.Context, s *lease.Session) (*Hold, error) { // as package identity takes its name
			l, err := s.Manager().TryAcquire(ctx, "x", wanted.As(store.KindPool))
			if err != nil {
				return nil, err
			}
			return ofLeases("x", []*lease.Lease{l}, nil), nil
		}},
	}
}

// Two uses of one name never hold at the same time, whatever kinds they want it as; only readers do. A use of another kind is an error
// that names both; and once nobody has the name, it is what it is used as next, under a higher token. Only a pool stays one.
func TestFinding_S1_KindsOfOneNameExcludeEachOther(t *testing.T) {
	for a, first := range uses(t) {
		for b, second := range uses(t) {
			t.Run(a+" and "+b, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					p, q := w.process(nil), w.process(nil)
					held, err := first.try(t.Context(), p.Session)
					must(t, held, err)
					got, err := second.try(t.Context(), q.Session)
					other := new(store.KindError)
					switch {
					case a == "reader" && b == "reader":
						must(t, got, err)
					case err == nil:
						t.Fatalf("both hold it, under %d and %d", held.Token(), got.Token())
					case first.kind == second.kind:
						if !errors.Is(err, lease.ErrHeld) {
							t.Errorf("of one kind: %v", err)
						}
					case !errors.As(err, &other) || !errors.Is(err, store.ErrKind):
						t.Errorf("of another kind: %v", err)
					case other.Name != "x" || other.Kind != first.kind || other.Wanted != second.kind:
						t.Errorf("%+v, want a %s wanted as %s", other, first.kind, second.kind)
					case (other.Holder != p.Manager().Holder()) == (len(other.Members) != 1 || other.Members[0] != p.Key()):
						t.Errorf("%+v doesn't say who has it", other)
					}
					if held.Check() != nil {
						t.Error("the first one lost it")
					}
					if err := held.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got == nil {
						got, err = second.try(t.Context(), q.Session)
						if a == "pool" && b != "pool" {
							if !errors.As(err, &other) || other.Kind != store.KindPool || other.Holder != "" {
								t.Errorf("a pool became another kind: %v, %v", got, err)
							}
							return
						}
						must(t, got, err)
					}
					if got.Token() <= held.Token() {
						t.Errorf("token %d after %d", got.Token(), held.Token())
					}
				})
			})
		}
	}
}

// A dead holder or member keeps nobody from using the name as another kind for longer than a dead holder of the same kind does. Only a
// pool stays one.
func TestFinding_S1_TheDeadDontKeepAKind(t *testing.T) {
	for a, first := range uses(t) {
		for b, second := range uses(t) {
			t.Run(a+" and "+b, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					p, q := w.process(nil), w.process(nil)
					held, err := first.try(t.Context(), p.Session)
					must(t, held, err)
					p.Cut()
					time.Sleep(2 * ttl)
					m := second
					try := func() (*Hold, error) { return m.try(t.Context(), q.Session) }
					if b == "reader" || b == "writer" || b == "semaphore" || b == "fair mutex" {
						try = remembering(t, b, q.Session)
					}
					start := time.Now()
					got, err := try()
					for err != nil && time.Since(start) < 3*ttl {
						time.Sleep(ttl / 2)
						got, err = try()
					}
					if a == "pool" && b != "pool" {
						if !errors.Is(err, store.ErrKind) {
							t.Errorf("a pool became another kind: %v, %v", got, err)
						}
						return
					}
					must(t, got, err)
					if held.Check() == nil || got.Token() <= held.Token() {
						t.Errorf("both hold it, or token %d after %d", got.Token(), held.Token())
					}
				})
			})
		}
	}
}

// remembering tries by one lock, which remembers what it saw.
func remembering(t *testing.T, b string, s *lease.Session) func() (*Hold, error) {
	t.Helper()
	switch b {
	case "semaphore":
		sem, err := NewSemaphore(s, "x", SemaphoreOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return func() (*Hold, error) { return sem.TryAcquire(t.Context(), 1) }
	case "fair mutex":
		m, err := NewMutex(s, "x", MutexOptions{Fair: true})
		if err != nil {
			t.Fatal(err)
		}
		return func() (*Hold, error) { return m.TryLock(t.Context()) }
	}
	rw, err := NewRWMutex(s, "x")
	if err != nil {
		t.Fatal(err)
	}
	if b == "reader" {
		return func() (*Hold, error) { return rw.TryRLock(t.Context()) }
	}
	return func() (*Hold, error) { return rw.TryLock(t.Context()) }
}

// Whatever kinds a name is used as, one after the other, its tokens rise.
func TestFinding_S1_TokensRiseOverAllKinds(t *testing.T) {
	all := uses(t)
	var names []string
	for name := range all {
		if name != "pool" { // stays one
			names = append(names, name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SliceOfN(rapid.SampledFrom(names), 2, 12).Draw(rt, "order")
		synctest.Test(t, func(t *testing.T) {
			h := leasetest.New(t).Host(nil)
			s := h.Process(h.Net, lease.Options{}).Session
			var last fence.Token
			for _, name := range order {
				h, err := all[name].try(t.Context(), s)
				if err != nil {
					t.Fatalf("%v: %s: %v", order, name, err)
				}
				if h.Token() <= last {
					t.Errorf("%v: %s: token %d after %d", order, name, h.Token(), last)
				}
				last = h.Token()
				if err := h.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
}

// oldRoster writes a roster as versions did that knew no kinds: beside the name's own record, which there need not be.
func (w *world) oldRoster(t *testing.T, kind store.Kind, limit int, token fence.Token, sessions ...string) {
	t.Helper()
	r := roster.Roster{Format: roster.Format, Kind: kind, Limit: limit}
	for i, s := range sessions {
		r.Held = append(r.Held, roster.Entry{ID: fmt.Sprint("old", i), Session: s, Weight: 1, Slot: i, Token: token, Since: time.Now()})
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	w.Put(store.Record{Key: ".lock/x", Token: token, Data: data, Nonce: "old"})
}

// A roster that a version without kinds wrote keeps others out for as long as its members live, is continued by those who use it as what
// it is, and is nothing once they are gone. Tokens continue from its last one.
func TestFinding_S1_OldRostersCount(t *testing.T) {
	for name, u := range uses(t) {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p, q := w.process(nil), w.process(nil)
				ahead := fence.Token(time.Now().Add(time.Hour).UnixMilli())
				kind, limit := roster.RW, MaxShares
				if name == "semaphore" {
					kind, limit = roster.Semaphore, 1
				}
				w.oldRoster(t, kind, limit, ahead, p.Key())
				h, err := u.try(t.Context(), q.Session)
				switch name {
				case "reader":
					must(t, h, err)
				case "writer", "semaphore":
					if !errors.Is(err, lease.ErrHeld) {
						t.Errorf("beside a member: %v, %v", h, err)
					}
				default:
					if !errors.Is(err, store.ErrKind) {
						t.Errorf("beside a member: %v, %v", h, err)
					}
				}
				if state, err := roster.Load(t.Context(), q.Manager().Store(), "x"); err != nil || state.Kind != kind || len(state.Held) == 0 || state.Held[0].Owner != p.Manager().Holder() {
					t.Errorf("%+v, %v", state, err)
				}
				if err := p.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if h == nil {
					h, err = u.try(t.Context(), q.Session)
					must(t, h, err)
				}
				if h.Token() <= ahead {
					t.Errorf("token %d after the old roster's %d", h.Token(), ahead)
				}
			})
		})
	}
}

// Who holds a name alone, by its lease, and those who share it beside leases wait for each other.
func TestReadersBesideALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		l, err := p.Manager().Acquire(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		rw, err := NewRWMutex(q.Session, "x")
		if err != nil {
			t.Fatal(err)
		}
		rw = rw.BesideLeases()
		held := new(HeldError)
		if _, err := rw.TryRLock(t.Context()); !errors.As(err, &held) || len(held.Holders) != 1 || held.Holders[0] != p.Manager().Holder() {
			t.Errorf("beside the lease: %v", err)
		}
		time.AfterFunc(time.Minute, func() {
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		h, err := rw.RLock(t.Context())
		must(t, h, err)
		if took := time.Since(start); took < time.Minute || took > time.Minute+10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if _, err := p.Manager().TryAcquire(t.Context(), "x"); !errors.Is(err, store.ErrKind) {
			t.Errorf("a lease beside a reader: %v", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err = p.Manager().TryAcquire(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		p.Cut()
		start = time.Now()
		h, err = rw.Lock(t.Context())
		must(t, h, err)
		if took := time.Since(start); took > w.within() {
			t.Errorf("a dead holder's lease was waited for for %v", took)
		}
	})
}

// Of a lease after which a name is shared the record says how it ended.
func TestHowTheLeaseBeforeAShareEnded(t *testing.T) {
	for want, end := range map[string]func(t *testing.T, p *process) error{
		"session ended": func(t *testing.T, p *process) error {
			_, err := p.TryAcquire(t.Context(), "x")
			return errors.Join(err, p.Close(t.Context()))
		},
		"expired": func(t *testing.T, p *process) error {
			_, err := p.Manager().TryAcquire(t.Context(), "x")
			p.Cut()
			return err
		},
	} {
		t.Run(want, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p, q := w.process(nil), w.process(nil)
				if err := end(t, p); err != nil {
					t.Fatal(err)
				}
				mine, err := NewRWMutex(q.Session, "x")
				if err != nil {
					t.Fatal(err)
				}
				h, err := mine.BesideLeases().Lock(t.Context())
				must(t, h, err)
				if past := w.Get("x").Past; len(past) != 1 || past[0].Why != want || past[0].Owner != p.Manager().Holder() {
					t.Errorf("%+v, want %q", past, want)
				}
			})
		})
	}
}
