package flake

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hands is a clock that a test sets.
type hands struct{ at atomic.Int64 } // microseconds of Unix time

func at(t time.Time) *hands {
	h := &hands{}
	h.set(t)
	return h
}

func (h *hands) set(t time.Time)      { h.at.Store(t.UnixMicro()) }
func (h *hands) move(d time.Duration) { h.at.Add(d.Microseconds()) }
func (h *hands) now() time.Time       { return time.UnixMicro(h.at.Load()).UTC() }
func (h *hands) options() Options     { return Options{Now: h.now, MaxWait: -1, Lag: -1} }
func (h *hands) ahead(d time.Duration) Options {
	o := h.options()
	o.MaxAhead = d
	return o
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// movable is a window whose ceiling a test raises.
type movable struct {
	floor   time.Time
	ceiling atomic.Pointer[time.Time]
}

func until(floor, ceiling time.Time) *movable {
	w := &movable{floor: floor}
	w.ceiling.Store(&ceiling)
	return w
}

func (w *movable) Floor() time.Time   { return w.floor }
func (w *movable) Ceiling() time.Time { return *w.ceiling.Load() }

func generator[T Value](t testing.TB, l Layout, node uint64, w Window, o Options) *Generator[T] {
	t.Helper()
	g, err := New[T](l, node, w, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next[T Value](t testing.TB, g *Generator[T]) T {
	t.Helper()
	id, err := g.Next()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func decoded[T Value](t testing.TB, l Layout, id T) Parts {
	t.Helper()
	p, err := Decode(l, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestIDsSayWhenAndWhere(t *testing.T) {
	for _, l := range Layouts() {
		clk := at(noon)
		w := Between(epoch2020, noon.AddDate(1, 0, 0))
		if l.Bits() > 64 {
			g := generator[ID96](t, l, 5, w, clk.options())
			id, err := g.NextWith(0xdeadbeef)
			if err != nil {
				t.Fatal(err)
			}
			if p := decoded(t, l, id); !p.Time.Equal(noon) || p.Node != 5 || p.Metadata != 0xdeadbeef {
				t.Errorf("%s: %+v", l.Name(), p)
			}
			continue
		}
		g := generator[ID](t, l, 5, w, clk.options())
		for i := range uint64(3) {
			p := decoded(t, l, next(t, g))
			if !p.Time.Equal(noon) || p.Node != 5 || l.Ordered() && p.Sequence != i {
				t.Errorf("%s: %+v", l.Name(), p)
			}
		}
		clk.move(l.spec.Unit)
		if p := decoded(t, l, next(t, g)); !p.Time.Equal(noon.Add(l.spec.Unit)) || l.Ordered() && p.Sequence != 0 {
			t.Errorf("%s: a unit later %+v", l.Name(), p)
		}
		if _, err := g.NextWith(1); !errors.As(err, new(*OverflowError)) {
			t.Errorf("%s has no room for metadata: %v", l.Name(), err)
		}
	}
	if _, err := generator[ID96](t, Scatter(), 0, forever, Options{}).NextWith(1 << 32); !errors.As(err, new(*OverflowError)) {
		t.Errorf("33 bits of metadata: %v", err)
	}
}

func TestWhatNewRefuses(t *testing.T) {
	for want, try := range map[string]func() error{
		"node 1024 doesn't fit": func() error { _, err := New[ID](Twitter(), 1024, forever, Options{}); return err },
		"no window":             func() error { _, err := New[ID](Twitter(), 1, nil, Options{}); return err },
		"up to 64 are an ID":    func() error { _, err := New[ID](Scatter(), 1, forever, Options{}); return err },
		"has 63 bits":           func() error { _, err := New[ID96](Twitter(), 1, forever, Options{}); return err },
		"option MaxAhead 9000h0m0s": func() error {
			_, err := New[ID](Twitter(), 1, forever, Options{MaxAhead: 9000 * time.Hour})
			return err
		},
		"0 ids: want 1 to 1048576":       func() error { _, err := generator[ID](t, Twitter(), 1, forever, Options{}).NextN(0); return err },
		"1048577 ids: want 1 to 1048576": func() error { _, err := generator[ID](t, Twitter(), 1, forever, Options{}).NextN(MaxN + 1); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestManyAtOnce has goroutines take ids in all ways at once, on the true clock, and looks for one that is there twice, that is
// not of the node, or that is out of the order in which its goroutine got it.
func TestManyAtOnce(t *testing.T) {
	l := roomy(t)
	g := generator[ID](t, l, 1, forever, Options{})
	const goroutines, each = 16, 20_000
	got := make([][]ID, goroutines)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			for len(got[i]) < each {
				if len(got[i])%1000 == 0 {
					ids, err := g.NextN(100)
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = append(got[i], ids...)
					continue
				}
				id, err := g.Next()
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = append(got[i], id)
			}
		})
	}
	group.Wait()
	seen := make(map[ID]bool, goroutines*each)
	for _, ids := range got {
		if !slices.IsSorted(ids) {
			t.Error("a later id is lower")
		}
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%d is there twice", id)
			}
			seen[id] = true
			if p := decoded(t, l, id); p.Node != 1 || time.Since(p.Time).Abs() > time.Minute {
				t.Fatalf("%d: %+v", id, p)
			}
		}
	}
}

// I1: a generator fails past the window that it was granted, and goes on when that has been extended.
func TestPitfall_I1_NoIDPastTheWindow(t *testing.T) {
	for _, l := range []Layout{Twitter(), Reversed()} {
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
func TestTheWindowHoldsForAllAtOnce(t *testing.T) {
	l := Twitter()
	start := time.Now()
	w := Between(start, start.Add(20*time.Millisecond))
	g := generator[ID](t, l, 3, w, Options{MaxAhead: time.Hour})
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
	if n := made.Load(); n < 1 || n > 21*4096 {
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
	for _, l := range []Layout{Twitter(), Sonyflake(), TSID(), JavaScript(), Reversed()} {
		for _, odd := range []time.Duration{0, 3333 * time.Microsecond} { // the ceiling is within a unit of time
			ceiling := noon.Add(5*time.Millisecond + odd)
			first := generator[ID](t, l, 1, Between(noon, ceiling), at(noon).ahead(time.Second))
			seen := map[ID]bool{}
			for {
				id, err := first.Next()
				if err != nil {
					break
				}
				seen[id] = true
			}
			// Its clock is a day behind.
			second := generator[ID](t, l, 1, Between(ceiling, noon.Add(time.Hour)), at(noon.AddDate(0, 0, -1)).ahead(25*time.Hour))
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

// I3: a clock that is set back makes no id twice, and no call that hangs: the state stays where it was, and what would be too far
// ahead of the clock is an error.
func TestPitfall_I3_AClockThatIsSetBack(t *testing.T) {
	l := Twitter()
	clk := at(noon)
	g := generator[ID](t, l, 1, Between(l.spec.Epoch, noon.AddDate(1, 0, 0)), clk.ahead(2*time.Second))
	if ahead := g.Ahead(); ahead != 0 {
		t.Errorf("%v ahead before the first id", ahead)
	}
	last := next(t, g)
	clk.move(-time.Second)
	for range 10_000 { // within what is allowed it goes on, on the later time
		id := next(t, g)
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
	}
	if ahead := g.Ahead(); ahead < time.Second || ahead > 1003*time.Millisecond {
		t.Errorf("%v ahead", ahead)
	}
	clk.move(-time.Hour)
	var ahead *AheadError
	if _, err := g.Next(); !errors.As(err, &ahead) || ahead.Ahead.Round(time.Second) != time.Hour+time.Second || ahead.Max != 2*time.Second {
		t.Errorf("%v", err)
	}
	clk.move(time.Hour + 2*time.Second)
	if id := next(t, g); id <= last || !decoded(t, l, id).Time.Equal(clk.now()) || g.Ahead() != 0 {
		t.Errorf("%d after %d, %v ahead", id, last, g.Ahead())
	}
}

// Calls that find no room wait for the clock, each for as long as it may, and none for another.
func TestAWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLayout(Spec{Name: "slow", Epoch: epoch2020, Unit: 10 * time.Millisecond, Fields: []Field{{Part: Time, Bits: 38}, {Part: Sequence, Bits: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		// Time begins in 2000 here, the layout in 2020: go there.
		time.Sleep(time.Until(epoch2020.AddDate(1, 0, 0)))
		g := generator[ID](t, l, 0, forever, Options{MaxAhead: -1, MaxWait: 30 * time.Millisecond})
		start := time.Now()
		var group sync.WaitGroup
		var made, late atomic.Int64
		for range 20 {
			group.Go(func() {
				_, err := g.Next()
				switch waited := time.Since(start); {
				case err == nil && waited <= 30*time.Millisecond:
					made.Add(1)
				case errors.As(err, new(*AheadError)) && waited <= 30*time.Millisecond:
					late.Add(1)
				default:
					t.Errorf("%v after %v", err, waited)
				}
			})
		}
		group.Wait()
		if made.Load() != 16 || late.Load() != 4 { // 4 in each of 4 units
			t.Errorf("%d ids, %d too late", made.Load(), late.Load())
		}
		start = time.Now()
		if ids, err := g.NextN(40); err != nil || len(ids) != 40 || time.Since(start) != 100*time.Millisecond {
			t.Errorf("%d ids in %v, %v", len(ids), time.Since(start), err)
		}
		if g.Ahead() != 0 {
			t.Errorf("%v ahead", g.Ahead())
		}
		g.Stop()
	})
}

// Between two looks at the clock, ids are made without it; a unit of time later at most, it is looked at.
func TestTimeIsAUnitOldAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Twitter()
		time.Sleep(time.Until(noon))
		looks := 0
		g := generator[ID](t, l, 1, forever, Options{Now: func() time.Time { looks++; return time.Now() }})
		for range 3000 {
			next(t, g)
		}
		if looks != 1 {
			t.Errorf("%d looks at the clock for 3000 ids at once", looks)
		}
		for _, pause := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, time.Hour} {
			time.Sleep(pause)
			synctest.Wait() // for the timer's function
			if p := decoded(t, l, next(t, g)); time.Since(p.Time) >= time.Millisecond {
				t.Errorf("after %v an id of %v", pause, p.Time)
			}
		}
		for range refresh + 1 {
			next(t, g)
		}
		if looks < 5 {
			t.Errorf("%d looks at the clock: want one every %d ids", looks, refresh)
		}
		g.Stop()
	})
}

// A call that took a number just as there were no more of its kind, and then was slow, doesn't stamp an id with a time that is over.
func TestANumberWhoseTimeIsOverIsDropped(t *testing.T) {
	clk := at(noon)
	g := generator[ID](t, Twitter(), 1, forever, Options{Now: clk.now, Lag: time.Hour})
	for range refresh + 1 {
		next(t, g)
	}
	clk.move(time.Minute)
	if p := decoded(t, Twitter(), next(t, g)); !p.Time.Equal(clk.now()) {
		t.Errorf("an id of %v at %v", p.Time, clk.now())
	}
	g.Stop()
}

// Two calls that ask the window at once may be told two ceilings, and the older one later.
func TestTheKnownCeilingNeverFalls(t *testing.T) {
	s := generator[ID](t, Twitter(), 1, forever, Options{}).state
	if a, b := s.raise(10), s.raise(5); a != 10 || b != 10 || s.ceiling.Load() != 10 {
		t.Errorf("%d, then %d", a, b)
	}
}

func TestStopIsForGood(t *testing.T) {
	clk := at(noon)
	g := generator[ID](t, Twitter(), 1, Between(noon.Add(-time.Hour), noon.Add(time.Hour)), Options{Now: clk.now})
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

// Programs that make one id each spread them, too.
func TestScatteredIDsBeginAnywhere(t *testing.T) {
	begin := map[byte]bool{}
	for range 100 {
		begin[next(t, generator[ID96](t, Scatter(), 1, forever, Options{}))[0]] = true
	}
	if len(begin) < 40 { // 83 on average; below 40 once in more than 10³⁰ times
		t.Errorf("the first ids of 100 programs begin with %d different bytes", len(begin))
	}
}

func TestALayoutWithoutTimeLeft(t *testing.T) {
	l := Sonyflake()
	clk := at(l.Exhausted().Add(-l.spec.Unit))
	g := generator[ID](t, l, 1, Between(epoch2020, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)), clk.options())
	if id := next(t, g); id < 0 || !decoded(t, l, id).Time.Equal(clk.now()) {
		t.Errorf("%d", id)
	}
	for range 2 {
		clk.move(l.spec.Unit)
		if id, err := g.Next(); !errors.As(err, new(*ExhaustedError)) {
			t.Errorf("%d, %v", id, err)
		}
	}
	clk.set(l.spec.Epoch.AddDate(-1, 0, 0))
	if id, err := generator[ID](t, l, 1, forever, clk.options()).Next(); !errors.As(err, new(*AheadError)) {
		t.Errorf("before the epoch: %d, %v", id, err)
	}
}

// TestNoClockMakesAnIDTwice hands a node's number from process to process, each with a clock of its own that steps, stops and
// runs wild, and some of which are paused and go on when their successor is at work. The grants are what keeps them apart.
func TestNoClockMakesAnIDTwice(t *testing.T) {
	for _, l := range []Layout{Twitter(), Sonyflake(), Reversed()} {
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
