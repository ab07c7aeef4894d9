package identity

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/store/faulty"
)

// ids makes ids as a program does: with the time of the hold.
func (p *process) ids(h *Hold) *flake.Generator[flake.ID] {
	p.w.Helper()
	g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{Lag: -1, MaxWait: -1})
	if err != nil {
		p.w.Fatal(err)
	}
	return g
}

// first waits for the first id of a generator, and returns it.
func (w world) first(g *flake.Generator[flake.ID]) flake.ID {
	w.Helper()
	for limit := time.Now().Add(48 * time.Hour); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if id, err := g.Next(); err == nil {
			return id
		}
	}
	w.Fatal("no id within two days")
	return 0
}

// A process that makes ids under a name dies; one that is started under that name makes its first id within the TTL and a second, and later
// ones than all before.
func TestFinding_I1_ANameMakesIDsWithinTheTTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		g := p.ids(p.claim(named1("0-9", "web1")))
		var last flake.ID
		for range 1000 { // it dies at any point of a window
			time.Sleep(97 * time.Millisecond)
			id, err := g.Next()
			if err != nil {
				t.Fatal(err)
			}
			last = id
		}
		p.Cut()
		died := time.Now()
		first := w.first(q.ids(q.claim(named1("0-9", "web1"))))
		if took := time.Since(died); took >= ttl+time.Second {
			t.Errorf("the first id after %v, the TTL is %v", took, ttl)
		}
		if first <= last || first>>12&1023 != last>>12&1023 {
			t.Errorf("%d of node %d is followed by %d of node %d", last, last>>12&1023, first, first>>12&1023)
		}
	})
}

// A name whose value begins a day from now gets another one, and keeps that; its own one, where there is no other.
func TestFinding_I1_AnotherValueWhereTheFloorIsFarAhead(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, holds := w.ahead(1, named1("0-1", "a"))
		p.release(holds[0], p.Clk.Wall())
		q := w.process(nil)
		h := q.claim(named1("0-1", "a"))
		if h.Value() == holds[0].Value() {
			t.Fatalf("%s, which begins at %v", h.Value(), h.Floor())
		}
		if _, err := q.ids(h).Next(); err != nil {
			t.Error(err)
		}
		q.release(h, q.Clk.Wall())
		if again := q.claim(named1("0-1", "a")); again.Value() != h.Value() {
			t.Errorf("then %s, and before that %s", again.Value(), h.Value())
		}
		r := w.process(nil)
		if only, err := Claim(t.Context(), r.s, "machines", named1("0-1", "b")); !errors.Is(err, ErrAhead) {
			t.Errorf("%v: %v, want none without a name of its own", only, err)
		}
	})
	inWorld(t, func(t *testing.T, w world) {
		p, holds := w.ahead(1, named1("5-5", "a"))
		p.release(holds[0], p.Clk.Wall())
		if h := w.process(nil).claim(named1("5-5", "a")); h.Value() != "5" {
			t.Errorf("%s, want its own, the only one", h.Value())
		}
	})
}

// A value that ids can be made with now comes before one that was released earlier.
func TestFinding_I1_ValuesForNowComeFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		late, now := p.claim(ranged("0-1")), p.claim(ranged("0-1"))
		p.release(late, time.Time{}) // nobody knows what was used
		p.release(now, p.Clk.Wall())
		if h := p.claim(ranged("0-1")); h.Value() != now.Value() {
			t.Errorf("%s, which begins at %v", h.Value(), h.Floor())
		}
		if h := p.claim(ranged("0-1")); h.Value() != late.Value() {
			t.Errorf("%s, want the other one", h.Value())
		}
	})
}

// Whichever way the wall clock is set, by an hour and for good, no id is refused; its times follow.
func TestFinding_I2_NoIDIsRefusedWhileTheClockIsSet(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		inWorld(t, func(t *testing.T, w world) {
			p := w.process(func(faulty.Op) faulty.Fault {
				return faulty.Fault{Delay: 200 * time.Millisecond, ReplyDelay: 200 * time.Millisecond}
			})
			h := p.claim(ranged("7-7"))
			g := p.ids(h)
			var last flake.ID
			next := func(during time.Duration) {
				t.Helper()
				for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
					id, err := g.Next()
					if err != nil || id <= last {
						t.Fatalf("%d after %d: %v", id, last, err)
					}
					last = id
				}
			}
			next(time.Minute)
			p.Clk.StepWall(step)
			next(10 * time.Minute)
			p.Clk.StepWall(-step)
			next(10 * time.Minute)
			p.Clk.StepWall(-step)
			next(17 * time.Hour)
			parts, err := flake.Decode(flake.Snowflake(), last)
			if off := parts.Time.Sub(p.Clk.Wall()).Abs(); err != nil || off > time.Second {
				t.Errorf("17 hours later ids are %v off: %v", off, err)
			}
			if ahead := h.Ceiling().Sub(p.Clk.Wall()); ahead > ttl+time.Second {
				t.Errorf("17 hours later the ceiling is %v ahead", ahead)
			}
		})
	}
}

// A clock that was a week ahead, and was set right, is believed: no ids are wanted that are a week ahead.
func TestTimelineOfAClockThatWasFarWrong(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		p.Clk.StepWall(7 * day)
		h := p.claim(ranged("7-7"))
		p.Clk.StepWall(-7 * day)
		if now := h.Now(); !now.Equal(p.Clk.Wall()) {
			t.Errorf("%v at %v", now, p.Clk.Wall())
		}
		if _, err := p.ids(h).Next(); err == nil {
			t.Error("an id before its window")
		}
	})
}

// A process that has lost its value while the clock was set makes ids up to its ceiling and none after.
func TestTimelineEndsWithTheWindow(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		h := p.claim(ranged("7-7"))
		g := p.ids(h)
		p.Cut()
		p.Clk.StepWall(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), 4*ttl)
		defer cancel()
		var made time.Time
		for ; ; time.Sleep(100 * time.Millisecond) {
			id, err := g.Next()
			if ctx.Err() != nil {
				if err == nil || made.IsZero() {
					t.Errorf("id %d of %v, up to %v: %v", id, made, h.Ceiling(), err)
				}
				return
			}
			if err != nil {
				continue
			}
			parts, err := flake.Decode(flake.Snowflake(), id)
			if made = parts.Time; err != nil || !made.Before(h.Ceiling()) {
				t.Fatalf("an id of %v, up to %v: %v", made, h.Ceiling(), err)
			}
		}
	})
}
