package view

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func TestStates(t *testing.T) {
	held := store.Record{Key: "a", Owner: "o", Token: 5, TTL: 10 * time.Second}
	kept := store.Record{Key: "a", Owner: "o", Token: 5, TTL: 10 * time.Second, Session: ".session/o/1"}
	with := func(rec store.Record, f func(*store.Record)) store.Record {
		f(&rec)
		return rec
	}
	session := func(owner string, age time.Duration) store.Record {
		return store.Record{Key: ".session/o/1", Owner: owner, TTL: 20 * time.Second, Age: age}
	}
	for _, c := range []struct {
		what    string
		rec     store.Record
		session store.Record
		want    api.State
		left    time.Duration
	}{
		{"free", with(held, func(r *store.Record) { r.Owner = "" }), store.Record{}, StateFree, 0},
		{"held", with(held, func(r *store.Record) { r.Age = 4 * time.Second }), store.Record{}, StateHeld, 6 * time.Second},
		{"expired", with(held, func(r *store.Record) { r.Age = 10 * time.Second }), store.Record{}, StateExpired, 0},
		{"its holder is gone", with(held, func(r *store.Record) { r.Age = store.AgeGone }), store.Record{}, StateExpired, 0},
		{"broken", with(held, func(r *store.Record) { r.Intervention = store.InterventionBroken }), store.Record{}, stateBroken, 10 * time.Second},
		{"broken, and its grace is over", with(held, func(r *store.Record) { r.Intervention, r.Age = store.InterventionBroken, time.Minute }), store.Record{}, StateExpired, 0},
		{"handed", with(held, func(r *store.Record) { r.Intervention = store.InterventionHandedOver }), store.Record{}, stateHanded, 10 * time.Second},
		{"kept", with(kept, func(r *store.Record) { r.Age = time.Hour }), session("o", 5*time.Second), StateHeld, 15 * time.Second},
		{"session expired", kept, session("o", time.Minute), StateExpired, 0},
		{"session closed", kept, session("", 0), StateExpired, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := lease.NewObserver(nil, lease.ObserverOptions{Clock: clocktest.New(clock.Instant(time.Hour))})
			if c.session.Key != "" {
				o.Saw(c.session)
			}
			v := newView(o.Saw(c.rec))
			if v.State != c.want || v.LeftFor != c.left || (v.ExpiresIn != nil) != (c.left > 0) {
				t.Errorf("%s: %s, expires in %v; want %s, %v", c.what, v.State, v.LeftFor, c.want, c.left)
			}
		})
	}
}
