package engines

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// TestIdentities has the values of pools claimed on each engine: who races for them gets one each, a name its own, and a value's windows
// follow one another also when its holder dies.
func TestIdentities(t *testing.T) {
	onEach(t, tryIdentities)
}

func tryIdentities(t *testing.T, open func(t testing.TB) store.Store) {
	start := func(t *testing.T, ttl time.Duration, plan faulty.Plan) holder {
		st := faulty.Wrap(open(t), plan)
		t.Cleanup(func() { must(t, st.Close()) })
		m, err := lease.NewManager(st, lease.Options{TTL: ttl})
		must(t, err)
		t.Cleanup(func() { m.Close() })
		s, err := m.OpenSession(t.Context())
		for errors.Is(err, store.ErrUnknownOutcome) {
			s, err = m.OpenSession(t.Context())
		}
		must(t, err)
		return holder{s, m}
	}
	for name, rates := range map[string]faulty.Rates{
		"race": {},
		"race, with lost replies and repeated writes": {LoseReply: 0.05, ApplyTwice: 0.05, MaxDelay: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { raceForValues(t, start, rates) })
	}
	t.Run("a name's own value", func(t *testing.T) { ownValue(t, start) })
	t.Run("windows, and a death", func(t *testing.T) { windowsFollow(t, start) })
}

type starter func(t *testing.T, ttl time.Duration, plan faulty.Plan) holder

// raceForValues has more claimants than a pool has values claim at once.
func raceForValues(t *testing.T, start starter, rates faulty.Rates) {
	const processes, each, size = 5, 5, 16
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := identity.Options{Values: identity.Values{Range: fmt.Sprintf("1-%d", size)}}
	pool := fmt.Sprintf("race-%v", rates.LoseReply)
	var mu sync.Mutex
	held := map[string]*identity.Hold{}
	var full *identity.ExhaustedError
	var wg sync.WaitGroup
	for i := range uint64(processes) {
		p := start(t, calmTTL, faulty.Random(i, rates))
		for range each {
			wg.Go(func() {
				h, err := identity.Claim(ctx, p.Session, pool, o)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.As(err, &full):
				case err != nil && rates.LoseReply > 0: // it is told so, and what it may have is given back
				case err != nil:
					t.Error(err)
				case held[h.Value()] != nil && held[h.Value()].Check() == nil:
					t.Errorf("%s is held under tokens %d and %d", h.Value(), held[h.Value()].Token(), h.Token())
				default:
					held[h.Value()] = h
				}
			})
		}
	}
	wg.Wait()
	if rates.LoseReply == 0 && (len(held) != size || full == nil || full.Size != size || full.Held != size) {
		t.Errorf("%d of %d values are held: %v", len(held), size, full)
	}
	if len(held) < size/2 {
		t.Errorf("%d of %d values are held", len(held), size)
	}
	st := start(t, calmTTL, nil)
	if twice, err := identity.Duplicates(ctx, st.m.Store(), pool); err != nil || len(twice) > 0 {
		t.Errorf("%v: %v", twice, err)
	}
	for _, h := range held {
		if err := h.Release(ctx, h.Floor()); err != nil && rates.LoseReply == 0 {
			t.Error(err)
		}
	}
}

// ownValue has a name claim from process after process.
func ownValue(t *testing.T, start starter) {
	o := identity.Options{Values: identity.Values{Prefix: "10.1.0.0/16", Bits: 24}, Name: "db-7"}
	value := ""
	for range 3 {
		p := start(t, calmTTL, nil)
		h, err := identity.Claim(t.Context(), p.Session, "networks", o)
		must(t, err)
		other, err := identity.Claim(t.Context(), p.Session, "networks", identity.Options{})
		must(t, err)
		if value != "" && h.Value() != value || other.Value() == h.Value() {
			t.Errorf("%s after %s, and %s for another", h.Value(), value, other.Value())
		}
		value = h.Value()
		must(t, h.Release(t.Context(), h.Floor()))
		must(t, other.Release(t.Context(), other.Floor()))
	}
}

// windowsFollow has the only value of a pool go from a process that releases it to one that dies, and on; each makes ids of it.
func windowsFollow(t *testing.T, start starter) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const window = deadTTL * 2 / 3 // long enough for a store that is busy, and over by the time that a dead holder's value is free
	o := identity.Options{Values: identity.Values{Range: "7-7"}, Name: "only", Window: window}
	seen := map[flake.ID]bool{}
	claim := func(p holder) (*identity.Hold, *flake.Generator[flake.ID]) {
		h, err := identity.Claim(ctx, p.Session, "one", o)
		must(t, err)
		g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{MaxWait: 10 * time.Second})
		must(t, err)
		ids, err := g.NextN(5000)
		must(t, err)
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%v is there twice", id)
			}
			seen[id] = true
		}
		return h, g
	}
	h, g := claim(start(t, deadTTL, nil))
	used := g.Stop()
	must(t, h.Release(ctx, used))

	p := start(t, deadTTL, nil)
	dead, g := claim(p)
	if !dead.Floor().Equal(used) {
		t.Errorf("used up to %v, and the next floor is %v", used, dead.Floor())
	}
	p.m.Close() // without a release: nobody renews any more
	died := time.Now()
	next, g2 := claim(start(t, deadTTL, nil))
	t.Logf("a dead holder's value was had after %v", time.Since(died).Round(time.Millisecond))
	// The next window begins where the dead one's ended. One that it had asked for as it died may have been granted to it: that ends a
	// window after its death at the latest.
	if f := next.Floor(); f.Before(dead.Ceiling()) || f.After(dead.Ceiling()) && f.After(died.Add(o.Window)) || next.Token() <= dead.Token() {
		t.Errorf("[%v, %v) under token %d is followed by [%v, %v) under token %d",
			dead.Floor(), dead.Ceiling(), dead.Token(), next.Floor(), next.Ceiling(), next.Token())
	}
	var end *flake.WindowError
	if id, err := g.Next(); !errors.As(err, &end) {
		t.Errorf("the dead one made %v: %v", id, err)
	}
	g.Stop()
	must(t, next.Release(ctx, g2.Stop()))
}
