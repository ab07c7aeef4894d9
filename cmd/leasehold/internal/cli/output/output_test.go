package output

import (
	"testing"
	"time"
)

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
		if got := Ago(then, now); got != c.ago {
			t.Errorf("%v: %s, want %s", c.before, got, c.ago)
		}
		if got := At(then, now); got != c.at {
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
		if got := CutMiddle(c.s, c.most); got != c.want {
			t.Errorf("%s, %d: %s, want %s", c.s, c.most, got, c.want)
		}
	}
}
