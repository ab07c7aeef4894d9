package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func TestTableFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	since, expires := now.Add(-3*time.Minute), api.Seconds(16*time.Second)
	views := []view{
		{
			Lease: api.Lease{
				Name: "backup/nightly", State: stateHeld, Holder: "blue/some-long-host-name.example.org/12345/abcdefghijklm",
				Token: 1795257194000, ExpiresIn: &expires,
			},
			since: &since, expiresIn: 16 * time.Second,
		},
		{Lease: api.Lease{Name: "x", State: stateFree, Token: 1}},
	}
	for _, width := range []int{0, 200, 120, 100, 80, 70} {
		var out strings.Builder
		if err := writeTable(&out, listColumns(views, now), width, nil); err != nil {
			t.Fatal(err)
		}
		whole := strings.Contains(out.String(), views[0].Holder)
		if (width == 0 || width >= 120) != whole {
			t.Errorf("width %d: the holder is whole: %v", width, whole)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
		if !strings.Contains(out.String(), "3m ago") || !strings.Contains(out.String(), "1795257194000") {
			t.Errorf("width %d:\n%s", width, &out)
		}
	}
}

func TestTimesForPeople(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	for _, c := range []struct {
		before  time.Duration
		ago, at string
	}{
		{-time.Hour, "now", "13:00:00"}, // another machine's clock
		{0, "now", "12:00:00"},
		{59 * time.Second, "59s ago", "11:59:01"},
		{3 * time.Minute, "3m ago", "11:57:00"},
		{3 * time.Hour, "3h ago", "09:00:00"},
		{13 * time.Hour, "13h ago", "2026-11-20 23:00:00"},
		{72 * time.Hour, "3d ago", "2026-11-18 12:00:00"},
	} {
		then := now.Add(-c.before)
		if got := ago(then, now); got != c.ago {
			t.Errorf("%v: %s, want %s", c.before, got, c.ago)
		}
		if got := at(then, now); got != c.at {
			t.Errorf("%v: %s, want %s", c.before, got, c.at)
		}
	}
}

func TestCutMiddle(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"abcdef", 6, "abcdef"}, {"abcdef", 5, "ab…ef"}, {"äöüßäöü", 4, "ä…öü"}} {
		if got := cutMiddle(c.s, c.most); got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.s, c.most, got, c.want)
		}
	}
}

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
		{"free", with(held, func(r *store.Record) { r.Owner = "" }), store.Record{}, stateFree, 0},
		{"held", with(held, func(r *store.Record) { r.Age = 4 * time.Second }), store.Record{}, stateHeld, 6 * time.Second},
		{"expired", with(held, func(r *store.Record) { r.Age = 10 * time.Second }), store.Record{}, stateExpired, 0},
		{"its holder is gone", with(held, func(r *store.Record) { r.Age = store.AgeGone }), store.Record{}, stateExpired, 0},
		{"broken", with(held, func(r *store.Record) { r.Intervention = store.InterventionBroken }), store.Record{}, stateBroken, 10 * time.Second},
		{"broken, and its grace is over", with(held, func(r *store.Record) { r.Intervention, r.Age = store.InterventionBroken, time.Minute }), store.Record{}, stateExpired, 0},
		{"handed", with(held, func(r *store.Record) { r.Intervention = store.InterventionHandedOver }), store.Record{}, stateHanded, 10 * time.Second},
		{"kept", with(kept, func(r *store.Record) { r.Age = time.Hour }), session("o", 5*time.Second), stateHeld, 15 * time.Second},
		{"session expired", kept, session("o", time.Minute), stateExpired, 0},
		{"session closed", kept, session("", 0), stateExpired, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := lease.NewObserver(nil, lease.ObserverOptions{Clock: clock.NewFake(clock.Instant(time.Hour))})
			if c.session.Key != "" {
				o.Saw(c.session)
			}
			v := newView(o.Saw(c.rec))
			if v.State != c.want || v.expiresIn != c.left || (v.ExpiresIn != nil) != (c.left > 0) {
				t.Errorf("%s: %s, expires in %v; want %s, %v", c.what, v.State, v.expiresIn, c.want, c.left)
			}
		})
	}
}
