package fence

import (
	"errors"
	"testing"
	"time"
)

func isStale(err error) bool {
	var stale *StaleError
	return errors.As(err, &stale) && errors.Is(err, ErrStale)
}

// What is known is judged without an allocation.
func TestCheckAllocatesNothing(t *testing.T) {
	for name, check := range knownChecks(t) {
		if n := testing.AllocsPerRun(1000, check); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, check := range knownChecks(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check()
			}
		})
	}
}

// knownChecks are checks of a token that the guard knows to be current: by an answer that is young enough, or by its mark.
func knownChecks(tb testing.TB) map[string]func() {
	tb.Helper()
	src := &book{}
	src.Set("n", "a", 5)
	s, checks := Sequencer{"n", "a", 5}, map[string]func(){}
	for name, g := range map[string]Guard{"online": online(tb, src, time.Hour), "offline": offline(tb, &memoryMarks{})} {
		checks[name] = func() {
			if err := g.Check(tb.Context(), s); err != nil {
				tb.Fatal(err)
			}
		}
		checks[name]()
	}
	return checks
}
