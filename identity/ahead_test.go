package identity

import (
	"errors"
	"testing"
	"time"
)

const day = 24 * time.Hour

// ahead has a process whose clock is a day ahead claim n values of a pool.
func (w world) ahead(n int, o Options) (p *process, all []*Hold) {
	p = w.process(nil)
	p.Clk.StepWall(day)
	for range n {
		all = append(all, p.claim(o))
	}
	return p, all
}

// late expects an AheadError of a claim, and returns how long it is to be waited.
func (p *process) late(free int) time.Duration {
	p.w.Helper()
	_, err := Claim(p.w.Context(), p.s, "machines", Options{})
	var ahead *AheadError
	if !errors.As(err, &ahead) || !errors.Is(err, ErrAhead) || ahead.Free != free || ahead.In <= day-time.Hour || ahead.In > day+time.Hour {
		p.w.Fatalf("%v, want %d that are a day ahead", err, free)
	}
	return ahead.In
}

// A value whose window begins a day from now is of no use to who makes ids: another one is claimed for as long as there is one, and
// then it is said when the first can be used. It can be, then.
func TestLateValuesArePassedOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, holds := w.ahead(30, ranged("0-30")) // more than are probed at a time
		for _, h := range holds {
			p.release(h, p.Clk.Wall())
		}
		q := w.process(nil)
		for range 3 { // never used at first, and then the last of those that were released
			h := q.claim(Options{})
			if h.Floor().After(q.Clk.Wall().Add(defaultWindow)) {
				t.Fatalf("%s begins at %v, now is %v", h.Value(), h.Floor(), q.Clk.Wall())
			}
			q.release(h, q.Clk.Wall())
		}
		h := q.claim(Options{})
		first := q.late(30)
		q.late(30)
		if got, err := Assign(t.Context(), q.m, "machines", AssignOptions{}); err != nil || got.Floor.Before(q.Clk.Wall().Add(day-time.Hour)) {
			t.Errorf("what no process makes ids of can have one: %+v, %v", got, err)
		}
		q.release(h, q.Clk.Wall())
		time.Sleep(first)
		for range 29 {
			q.claim(Options{})
		}
	})
}

// The same, when who was ahead has died with them.
func TestLateValuesOfTheDeadArePassedOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, _ := w.ahead(3, ranged("0-3"))
		q := w.process(nil)
		h := q.claim(Options{})
		p.Cut()
		time.Sleep(ttl)
		for !w.gone(q) { // where the store doesn't vouch for ages, it takes two looks
			time.Sleep(ttl)
		}
		q.late(3)
		q.release(h, q.Clk.Wall())
		if again := q.claim(Options{}); again.Value() != h.Value() {
			t.Errorf("%s, want %s", again.Value(), h.Value())
		}
	})
}

// gone reports whether a claim finds that the dead are gone.
func (w world) gone(q *process) bool {
	_, err := Claim(w.Context(), q.s, "machines", Options{})
	if err == nil {
		w.Fatal("a value that can't be used was claimed")
	}
	return !errors.Is(err, ErrExhausted)
}
