package file

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// What has passed by the wall clock is never more than that, and nothing where the text is no time.
func TestWallClockOfAMark(t *testing.T) {
	const now = 36 * 36 * 36
	for wall, want := range map[string]time.Duration{
		"0": now * time.Millisecond, "zz": (now - 35*37) * time.Millisecond, "1000": 0, "1001": 0, "-1": 0, "": 0, "!": 0,
	} {
		if got := (mark{wall: wall}).since(now); got != want {
			t.Errorf("%q: %v, want %v", wall, got, want)
		}
	}
}

// By the wall clock of a mark, a write is never older than it is.
func TestWallClockOfAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{clock: clocktest.New(1), life: &life{name: "a"}}
		time.Sleep(900 * time.Microsecond) // late in a millisecond
		m := parseMark(s.mark(held("k", 1), false))
		for age := time.Duration(0); age <= 10*time.Millisecond; age += 100 * time.Microsecond {
			if got := m.since(s.reading().wall); got > age {
				t.Fatalf("%v after the write: %v", age, got)
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
}

// A record that nobody holds names no holder whose end would be waited for.
func TestHolderOfAFreeRecord(t *testing.T) {
	for owner, want := range map[string]string{"holder": "a", "": ""} {
		rec := store.Record{Owner: owner, Token: 1}
		if got := (mark{holder: "a", term: termOf(rec)}).holderOf(rec); got != want {
			t.Errorf("owner %q: %q, want %q", owner, got, want)
		}
	}
}

// Where the kernel doesn't say which clock a process has, nothing is said of ages: two that are not named may be two clocks.
func TestAgeByAClockWithoutAName(t *testing.T) {
	for space, want := range map[string]time.Duration{"a": time.Hour, "": 0} {
		s := &Store{space: space}
		m := mark{writer: "w", space: space, wall: "0"}
		r := row{mark: m.String(), read: reading{now: clock.Instant(time.Hour), wall: time.Hour.Milliseconds()}}
		if got := s.age(r, held("k", 1)); got != want {
			t.Errorf("clock %q: %v, want %v", space, got, want)
		}
	}
}
