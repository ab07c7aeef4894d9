package identity

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

var (
	_ flake.Window  = (*Hold)(nil)
	_ lease.Holding = (*Hold)(nil)
)

func (p *process) stored(h *Hold) window {
	p.w.Helper()
	w, err := readWindow(p.w.Get(windowKey(h.pool, h.value)))
	if err != nil {
		p.w.Fatal(err)
	}
	return w
}

// generator makes ids of a hold, by the process's clock.
func (p *process) generator(h *Hold) *flake.Generator[flake.ID] {
	p.w.Helper()
	g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{Now: p.Clk.Wall, Lag: -1, MaxWait: -1})
	if err != nil {
		p.w.Fatal(err)
	}
	return g
}

// The ceiling is stored before it counts, and is raised in time, by few writes.
func TestWindowIsStoredFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		o := ranged("0-9")
		o.Window = 2 * time.Minute
		h := p.claim(o)
		g := p.generator(h)
		before := p.Net.Count(faulty.Put)
		for range 600 {
			time.Sleep(time.Second)
			told := h.Ceiling()
			if stored := p.stored(h).Ceiling; told.After(stored) {
				t.Fatalf("told %v, stored %v", told, stored)
			}
			if _, err := g.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.Net.Count(faulty.Put) - before; n > 600/4+12 { // a heartbeat every 4 to 5 s, a window every minute
			t.Errorf("%d writes in 10 minutes", n)
		}
	})
}

// A holder that is cut off makes ids up to its ceiling and none after; who comes next makes them from there on, with a clock that
// was set back, too.
func TestPitfall_I2_WindowsOfOneValueDontOverlap(t *testing.T) {
	for _, step := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour} {
		inWorld(t, func(t *testing.T, w world) {
			p, q := w.process(nil), w.process(nil)
			h := p.claim(named1("7-7", "a"))
			g := p.generator(h)
			if _, err := g.Next(); err != nil {
				t.Fatal(err)
			}
			p.Cut()
			time.Sleep(2 * ttl)
			q.Clk.StepWall(step)
			next := q.claim(named1("7-7", "a"))
			if !next.Floor().Equal(h.Ceiling()) || next.Token() <= h.Token() {
				t.Errorf("[%v, %v) is followed by [%v, %v)", h.Floor(), h.Ceiling(), next.Floor(), next.Ceiling())
			}
			time.Sleep(10 * time.Minute) // it was paused for long, and believes that nothing has changed
			if next.Ceiling().Before(q.Clk.Wall()) {
				t.Errorf("at %v the ceiling is %v", q.Clk.Wall(), next.Ceiling())
			}
			var end *flake.WindowError
			if id, err := g.Next(); !errors.As(err, &end) {
				t.Errorf("%v after the window's end: %v", id, err)
			}
			if err := h.Release(t.Context(), g.Stop()); err == nil {
				t.Error("released without a store")
			}
			if stored := q.stored(next); !stored.Ceiling.Equal(next.Ceiling()) || stored.Token != next.Token() {
				t.Errorf("the old holder has changed the window: %+v", stored)
			}
		})
	}
}

// What a release says was used is where the next window begins, but never before the floor nor after the ceiling.
func TestReleaseStoresWhatWasUsed(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		h := p.claim(named1("7-7", "a"))
		g := p.generator(h)
		time.Sleep(time.Second)
		if _, err := g.Next(); err != nil {
			t.Fatal(err)
		}
		used := g.Stop()
		p.release(h, used)
		h2 := p.claim(named1("7-7", "a"))
		if !h2.Floor().Equal(used) {
			t.Errorf("used up to %v, and the floor is %v", used, h2.Floor())
		}
		p.release(h2, h2.Floor().Add(-time.Hour))
		h3 := p.claim(named1("7-7", "a"))
		if !h3.Floor().Equal(h2.Floor()) {
			t.Errorf("nothing was used from %v on, and the floor is %v", h2.Floor(), h3.Floor())
		}
		p.release(h3, h3.Ceiling().Add(time.Hour))
		h4 := p.claim(named1("7-7", "a"))
		if !h4.Floor().Equal(h3.Ceiling()) {
			t.Errorf("up to %v may have been used, and the floor is %v", h3.Ceiling(), h4.Floor())
		}
		p.release(h4, time.Time{})
		if err := h4.Release(t.Context(), h4.Floor()); err != nil {
			t.Error(err)
		}
		if h5 := p.claim(named1("7-7", "a")); !h5.Floor().Equal(h4.Ceiling()) {
			t.Errorf("nobody knows what was used up to %v, and the floor is %v", h4.Ceiling(), h5.Floor())
		}
	})
}

