package flake

import (
	"errors"
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
		w := FixedWindow(epoch2020, noon.AddDate(1, 0, 0))
		if l.Bits() > 64 {
			g := generator[ID96](t, l, 5, w, clk.options())
			metadata := 0xdeadbeef & l.parts[Metadata].max()
			id, err := g.NextWith(metadata)
			if err != nil {
				t.Fatal(err)
			}
			if p := decoded(t, l, id); !p.Time.Equal(noon) || p.Node != 5 || p.Metadata != metadata {
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
		"node 1024 doesn't fit": func() error { _, err := New[ID](Snowflake(), 1024, forever, Options{}); return err },
		"no window":             func() error { _, err := New[ID](Snowflake(), 1, nil, Options{}); return err },
		"up to 64 are an ID":    func() error { _, err := New[ID](Scatter(), 1, forever, Options{}); return err },
		"has 63 bits":           func() error { _, err := New[ID96](Snowflake(), 1, forever, Options{}); return err },
		"option MaxAhead 9000h0m0s": func() error {
			_, err := New[ID](Snowflake(), 1, forever, Options{MaxAhead: 9000 * time.Hour})
			return err
		},
		"0 ids: want 1 to 1048576": func() error { _, err := generator[ID](t, Snowflake(), 1, forever, Options{}).NextN(0); return err },
		"1048577 ids: want 1 to 1048576": func() error {
			_, err := generator[ID](t, Snowflake(), 1, forever, Options{}).NextN(MaxN + 1)
			return err
		},
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
	began := time.Now()
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
	ended := time.Now()
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
			if p := decoded(t, l, id); p.Node != 1 || p.Time.Before(began.Add(-time.Minute)) || p.Time.After(ended.Add(time.Minute)) {
				t.Fatalf("%d: %+v", id, p)
			}
		}
	}
}

// I3: a clock that is set back makes no id twice, and no call that hangs: the state stays where it was, and what would be too far
// ahead of the clock is an error.
func TestPitfall_I3_AClockThatIsSetBack(t *testing.T) {
	l := Snowflake()
	clk := at(noon)
	g := generator[ID](t, l, 1, FixedWindow(l.spec.Epoch, noon.AddDate(1, 0, 0)), clk.ahead(2*time.Second))
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
		l := Snowflake()
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
	g := generator[ID](t, Snowflake(), 1, forever, Options{Now: clk.now, Lag: time.Hour})
	for range refresh + 1 {
		next(t, g)
	}
	clk.move(time.Minute)
	if p := decoded(t, Snowflake(), next(t, g)); !p.Time.Equal(clk.now()) {
		t.Errorf("an id of %v at %v", p.Time, clk.now())
	}
	g.Stop()
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
	g := generator[ID](t, l, 1, FixedWindow(epoch2020, time.Date(2400, 1, 1, 0, 0, 0, 0, time.UTC)), clk.options())
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
