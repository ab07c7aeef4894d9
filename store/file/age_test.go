package file

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

func TestAge(t *testing.T) {
	const now = clock.Instant(5 * time.Second)
	for _, c := range []struct {
		name, here, there string
		written           clock.Instant
		want              time.Duration
	}{
		{"this boot", "b/n", "b/n", clock.Instant(2 * time.Second), 3 * time.Second},
		{"from the future", "b/n", "b/n", clock.Instant(6 * time.Second), 0},
		{"another boot", "b/n", "c/n", clock.Instant(2 * time.Second), store.Forever},
		{"another boot and namespace", "b/n", "c/m", clock.Instant(2 * time.Second), store.Forever},
		{"another time namespace", "b/n", "b/m", clock.Instant(2 * time.Second), 0},
		{"a boot without a name", "b/n", "", clock.Instant(2 * time.Second), 0},
		{"here without a name", "", "b/n", clock.Instant(2 * time.Second), 0},
		{"both without a name", "", "", clock.Instant(2 * time.Second), 0},
	} {
		if got := age(c.here, c.there, now, c.written); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A reboot frees all: what was written before it is known to be of no one alive.
func TestReboot(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	mustPut(t, s, held("k", 1))
	if rec, err := s.Get(t.Context(), "k"); err != nil || rec.Age > time.Minute {
		t.Fatalf("age %v, %v", rec.Age, err)
	}
	shell(t, path, "UPDATE records SET boot = '00000000-0000-0000-0000-000000000000/time:[4026531834]'")
	rec, err := s.Get(t.Context(), "k")
	if want := map[bool]time.Duration{true: store.Forever}[bootID() != ""]; err != nil || rec.Age != want {
		t.Errorf("age %v, %v; want %v", rec.Age, err, want)
	}
	mustPut(t, s, rec)
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Age > time.Minute {
		t.Errorf("renewed: age %v, %v", got.Age, err)
	}
}
