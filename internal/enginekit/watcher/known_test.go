package watcher

import (
	"context"
	"testing"
	"testing/synctest"
)

// follow begins a Wait whose reads are linearizable.
func (wd *world) follow(ctx context.Context, v string) <-chan outcome {
	result := make(chan outcome, 1)
	go func() {
		rec, err := wd.w.Wait(ctx, wd.life, v, Reader{
			Read:    wd.read,
			Passing: func(error) bool { return false }, Linearizable: true,
		})
		result <- outcome{rec, err}
	}()
	synctest.Wait()
	return result
}

// A Wait that begins with what is known makes no read, and one that begins in any doubt does.
func TestWaitKnows(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(wd *world) // after a Wait was told "2", revision 12
		from  string
		reads int
	}{
		"what was told":                      {func(*world) {}, "2", 0},
		"another version":                    {func(*world) {}, "1", 1},
		"an older change, told again":        {func(wd *world) { wd.w.Tell(11, version("1"), nil) }, "2", 0},
		"shown too":                          {func(wd *world) { wd.w.Show(12) }, "2", 0},
		"another one shown":                  {func(wd *world) { wd.w.Show(13) }, "2", 1},
		"the watch ended":                    {func(wd *world) { wd.w.Ended() }, "2", 1},
		"a second watch began":               {func(wd *world) { wd.w.Again() }, "2", 1},
		"a second watch, which tells":        {func(wd *world) { wd.w.Again(); wd.w.Tell(12, version("2"), nil); wd.w.Tell(13, version("3"), nil) }, "3", 0},
		"told something that isn't a record": {func(wd *world) { wd.w.Tell(13, version("2"), context.Canceled) }, "2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wd := newWorld("1", 10)
				defer wd.end()
				wd.w.Again()
				first := wd.follow(t.Context(), "1")
				wd.set("2", 12)
				wd.w.Tell(12, version("2"), nil)
				returned(t, "the first Wait", first, "2", nil)
				c.do(wd)
				wd.set(c.from, 14)
				wd.reads = 0
				ctx, cancel := context.WithCancel(t.Context())
				again := wd.follow(ctx, c.from)
				nothing(t, "without a change", again)
				if wd.reads != c.reads {
					t.Errorf("%d reads, want %d", wd.reads, c.reads)
				}
				wd.set("9", 19)
				wd.w.Tell(19, version("9"), nil)
				returned(t, "with one", again, "9", nil)
				cancel()
			})
		})
	}
}

// What a Wait has read is known to the next one, if the watch stood since before, and to those who wait already.
func TestWaitLearnsFromReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		defer wd.end()
		wd.w.Again()
		ctx, cancel := context.WithCancel(t.Context())
		first := wd.follow(ctx, "1")
		cancel()
		returned(t, "given up", first, "", context.Canceled)
		second := wd.follow(t.Context(), "1")
		if wd.reads != 1 {
			t.Errorf("%d reads, want 1", wd.reads)
		}
		wd.set("2", 12) // of which the watch hasn't told yet
		returned(t, "a Wait that reads", wd.follow(t.Context(), "0"), "2", nil)
		returned(t, "one that waits already", second, "2", nil)
		third := wd.follow(t.Context(), "2")
		wd.w.Tell(12, version("2"), nil)
		nothing(t, "told what was read", third)
		wd.w.Tell(13, version("3"), nil)
		returned(t, "told more", third, "3", nil)
		if wd.reads != 2 {
			t.Errorf("%d reads, want 2", wd.reads)
		}
		wd.w.Ended()
		wd.set("4", 14) // a read while there is no watch tells nothing of what comes then
		returned(t, "while there is no watch", wd.follow(t.Context(), "3"), "4", nil)
		fourth := wd.follow(t.Context(), "4")
		if wd.reads != 4 {
			t.Errorf("%d reads, want 4", wd.reads)
		}
		wd.set("5", 15)
		wd.w.Again()
		returned(t, "the watch has begun", fourth, "5", nil)
	})
}

// A change that is told after the store has shown a later one is read.
func TestNothingOlderThanShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		defer wd.end()
		wd.w.Again()
		waiting := wd.follow(t.Context(), "1")
		wd.set("3", 13)
		wd.w.Show(13)
		wd.w.Tell(12, version("2"), nil)
		returned(t, "told of an older one", waiting, "3", nil)
		if wd.reads != 2 {
			t.Errorf("%d reads, want 2", wd.reads)
		}
	})
}

// What happens during a read comes after what it returns.
func TestWhatIsToldDuringARead(t *testing.T) {
	for name, c := range map[string]struct {
		during func(wd *world)
		reads  int
	}{
		"a change":   {func(wd *world) { wd.w.Tell(12, version("2"), nil) }, 1},
		"the end":    {func(wd *world) { wd.set("2", 12); wd.w.Ended() }, 2},
		"a new one":  {func(wd *world) { wd.set("2", 12); wd.w.Again() }, 2},
		"both there": {func(wd *world) { wd.set("2", 12); wd.w.Ended(); wd.w.Again() }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wd := newWorld("1", 10)
				defer wd.end()
				wd.during = func() {
					wd.during = nil
					c.during(wd)
				}
				wd.w.Again()
				returned(t, "the Wait", wd.follow(t.Context(), "1"), "2", nil)
				if wd.reads != c.reads {
					t.Errorf("%d reads, want %d", wd.reads, c.reads)
				}
			})
		})
	}
}
