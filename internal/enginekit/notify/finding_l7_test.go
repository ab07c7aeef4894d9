package notify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// TestFinding_L7_KeysAreListenedToWhileSomebodyWaits: and for half a minute after, and what changed before the server told of a key is met.
func TestFinding_L7_KeysAreListenedToWhileSomebodyWaits(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		heeds := func(want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			s.do(func() { got = slices.Sorted(maps.Keys(s.heeds)) })
			if !slices.Equal(got, want) {
				t.Errorf("%q are listened to, want %q", got, want)
			}
		}
		stays := s.start(t, w, "stays", "")
		time.Sleep(time.Minute)
		heeds("stays")
		late := make(chan outcome, 1)
		go func() {
			rec, err := w.Wait(t.Context(), Want{"late", ""}, func(context.Context) (store.Record, error) {
				s.set("late", "1") // just after the read, and the server doesn't tell of this key yet
				return store.Record{Key: "late"}, nil
			})
			late <- outcome{rec, err, time.Now()}
		}()
		within(t, late, "1", 0)
		time.Sleep(linger - time.Second)
		heeds("late", "stays")
		time.Sleep(air + time.Second)
		heeds("stays")
		most := 0
		for i := range 1000 { // one after the other
			ch := s.start(t, w, fmt.Sprint("k", i), "")
			synctest.Wait()
			s.set(fmt.Sprint("k", i), "1")
			within(t, ch, "1", 0)
			time.Sleep(time.Second)
			s.do(func() { most = max(most, len(s.heeds)) })
		}
		if most > 40 {
			t.Errorf("%d keys were listened to, for one Wait at a time of a second each", most)
		}
		s.set("stays", "1")
		within(t, stays, "1", 0)
	})
}
