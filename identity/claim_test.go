package identity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// A name gets its own value back: after a release, and after a crash, when its TTL is over; not what another instance has got.
func TestSticky(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		h := p.claim(named1("1-3", "a"))
		value := h.Value()
		p.release(h, time.Time{})
		for range 2 { // the others go by the order of their release, so only its name gives it this one
			other := q.claim(ranged("1-3"))
			q.release(other, time.Time{})
		}
		if h = q.claim(named1("1-3", "a")); h.Value() != value {
			t.Errorf("%s, then %s", value, h.Value())
		}
		if want := h.ValidUntil().Sub(q.Clk.Now()); want <= 0 || h.Left() != want {
			t.Errorf("%v left, want %v", h.Left(), want)
		}
		q.Cut()
		start := time.Now()
		if h = p.claim(named1("1-3", "a")); h.Value() != value {
			t.Errorf("%s, and after a crash %s", value, h.Value())
		}
		if waited := time.Since(start); waited < ttl/2 || waited > 2*ttl {
			t.Errorf("a crash was waited for %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*ttl)
		defer cancel()
		if _, err := Claim(ctx, w.process(nil).s, "machines", named1("1-3", "a")); !errors.Is(err, lease.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one name twice: %v", err)
		}
	})
}

// Two processes of one name that come at the same time get the same value, one after the other.
func TestOneNameTwiceAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		slow := func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: 10 * time.Millisecond} }
		var mu sync.Mutex
		var values []string
		var wg sync.WaitGroup
		for range 4 {
			p := w.process(slow)
			wg.Go(func() {
				h := p.claim(named1("1-64", "a"))
				mu.Lock()
				values = append(values, h.Value())
				if len(values) > 1 && h.Value() != values[0] {
					t.Errorf("one name has %v", values)
				}
				mu.Unlock()
				time.Sleep(ttl)
				p.release(h, time.Time{})
			})
		}
		wg.Wait()
	})
}

// An instance whose value another one has got gets another, and keeps that from then on.
func TestStickyAfterItsValueIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		h := p.claim(named1("1-2", "a"))
		mine := h.Value()
		p.release(h, time.Time{})
		b, c := p.claim(named1("1-2", "b")), p.claim(named1("1-2", "c"))
		thief := b
		if c.Value() == mine {
			thief = c
		}
		if thief.Value() != mine {
			t.Fatalf("%s and %s of 2, and neither is %s", b.Value(), c.Value(), mine)
		}
		other := b
		if thief == b {
			other = c
		}
		p.release(other, time.Time{})
		h = p.claim(named1("1-2", "a"))
		if h.Value() != other.Value() {
			t.Errorf("a has %s", h.Value())
		}
		p.release(h, time.Time{})
		p.release(thief, time.Time{})
		if again := p.claim(named1("1-2", "a")); again.Value() != h.Value() {
			t.Errorf("a had %s last, and got %s", h.Value(), again.Value())
		}
	})
}

// Values that were never held come first, then that which was released before all others.
func TestLeastRecentlyUsedFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		var order []string
		for range 5 {
			h := p.claim(ranged("1-5"))
			if slices.Contains(order, h.Value()) {
				t.Fatalf("%s again after %v of 5", h.Value(), order)
			}
			order = append(order, h.Value())
			time.Sleep(time.Second)
			p.release(h, time.Time{})
		}
		for i := range 12 {
			h := w.process(nil).claim(ranged("1-5"))
			if h.Value() != order[i%5] {
				t.Errorf("claim %d: %s, released in the order %v", i, h.Value(), order)
			}
			p.release(h, time.Time{})
			time.Sleep(time.Second)
		}
	})
}

// Without an index the order is that of the leases' history.
func TestLeastRecentlyUsedByHistory(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		var held []*Hold
		for range 4 {
			held = append(held, p.claim(ranged("1-4")))
		}
		for _, h := range held {
			if err := h.l.Release(t.Context()); err != nil { // the index isn't told
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for i := range 4 {
			if h := p.claim(ranged("1-4")); h.Value() != held[i].Value() {
				t.Errorf("claim %d: %s, want %s", i, h.Value(), held[i].Value())
			}
		}
	})
}