// A ceiling that the store did not confirm doesn't count, though it may be stored.
func TestUnconfirmedCeilingDoesNotCount(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		var lost atomic.Bool
		p := w.process(func(op faulty.Op) faulty.Fault {
			return faulty.Fault{LoseReply: lost.Load() && op.Key == windowKey("machines", "7")}
		})
		h := p.claim(ranged("7-7"))
		told := h.Ceiling()
		lost.Store(true)
		time.Sleep(10 * time.Minute)
		if !h.Ceiling().Equal(told) || h.Check() != nil {
			t.Errorf("%v, after %v: %v", h.Ceiling(), told, h.Check())
		}
		lost.Store(false)
		time.Sleep(time.Minute)
		if h.Ceiling().Before(p.Clk.Wall()) {
			t.Errorf("the store is back, and the ceiling is %v", h.Ceiling())
		}
	})
}

// Asking for a ceiling near its end has it raised at once: also when the clock was set forward.
func TestClockSetForward(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		h := p.claim(ranged("7-7"))
		p.Clk.StepWall(24 * time.Hour)
		_ = h.Ceiling()
		time.Sleep(time.Millisecond)
		if h.Ceiling().Before(p.Clk.Wall()) {
			t.Errorf("%v at %v", h.Ceiling(), p.Clk.Wall())
		}
	})
}

// A grant that arrives when a later term has the value does nothing.
func TestGrantOfAnOlderTerm(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		st := store.Store(w.DB.Open())
		now := time.Now()
		grant := func(token int) (window, error) {
			got, _, err := grantWindow(t.Context(), st, "w", window{Token: fence.Token(token)}, now, time.Minute)
			return got, err
		}
		ten, err := grant(10)
		if err != nil {
			t.Fatal(err)
		}
		if old, err := grant(9); !errors.Is(err, ErrWindow) {
			t.Errorf("%+v: %v", old, err)
		}
		if err := raise(t.Context(), st, "w", 9, now.Add(time.Hour)); !errors.Is(err, ErrWindow) {
			t.Errorf("raised by an older term: %v", err)
		}
		if err := closeWindow(t.Context(), st, "w", 9, now); err != nil {
			t.Errorf("closed by an older term: %v", err)
		}
		if again, err := grant(10); err != nil || !again.Ceiling.Equal(ten.Ceiling) || !again.Floor.Equal(ten.Floor) || !again.Open {
			t.Errorf("%+v, not %+v: %v", again, ten, err)
		}
		if err := closeWindow(t.Context(), st, "w", 10, now); err != nil {
			t.Fatal(err)
		}
		if err := raise(t.Context(), st, "w", 10, now.Add(time.Hour)); !errors.Is(err, ErrWindow) {
			t.Errorf("raised after the release: %v", err)
		}
		if next, err := grant(11); err != nil || !next.Floor.Equal(now) {
			t.Errorf("%+v: %v", next, err)
		}
	})
}

// A holder that dies again and again doesn't push its floor further ahead each time: it is never later than a window after the clock.
func TestFloorIsNoRatchet(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		var floor time.Time
		for range 20 {
			h := p.claim(named1("5-5", "a"))
			if ahead := h.Floor().Sub(p.Clk.Wall()); ahead > defaultWindow || h.Ceiling().Before(h.Floor()) || h.Floor().Before(floor) {
				t.Fatalf("the floor is %v ahead: %v, ceiling %v, before it was %v", ahead, h.Floor(), h.Ceiling(), floor)
			}
			floor = h.Floor()
			p.release(h, time.Time{})
			time.Sleep(time.Second)
		}
		h := p.claim(named1("5-5", "a"))
		time.Sleep(2 * defaultWindow)
		g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{Now: p.Clk.Wall})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Next(); err != nil {
			t.Errorf("when its floor has come: %v", err)
		}
	})
}
