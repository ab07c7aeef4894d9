package flake

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// I1: a generator fails past the window that it was granted, and goes on when that has been extended.
func TestPitfall_I1_NoIDPastTheWindow(t *testing.T) {
	for _, l := range []Layout{Snowflake(), Reversed()} {
		clk := at(noon)
		w := until(noon.Add(-time.Hour), noon.Add(10*time.Millisecond))
		g := generator[ID](t, l, 3, w, clk.options())
		n := 0
		for ; ; n++ {
			id, err := g.Next()
			var past *WindowError
			if errors.As(err, &past) {
				if past.Node != 3 || !past.Ceiling.Equal(noon.Add(10*time.Millisecond)) {
					t.Errorf("%v", past)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if p := decoded(t, l, id); !p.Time.Before(w.Ceiling()) {
				t.Fatalf("an id of %v, and the window ends at %v", p.Time, w.Ceiling())
			}
		}
		if least := 9 * 4096; n < least || n > 10*4096 {
			t.Errorf("%s: %d ids in 10 ms, want %d to %d", l.Name(), n, least, 10*4096)
		}
		clk.move(time.Hour)
		if _, err := g.NextN(5); !errors.As(err, new(*WindowError)) {
			t.Errorf("an hour later: %v", err)
		}
		if used := g.Used(); !used.Equal(w.Ceiling()) {
			t.Errorf("%s: used up to %v, want %v", l.Name(), used, w.Ceiling())
		}
		more := noon.Add(2 * time.Hour)
		w.ceiling.Store(&more)
		if p := decoded(t, l, next(t, g)); !p.Time.Equal(clk.now()) {
			t.Errorf("extended: %+v", p)
		}
	}
}

// The same with all goroutines at once and the fast path: none gets an id past the ceiling, and failing calls don't push the state.
// Each look at the clock moves it on.
func TestTheWindowHoldsForAllAtOnce(t *testing.T) {
	l := Snowflake()
	clk := at(noon)
	w := FixedWindow(noon, noon.Add(20*time.Millisecond))
	g := generator[ID](t, l, 3, w, Options{MaxAhead: time.Hour, Now: func() time.Time { clk.move(time.Microsecond); return clk.now() }})
	var made atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for failed := 0; failed < 1000; {
				id, err := g.Next()
				if errors.As(err, new(*WindowError)) {
					failed++
				} else if err != nil {
					t.Error(err)
					return
				} else if p, err := Decode(l, id); err != nil || !p.Time.Before(w.Ceiling()) || p.Time.Before(w.Floor()) {
					t.Errorf("%+v, %v", p, err)
					return
				} else {
					made.Add(1)
				}
			}
		})
	}
	group.Wait()
	if n := made.Load(); n < 1 || n > 20*4096 {
		t.Errorf("%d ids in 20 ms", n)
	}
	if used := g.Used(); used.After(w.Ceiling().Add(time.Millisecond)) {
		t.Errorf("used up to %v, and the window ends at %v", used, w.Ceiling())
	}
	if ahead := g.state.issued()>>g.state.seqBits - l.tickFrom(w.Ceiling()); int64(ahead) > 1 {
		t.Errorf("the state is %d units past the ceiling", ahead)
	}
}

// I2: who has a node's number next makes no id that the last one made, whatever the two clocks say.
func TestPitfall_I2_TheNextHolderBeginsWhereTheLastOneEnded(t *testing.T) {
	for _, l := range []Layout{Snowflake(), Sonyflake(), TSID(), JavaScript(), Reversed()} {
		for _, odd := range []time.Duration{0, 3333 * time.Microsecond} { // the ceiling is within a unit of time
			ceiling := noon.Add(5*time.Millisecond + odd)
			first := generator[ID](t, l, 1, FixedWindow(noon, ceiling), at(noon).ahead(time.Second))
			seen := map[ID]bool{}
			for {
				id, err := first.Next()
				if err != nil {
					break
				}
				seen[id] = true
			}
			// Its clock is a day behind.
			second := generator[ID](t, l, 1, FixedWindow(ceiling, noon.Add(time.Hour)), at(noon.AddDate(0, 0, -1)).ahead(25*time.Hour))
			for range 2 * len(seen) {
				id := next(t, second)
				if seen[id] {
					t.Fatalf("%s: %d is there twice: %+v", l.Name(), id, decoded(t, l, id))
				}
				if p := decoded(t, l, id); p.Time.Before(ceiling) {
					t.Fatalf("%s: an id of %v, and the window begins at %v", l.Name(), p.Time, ceiling)
				}
			}
			// The first one wakes up.
			if id, err := first.Next(); err == nil {
				t.Fatalf("%s: %d past the ceiling", l.Name(), id)
			}
		}
	}
}