func TestExhausted(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		p.claim(ranged("1-3"))
		p.claim(ranged("1-3"))
		h := q.claim(ranged("1-3"))
		for range 3 { // by a look at all, and by the index
			_, err := Claim(t.Context(), q.s, "machines", ranged("1-3"))
			var full *ExhaustedError
			if !errors.As(err, &full) || !errors.Is(err, ErrExhausted) {
				t.Fatal(err)
			}
			if full.Pool != "machines" || full.Size != 3 || full.Held != 3 || len(full.Holders) != 2 ||
				full.ExpiresIn <= 0 || full.ExpiresIn > ttl || !strings.Contains(err.Error(), "3 of 3 values") {
				t.Errorf("%+v: %v", full, err)
			}
			time.Sleep(time.Second)
		}
		q.release(h, time.Time{})
		if got := p.claim(ranged("1-3")); got.Value() != h.Value() {
			t.Errorf("%s, and only %s is free", got.Value(), h.Value())
		}
	})
}

// The values of a process that died, and of one that closed its session, are found without anybody telling.
func TestDeadHoldersAreNoticed(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		for range 3 {
			p.claim(ranged("1-3"))
		}
		p.Cut()
		start := time.Now()
		var got []string
		for len(got) < 3 {
			h, err := Claim(t.Context(), q.s, "machines", ranged("1-3"))
			if err == nil {
				if time.Since(start) < ttl/2 {
					t.Fatalf("taken from its holder after %v", time.Since(start))
				}
				got = append(got, h.Value())
			} else if !errors.Is(err, ErrExhausted) {
				t.Fatal(err)
			}
			if time.Since(start) > 4*ttl {
				t.Fatalf("only %v after %v", got, time.Since(start))
			}
			time.Sleep(time.Second)
		}
		if err := q.s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		r := w.process(nil)
		for range 3 {
			r.claim(ranged("1-3"))
		}
	})
}

func TestDeclaration(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		if _, err := Claim(t.Context(), p.s, "machines", Options{}); !errors.Is(err, ErrUndeclared) {
			t.Errorf("%v", err)
		}
		p.claim(ranged("1 - 3"))
		p.claim(Options{})
		_, err := Claim(t.Context(), p.s, "machines", ranged("1-4"))
		var m *MismatchError
		if !errors.As(err, &m) || !strings.Contains(err.Error(), "the range 1-3, not the range 1-4") {
			t.Errorf("%v", err)
		}
		for _, o := range []Options{
			{Window: time.Millisecond}, {Window: 365 * 24 * time.Hour}, {Name: strings.Repeat("n", 300)}, ranged("x"),
		} {
			if h, err := Claim(t.Context(), p.s, "machines", o); err == nil {
				t.Errorf("%+v: %s", o, h.Value())
			}
		}
		if _, err := Claim(t.Context(), p.s, "", Options{}); err == nil {
			t.Error("a pool without a name")
		}
	})
}

// The elements of a key are escaped, so that two pools never share one.
func TestPitfall_I5_PathElementsAreEscaped(t *testing.T) {
	pairs := [][2]string{{"a", "b/c"}, {"a/b", "c"}, {"a%2Fb", "c"}, {"a", "b%2Fc"}, {"a/value", "x"}, {"a", "value/x"}}
	for _, key := range []func(a, b string) string{pools.Key, windowKey, nameKey} {
		seen := map[string][2]string{}
		for _, p := range pairs {
			if other, twice := seen[key(p[0], p[1])]; twice {
				t.Errorf("%q and %q have one key", p, other)
			}
			seen[key(p[0], p[1])] = p
		}
	}
	for _, list := range []string{pools.Key("a", ""), poolKey("a") + "/"} {
		for _, key := range []string{pools.Key("a/b", "c"), windowKey("a/b", "c"), nameKey("a/b", "c")} {
			if strings.HasPrefix(key, list) {
				t.Errorf("a list of %s shows %s", list, key)
			}
		}
	}
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		one, err := Claim(t.Context(), p.s, "a", Options{Values: Values{Names: []string{"b/c"}}})
		if err != nil {
			t.Fatal(err)
		}
		two, err := Claim(t.Context(), p.s, "a/b", Options{Values: Values{Names: []string{"c"}}})
		if err != nil || one.Sequencer().Name == two.Sequencer().Name {
			t.Fatalf("%v: %v", one.Sequencer(), err)
		}
	})
}
