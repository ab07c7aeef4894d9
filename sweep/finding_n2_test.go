package sweep_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/sweep"
)

// TestFinding_N2_ASweepLeavesAnHour: a guard that never saw the term before a sweep has only the tokens' order. With a clock that is behind by
// less than an hour the next token is higher. With one that is behind by more than OlderThan it isn't, and the guard would let in what the
// last holder sends late: that is why a sweep leaves what is younger than an hour.
func TestFinding_N2_ASweepLeavesAnHour(t *testing.T) {
	for lag, ordered := range map[time.Duration]bool{59 * time.Minute: true, 2 * time.Hour: false} {
		inWorld(t, func(t *testing.T, w *world) {
			first := w.use(w.process(0), "job")
			w.later(time.Hour + time.Second)
			_, _, err := w.trySweep(w.Open(), sweep.Options{OlderThan: time.Hour - 1})
			if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "forgets its token") {
				t.Errorf("of what is younger than an hour: %v", err)
			}
			found, _ := w.sweep(sweep.Options{OlderThan: time.Hour})
			expect(t, "an hour after", found, map[string]sweep.Action{"job": sweep.Deleted})
			if !ordered {
				w.Forget("job") // which would report the lower token
			}
			next := w.use(w.process(lag), "job")
			if (next.Token() > first.Token()) != ordered {
				t.Errorf("a clock behind by %v: token %d after %d", lag, next.Token(), first.Token())
			}
			var mark fence.Mark
			mark, err = mark.Admit("job", next.Holder(), next.Token())
			if err != nil {
				t.Fatal(err)
			}
			if _, err = mark.Admit("job", first.Holder(), first.Token()); errors.Is(err, fence.ErrStale) != ordered {
				t.Errorf("a clock behind by %v: the last term, late: %v", lag, err)
			}
		})
	}
}