// Two calls that ask the window at once may be told two ceilings, and the older one later.
func TestTheKnownCeilingNeverFalls(t *testing.T) {
	s := generator[ID](t, Snowflake(), 1, forever, Options{}).state
	if a, b := s.raise(10), s.raise(5); a != 10 || b != 10 || s.ceiling.Load() != 10 {
		t.Errorf("%d, then %d", a, b)
	}
}

func TestStopIsForGood(t *testing.T) {
	clk := at(noon)
	g := generator[ID](t, Snowflake(), 1, FixedWindow(noon.Add(-time.Hour), noon.Add(time.Hour)), Options{Now: clk.now})
	if used := g.Used(); !used.Equal(noon.Add(-time.Hour)) {
		t.Errorf("used up to %v before the first id: want the floor", used)
	}
	next(t, g)
	if used := g.Used(); !used.Equal(noon.Add(time.Millisecond)) {
		t.Errorf("used up to %v", used)
	}
	for range 2 {
		if used := g.Stop(); !used.Equal(noon.Add(time.Millisecond)) {
			t.Errorf("stopped at %v", used)
		}
		if _, err := g.Next(); !errors.Is(err, ErrStopped) {
			t.Errorf("after Stop: %v", err)
		}
		if _, err := g.NextN(3); !errors.Is(err, ErrStopped) {
			t.Errorf("after Stop: %v", err)
		}
	}
}

// What Stop returns is after every id, however many are being taken.
func TestStopCoversWhatIsBeingTaken(t *testing.T) {
	for range 50 {
		l := JavaScript()
		g := generator[ID](t, l, 1, forever, Options{MaxAhead: time.Hour})
		var latest atomic.Int64
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for {
					id, err := g.Next()
					if errors.Is(err, ErrStopped) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					for old := latest.Load(); int64(id) > old && !latest.CompareAndSwap(old, int64(id)); old = latest.Load() {
					}
				}
			})
		}
		for range 1000 {
			next(t, g)
		}
		used := g.Stop()
		group.Wait()
		if newest := decoded(t, l, ID(latest.Load())).Time; !newest.Before(used) {
			t.Fatalf("stopped at %v, and there is an id of %v", used, newest)
		}
	}
}

// TestNoClockMakesAnIDTwice hands a node's number from process to process, each with a clock of its own that steps, stops and
// runs wild, and some of which are paused and go on when their successor is at work. The grants are what keeps them apart.
func TestNoClockMakesAnIDTwice(t *testing.T) {
	for _, l := range []Layout{Snowflake(), Sonyflake(), Reversed()} {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			step := func() time.Duration {
				switch rnd.IntN(10) {
				case 0:
					return time.Duration(rnd.Int64N(int64(48*time.Hour))) - 24*time.Hour
				case 1, 2:
					return time.Duration(rnd.Int64N(int64(4*time.Second))) - 2*time.Second
				}
				return time.Duration(rnd.Int64N(int64(3 * time.Millisecond)))
			}
			type process struct {
				g   *Generator[ID]
				w   *movable
				clk *hands
			}
			mark := noon // what is stored: nothing was granted from there on
			seen := map[ID]bool{}
			var all []*process
			for range 30 {
				clk := at(noon.Add(step()))
				p := &process{w: until(mark, mark), clk: clk}
				p.g = generator[ID](t, l, 9, p.w, clk.ahead(time.Duration(rnd.IntN(3))*24*time.Hour))
				all = append(all, p)
				for range 20 {
					if rnd.IntN(3) == 0 { // the latest one's window is extended, after that is stored
						mark = mark.Add(time.Duration(rnd.Int64N(int64(time.Hour))))
						ceiling := mark
						p.w.ceiling.Store(&ceiling)
					}
					one := all[rnd.IntN(len(all))] // mostly one that should be dead
					one.clk.move(step())
					for range rnd.IntN(300) {
						id, err := one.g.Next()
						if err != nil {
							break
						}
						if seen[id] {
							t.Fatalf("%s, seed %d: %d is there twice: %+v", l.Name(), seed, id, decoded(t, l, id))
						}
						seen[id] = true
					}
				}
				if rnd.IntN(2) == 0 { // it ends in order, and gives back what it didn't use
					mark = p.g.Stop()
				}
			}
			if len(seen) < 1000 {
				t.Errorf("%s, seed %d: %d ids only", l.Name(), seed, len(seen))
			}
		}
	}
}
