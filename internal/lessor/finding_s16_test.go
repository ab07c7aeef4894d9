package lessor

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// served is a session that a registry keeps for a holder elsewhere.
type served struct {
	t      *testing.T
	r      *Registry
	g      Grant
	leases map[string]fence.Token // that its renewals name; nil for none
}

func serve(t *testing.T, r *Registry) *served {
	t.Helper()
	g, err := r.OpenSession(t.Context(), "a", ttl, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &served{t, r, g, nil}
}

func (s *served) acquire(key string) store.Record {
	s.t.Helper()
	return granted(s.t, s.r, Request{Key: key, Owner: "a", TTL: ttl, Session: s.g.Record.Key})
}

func (s *served) renew() Grant {
	s.t.Helper()
	rec := s.g.Record
	g, err := s.r.RenewSession(s.t.Context(), rec.Key, rec.Owner, rec.Token, 0, nil, untouched, s.leases)
	if err != nil {
		s.t.Fatal(err)
	}
	return g
}

// A holder that renews its session every TTL/3 stops what an outsider has ended TTL/3 after that at the latest: from then on nobody holds
// the name beside the next one.
func TestFinding_S16_AServedHolderStopsInTime(t *testing.T) {
	for _, after := range []time.Duration{time.Millisecond, ttl / 6, ttl/3 - time.Millisecond} {
		inWorld(t, func(t *testing.T, w *world) {
			r, _ := w.registry()
			s := serve(t, r)
			rec := s.acquire("job")
			time.Sleep(ttl / 3)
			if g := s.renew(); g.Lost != nil || g.LookedAt != 1 {
				t.Errorf("%+v", g)
			}
			time.Sleep(after)
			w.Wipe("job")
			done := w.Clk.Now()
			other, err := lease.NewManager(w.DB.Open(), lease.Options{TTL: ttl, Clock: w.Clk})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			l, err := other.Acquire(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(ttl/3 - after)
			loss := s.renew().Lost["job"]
			if took := w.Clk.Now().Sub(done); took > ttl/3 || loss.Token != rec.Token || loss.Cause != lease.CauseTaken || loss.Err == nil {
				t.Errorf("%v later: %+v", took, loss)
			}
			if err := l.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a look costs: a read for each of few leases at each renewal, one List for any number of more.
func TestFinding_S16_WhatALookOfAServerCosts(t *testing.T) {
	for leases, want := range map[int]struct{ gets, lists int }{1: {1, 0}, 16: {16, 0}, 17: {0, 1}, 200: {0, 1}} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprint(leases, named), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					r, net := w.registry()
					s := serve(t, r)
					all := map[string]fence.Token{}
					for i := range leases {
						rec := s.acquire(fmt.Sprint("job/", i))
						all[rec.Key] = rec.Token
					}
					if named {
						s.leases = all
					}
					s.renew()
					gets, lists := net.Count(faulty.Get), net.Count(faulty.List)
					g := s.renew()
					if gets, lists = net.Count(faulty.Get)-gets, net.Count(faulty.List)-lists; gets != want.gets || lists != want.lists || g.LookedAt != leases {
						t.Errorf("%d reads and %d Lists for %d leases, want %d and %d for %d", gets, lists, g.LookedAt, want.gets, want.lists, leases)
					}
				})
			})
		}
	}
}

// A store that is slow to read, or fails for a while, holds no renewal up: what is found is in the next answer.
func TestFinding_S16_ASlowLookHoldsNoRenewalUp(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{"slow": {Delay: ttl / 6}, "failing": {Err: errors.New("no")}, "silent": {Drop: true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, net := w.registry()
				s := serve(t, r)
				s.acquire("job")
				s.renew()
				w.Wipe("job")
				net.SetPlan(func(op faulty.Op) faulty.Fault {
					if op.Kind == faulty.Get {
						return fault
					}
					return faulty.Fault{}
				})
				start := w.Clk.Now()
				if g := s.renew(); g.Lost != nil || g.LookedAt != 0 {
					t.Errorf("%+v", g)
				}
				if took := w.Clk.Now().Sub(start); took > ttl/12+time.Millisecond {
					t.Errorf("it took %v, want %v at most", took, ttl/12)
				}
				time.Sleep(ttl / 6)
				net.SetPlan(nil)
				time.Sleep(ttl/3 - w.Clk.Now().Sub(start))
				if g := s.renew(); g.Lost["job"].Err == nil {
					t.Errorf("%+v", g)
				}
			})
		})
	}
}

// Whatever was lost, released or named no more is not looked at, nor told, for ever; nor is a session that is over remembered.
func TestFinding_S16_WhatIsForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		s := serve(t, r)
		a, b := s.acquire("a"), s.acquire("b")
		released(t, r, a)
		if g := s.renew(); g.LookedAt != 1 {
			t.Errorf("%d leases after one was released", g.LookedAt)
		}
		s.leases = map[string]fence.Token{"b": b.Token - 1}
		if g := s.renew(); g.LookedAt != 1 || g.Lost["b"].Token != b.Token-1 {
			t.Errorf("a term that is over: %+v", g)
		}
		s.leases = map[string]fence.Token{"b": b.Token}
		if g := s.renew(); g.LookedAt != 1 || g.Lost != nil {
			t.Errorf("the present term: %+v", g)
		}
		s.leases = map[string]fence.Token{}
		if g := s.renew(); g.LookedAt != 0 {
			t.Errorf("%d leases though none is named", g.LookedAt)
		}
		released(t, r, s.g.Record)
		if len(r.keepers.all) != 0 {
			t.Error("a session that was closed is remembered")
		}
		var ks keepers
		for i := range 5 * manyKeepers {
			ks.renewed(nil, fmt.Sprint(i), clock.Instant(i+10), clock.Instant(i))
		}
		if n := len(ks.all); n > manyKeepers+10 {
			t.Errorf("%d sessions are remembered, of which 10 are not over", n)
		}
	})
}

// A session is opened by the driver: a reply that is lost is asked for again, and one that comes too late makes no session.
func TestFinding_S11_ASessionIsOpenedByTheDriver(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"reply lost": {LoseReply: true}, "dropped": {Drop: true}, "lands late": {ApplyLate: time.Second}, "answered too late": {ReplyDelay: 2 * ttl, ApplyLate: 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, net := w.registry()
				net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("a")))
				g, err := r.OpenSession(t.Context(), "a", ttl, map[string]string{"x": "y"})
				if err != nil {
					t.Fatal(err)
				}
				now := w.Get(g.Record.Key)
				if now.Nonce != g.Record.Nonce || now.Owner != "a" || now.Info["x"] != "y" || Secret(g.Secret)(now) != nil || g.ValidUntil <= w.Clk.Now() {
					t.Errorf("%+v, stored %+v", g, now)
				}
				time.Sleep(time.Second)
				if _, err := r.RenewSession(t.Context(), now.Key, "a", now.Token, 0, Secret(g.Secret), untouched, nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{LoseReply: true, Silent: true} })
		start := w.Clk.Now()
		_, err := r.OpenSession(t.Context(), "a", ttl, nil)
		if took := w.Clk.Now().Sub(start); !errors.Is(err, store.ErrUnknownOutcome) || took > patience+time.Millisecond {
			t.Errorf("after %v: %v, want an unknown outcome within %v", took, err, patience)
		}
		net.SetPlan(nil)
		time.Sleep(patience)
		for rec, err := range w.DB.Open().List(t.Context(), "") {
			if err != nil || rec.Owner != "" {
				t.Errorf("what may have been opened is not closed: %+v, %v", rec, err)
			}
		}
	})
}
