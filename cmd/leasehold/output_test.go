package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

func TestTableFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	since, expires := now.Add(-3*time.Minute), 16.0
	views := []view{
		{Name: "backup/nightly", State: stateHeld, Holder: "blue/some-long-host-name.example.org/12345/abcdefghijklm", Token: 1795257194000, Since: &since, Expires: &expires, expiresIn: 16 * time.Second},
		{Name: "x", State: stateFree, Token: 1},
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
	const now = clock.Instant(time.Hour)
	held := store.Record{Key: "a", Owner: "o", Token: 5, TTL: 10 * time.Second}
	kept := store.Record{Key: "a", Owner: "o", Token: 5, TTL: 10 * time.Second, Session: ".session/o/1"}
	with := func(rec store.Record, f func(*store.Record)) rules.Seen {
		f(&rec)
		return rules.Seen{}.Note(rec, now)
	}
	session := func(owner string, age time.Duration) rules.Seen {
		return rules.Seen{}.Note(store.Record{Key: ".session/o/1", Owner: owner, TTL: 20 * time.Second, Age: age}, now)
	}
	for _, c := range []struct {
		what    string
		seen    rules.Seen
		session rules.Seen
		want    string
		left    time.Duration
	}{
		{"free", with(held, func(r *store.Record) { r.Owner = "" }), rules.Seen{}, stateFree, 0},
		{"held", with(held, func(r *store.Record) { r.Age = 4 * time.Second }), rules.Seen{}, stateHeld, 6 * time.Second},
		{"expired", with(held, func(r *store.Record) { r.Age = 10 * time.Second }), rules.Seen{}, stateExpired, 0},
		{"of an earlier boot", with(held, func(r *store.Record) { r.Age = store.Forever }), rules.Seen{}, stateExpired, 0},
		{"broken", with(held, func(r *store.Record) { r.Mark = store.MarkBroken }), rules.Seen{}, stateBroken, 10 * time.Second},
		{"broken, and its grace is over", with(held, func(r *store.Record) { r.Mark, r.Age = store.MarkBroken, time.Minute }), rules.Seen{}, stateExpired, 0},
		{"handed", with(held, func(r *store.Record) { r.Mark = store.MarkHanded }), rules.Seen{}, stateHanded, 10 * time.Second},
		{"kept", with(kept, func(r *store.Record) { r.Age = time.Hour }), session("o", 5*time.Second), stateHeld, 15 * time.Second},
		{"session expired", with(kept, func(*store.Record) {}), session("o", time.Minute), stateExpired, 0},
		{"session closed", with(kept, func(*store.Record) {}), session("", 0), stateExpired, 0},
	} {
		v := newView(c.seen, c.session, now)
		if v.State != c.want || v.expiresIn != c.left || (v.Expires != nil) != (c.left > 0) {
			t.Errorf("%s: %s, expires in %v; want %s, %v", c.what, v.State, v.expiresIn, c.want, c.left)
		}
	}
}
