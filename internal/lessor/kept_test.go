package lessor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A renewal that isn't one is not said to be, and of a session that is over nothing is remembered.
func TestRenewalsOfSessionsFail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		s := serve(t, r)
		rec := s.g.Record
		renew := func(secret string) error {
			return second(r.RenewSession(t.Context(), rec.Key, "a", rec.Token, 0, Secret(secret), untouched, nil))
		}
		if err := renew("wrong"); !errors.Is(err, ErrSecret) || len(r.keepers.all) != 1 {
			t.Errorf("by another secret: %v; %d sessions are known", err, len(r.keepers.all))
		}
		other, _ := w.registry()
		released(t, other, rec)
		if err := renew(s.g.Secret); !errors.Is(err, fence.ErrStale) || len(r.keepers.all) != 0 {
			t.Errorf("of a session that was closed elsewhere: %v; %d sessions are known", err, len(r.keepers.all))
		}
		if serve(t, r).acquire("job"); len(r.keepers.all) != 1 {
			t.Errorf("%d sessions are known", len(r.keepers.all))
		}
	})
}

// A registry looks at what a session keeps: what it is said to keep, but neither what its owner holds beside it, nor what was let go.
func TestWhatASessionIsKnownToKeep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		s := serve(t, r)
		want := func(what string, n int) {
			t.Helper()
			if g := s.renew(); g.LookedAt != n || g.Lost != nil {
				t.Errorf("%s: %+v, want %d", what, g, n)
			}
		}
		granted(t, r, Request{Key: "beside", Owner: "a", TTL: ttl})
		want("held beside it", 0)
		rec := store.Record{Key: "job", Owner: "a", Token: fence.MaxToken - 9, TTL: ttl, Session: s.g.Record.Key, Nonce: "n", Kind: store.KindLease}
		w.Put(rec)
		r.Keep(rec)
		want("granted elsewhere", 1)
		r.LetGo("none")
		want("another was let go", 1)
		w.Wipe("job")
		w.Forget("job") // no token can be as high as that
		if g := s.renew(); g.Lost["job"].Token != rec.Token {
			t.Errorf("an outsider deleted it: %+v", g)
		}
		if now := s.acquire("job"); now.Token >= rec.Token {
			t.Fatalf("token %d", now.Token)
		}
		want("granted once more, under a lower token", 1)
		r.LetGo("job")
		want("let go", 0)
		ended := s.acquire("ended")
		other, _ := w.registry()
		released(t, other, ended)
		if _, err := r.Release(t.Context(), "ended", "a", ended.Token, "released", nil); !errors.Is(err, fence.ErrStale) {
			t.Error(err)
		}
		want("released, as its holder was told", 0)
	})
	r := new(keepers)
	k := r.renewed(nil, "a", 100, 0)
	k.enlist("job", "a", ".session/a", 8)
	k.forget("job", 7)
	if l, ok := k.roster.Member("job"); !ok || l.Token() != 8 {
		t.Error("a later term was forgotten with the one before")
	}
	for i := range clock.Instant(4 * manyKeepers) {
		r.renewed(nil, fmt.Sprint(i), 1, 50)
	}
	if r.of("a") != k {
		t.Error("a session that is not over was forgotten")
	}
}

// A store that fails once is looked at again, within the same renewal.
func TestALookThatFailsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		s := serve(t, r)
		s.acquire("job")
		net.SetPlan(leasetest.Once(faulty.Fault{Err: errDown}, func(op faulty.Op) bool { return op.Kind == faulty.Get && op.Key == "job" }))
		if g := s.renew(); g.LookedAt != 1 {
			t.Errorf("%+v", g)
		}
	})
}

// Two renewals at once look one after the other, and neither is held up for longer than its share: what was looked at before a renewal is
// no look of it.
func TestLooksOfTwoRenewals(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty.Fault
		first int
	}{"slow": {faulty.Fault{Delay: 1200 * time.Millisecond}, 1}, "silent": {faulty.Fault{Drop: true}, 0}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, net := w.registry()
				s := serve(t, r)
				s.acquire("job")
				net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
					if op.Kind == faulty.Get && op.Key == "job" {
						f = c.fault
					}
					return f
				})
				looked := make(chan int, 1)
				go func() { looked <- s.renew().LookedAt }()
				time.Sleep(time.Second)
				begun := time.Now()
				g := s.renew()
				if took := time.Since(begun); g.LookedAt != 0 || took > ttl/patienceOfLooks+time.Millisecond {
					t.Errorf("the second looked at %d, after %v", g.LookedAt, took)
				}
				if n := <-looked; n != c.first {
					t.Errorf("the first looked at %d, want %d", n, c.first)
				}
			})
		})
	}
}

// A session whose record was made too slowly is made once more, under another name.
func TestASessionThatIsMadeTooSlowly(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		begun := time.Now()
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			f.LoseReply = op.Kind == faulty.Put && op.Nth == 1
			if op.Kind == faulty.Get && time.Since(begun) < 900*time.Millisecond {
				f.Err = errDown
			}
			return f
		})
		g, err := r.OpenSession(t.Context(), "a", time.Second, nil)
		if err != nil || g.ValidUntil <= w.Clk.Now() || w.Get(g.Record.Key).Owner != "a" || net.Count(faulty.Put) != 2 {
			t.Errorf("after %d writes: %+v, %v", net.Count(faulty.Put), g, err)
		}
	})
}

// What cannot be mended ends the opening of a session at once, and so does the end of the registry.
func TestOpenSessionEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: store.ErrCorrupt} })
		begun := time.Now()
		if g, err := r.OpenSession(t.Context(), "a", ttl, nil); !errors.Is(err, store.ErrCorrupt) || g.Secret != "" || time.Since(begun) != 0 {
			t.Errorf("after %v: %+v, %v", time.Since(begun), g, err)
		}
		net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
		done := make(chan error, 1)
		go func() { done <- second(r.OpenSession(context.Background(), "a", ttl, nil)) }()
		synctest.Wait()
		if err := errors.Join(r.Close()); err != nil {
			t.Error(err)
		}
		if err := <-done; err == nil || time.Since(begun) != 0 {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// A claim in doubt is found to have landed by a change that somebody else asks for: it is granted then, once.
func TestAClaimIsFoundByAnothersChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.ByOwner("a"))) // it is looked for after a pause
		a := send(r, wants("a", time.Hour))
		if a.over() {
			t.Fatal("granted without an answer")
		}
		if _, err := r.Renew(t.Context(), "job", "x", 1, 0, nil); !errors.Is(err, fence.ErrStale) {
			t.Errorf("another's term: %v", err)
		}
		if !a.over() || a.err != nil || a.grant.Record.Token != w.Get("job").Token {
			t.Errorf("%+v, %v", a.grant, a.err)
		}
		time.Sleep(ttl / 2)
		if _, err := r.Renew(t.Context(), "job", "a", a.grant.Record.Token, 0, nil); err != nil {
			t.Error(err)
		}
	})
}
