package identity

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/pools"
)

func layout(t *testing.T, text string) flake.Layout {
	t.Helper()
	l, err := flake.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// discord is a layout whose ids are those of twitter with another epoch, so that the same number makes the same ids years later.
const discord = "epoch=2015-01-01,time=41,node=10,sequence=12"

// Two processes use one pool for ids of two layouts: one of them is refused, since their ids can be alike. Layouts that make the same ids are one,
// whatever they are called.
func TestFinding_I5_APoolKeepsItsLayout(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		h := p.claim(Options{Values: Values{Range: pools.Numbers(flake.Snowflake())}, Layout: flake.Snowflake()})
		if _, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{}); err != nil {
			t.Error(err)
		}
		refused := func(err error, wants ...string) {
			t.Helper()
			var other *LayoutError
			if !errors.As(err, &other) || !errors.Is(err, ErrMismatch) {
				t.Fatalf("%v", err)
			}
			for _, want := range append(wants, "machines is no pool for ids of the layout ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %q", err, want)
				}
			}
		}
		own := flake.Snowflake().Spec()
		own.Name = "orders"
		orders, err := flake.NewLayout(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []flake.Layout{{}, flake.Snowflake(), orders, layout(t, "epoch=1288834974657,time=41,node=10,sequence=12")} {
			q.claim(Options{Layout: l})
		}
		other := Options{Layout: layout(t, discord)}
		_, err = Claim(t.Context(), q.s, "machines", other)
		refused(err, other.Layout.Name(), "are for ids of the layout twitter", "give each layout a pool of its own")
		_, err = Assign(t.Context(), q.m, "machines", AssignOptions{Options: other})
		refused(err, "twitter")
		_, err = Import(t.Context(), q.m, "machines", map[string]string{"a": "1"}, AssignOptions{Options: other})
		refused(err, "twitter")
		p.release(h, h.Floor()) // which writes the index
		_, err = Claim(t.Context(), q.s, "machines", other)
		refused(err, "twitter")
		pools, err := Pools(t.Context(), p.Net)
		if err != nil || len(pools) != 1 || pools[0].Layout != "twitter" || pools[0].Values.Range != "0-1023" {
			t.Errorf("%+v, %v", pools, err)
		}
	})
}

// A pool that was declared without a layout gets the first one that is said; it has numbers that the layout has bits for, also when it is widened.
func TestFinding_I5_TheLayoutOfAPoolThatIsThere(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		p.claim(ranged("5-6"))
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := map[string]int{}
		for _, text := range []string{"js53", "js53", discord, discord} {
			q, l := w.process(nil), layout(t, text)
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
				defer cancel()
				_, err := Claim(ctx, q.s, "machines", Options{Layout: l})
				mu.Lock()
				defer mu.Unlock()
				if !errors.Is(err, ErrMismatch) {
					won[text]++
				}
			})
		}
		if wg.Wait(); len(won) != 1 {
			t.Errorf("layouts of one pool: %v", won)
		}
		for _, text := range []string{"js53", discord} { // a claim that read the pool before it had a layout
			if err := (layoutOf{"machines", layout(t, text)}).keep(t.Context(), p.Net); (err == nil) != (won[text] > 0) {
				t.Errorf("%s, where the claims of %v got it: %v", text, won, err)
			}
		}
		_, err := Claim(t.Context(), p.s, "large", Options{Values: Values{Range: "5000-5001"}, Layout: flake.Snowflake()})
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "the number 5001 doesn't fit: the layout twitter has 10 bits of node, for 0 to 1023") {
			t.Error(err)
		}
		if _, err := Claim(t.Context(), p.s, "few", Options{Values: Values{Range: "0-3"}, Layout: layout(t, "js53")}); err != nil {
			t.Fatal(err)
		}
		if got, err := Widen(t.Context(), p.Net, "few", Values{Range: "0-31"}); err != nil || got.Layout != "js53" {
			t.Errorf("%+v, %v", got, err)
		}
		var narrow *NarrowError
		_, err = Widen(t.Context(), p.Net, "few", Values{Range: "0-32"})
		if !errors.As(err, &narrow) || !strings.Contains(err.Error(), "the number 32 doesn't fit: the layout js53 has 5 bits of node, for 0 to 31") {
			t.Error(err)
		}
		if _, err := Claim(t.Context(), p.s, "few", Options{Layout: flake.Snowflake()}); !errors.As(err, new(*LayoutError)) {
			t.Errorf("after it was widened: %v", err)
		}
		if all := pools.Numbers(layout(t, "epoch=2026-01-01,bits=96,time=32,node=64")); all != "0-65535" {
			t.Errorf("64 bits of node: %+v", all)
		}
	})
}
