package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tiny is a world that is searched to its end in no time.
var tiny = Scope{Name: "tiny", Holders: 2, Writes: 1, Wants: 1, Prompt: true, Stays: true}

func TestScopes(t *testing.T) {
	const states = 10_000 // with half as many, a fence and a release that are in doubt are not reached
	taken := map[Transition]uint64{}
	for _, s := range Scopes {
		r := Search(s, states, 2)
		if r.Violation != "" {
			t.Errorf("%s: %s", s.Name, r.Violation)
			for i, line := range r.Story {
				t.Logf("%4d. %s", i+1, line)
			}
		}
		if r.States < states && !r.Whole {
			t.Errorf("%s: stopped after %d states, which is neither the limit nor the end", s.Name, r.States)
		}
		if len(r.Taken) == 0 || r.Steps < r.States-1 {
			t.Errorf("%s: %d states in %d steps, %d kinds of transition", s.Name, r.States, r.Steps, len(r.Taken))
		}
		Merge(taken, r.Taken)
	}
	if missing := Missing(Expected, taken); len(missing) > len(Expected)/4 {
		t.Errorf("%d of the %d expected transitions were not taken: %v", len(missing), len(Expected), missing)
	}
}

func TestTheWholeOfASmallWorld(t *testing.T) {
	one := Search(tiny, 1_000_000, 1)
	if one.Violation != "" || !one.Whole {
		t.Fatalf("whole: %v, violation: %q", one.Whole, one.Violation)
	}
	if n := one.Taken[Transition{protocol.Waiting, protocol.OpClaim, protocol.Write, "done", protocol.Held}]; n == 0 {
		t.Error("nobody ever takes the name")
	}
	if n := one.Taken[Transition{protocol.Held, protocol.OpRenew, protocol.Write, "done", protocol.Held}]; n != 0 {
		t.Error("a renewal lands in a world of one write")
	}
	// What is reached can't depend on who gets there first.
	if r := Search(tiny, 1_000_000, 3); r.States != one.States || r.Steps != one.Steps || r.Depth != one.Depth || !r.Whole {
		t.Errorf("with 3 workers %d states, %d steps, depth %d; with one %d, %d, %d",
			r.States, r.Steps, r.Depth, one.States, one.Steps, one.Depth)
	}
	// More may happen in a world with more in it.
	more := tiny
	more.Writes = 2
	if r := Search(more, 4*one.States, 2); r.States <= one.States {
		t.Errorf("with two writes %d states, with one %d", r.States, one.States)
	}
}

func TestLimit(t *testing.T) {
	r := Search(Scopes[0], 500, 2)
	if r.Whole || r.States < 500 || r.States > 5_000 {
		t.Errorf("limit 500: %d states, whole %v", r.States, r.Whole)
	}
}

// Two states that are taken for one have to be one: whatever can follow the first can follow the second. A hash that forgets
// something would hide what only the second leads to.
func TestStatesOfOneHashBehaveAlike(t *testing.T) {
	limit := 4_000
	if testing.Short() {
		limit = 1_500
	}
	for _, s := range append(slices.Clone(Scopes), tiny) {
		t.Run(s.Name, func(t *testing.T) {
			e := newEncoder(s)
			follow := func(w *world) (hashes []uint64, worlds []*world) {
				c := &check{taken: map[Transition]uint64{}}
				for _, n := range w.next(c) {
					worlds = append(worlds, n)
					hashes = append(hashes, e.hash(n))
				}
				slices.Sort(hashes)
				return slices.Compact(hashes), worlds
			}
			first := newWorld(s)
			reps := map[uint64][]uint64{}
			stories := map[uint64]*step{}
			queue, merged, unlike := []*world{first}, 0, 0
			for len(queue) > 0 && len(reps) < limit {
				w := queue[0]
				queue = queue[1:]
				h := e.hash(w)
				hashes, worlds := follow(w)
				before, again := reps[h]
				if !again {
					reps[h], stories[h] = hashes, w.from
					queue = append(queue, worlds...)
					continue
				}
				merged++
				if !slices.Equal(before, hashes) {
					if unlike++; unlike == 1 {
						t.Errorf("two ways to what is taken for one state, and what follows differs:\n%s", diverging(stories[h], w.from))
					}
				}
			}
			if merged == 0 {
				t.Error("no state was ever reached twice")
			}
			if unlike > 0 {
				t.Errorf("%d of %d states that were reached again behave in another way", unlike, merged)
			}
		})
	}
}

func diverging(a, b *step) string {
	text := "first:\n"
	for _, line := range story(a) {
		text += "\t" + line + "\n"
	}
	text += "second:\n"
	for _, line := range story(b) {
		text += "\t" + line + "\n"
	}
	return text
}

// The names of nonces and versions don't count, but which are equal does.
func TestHashKnowsNoNames(t *testing.T) {
	e := newEncoder(tiny)
	a := newWorld(Scope{Orphan: true, Holders: 1})
	b := newWorld(Scope{Orphan: true, Holders: 1})
	for i := range b.rows {
		b.rows[i].rec.Version = fmt.Sprint("other", i)
		b.rows[i].rec.Nonce = "other"
	}
	if e.hash(a) != e.hash(b) {
		t.Error("another hash for other names")
	}
	b.rows[1].rec.Nonce = b.rows[1].rec.Version
	if e.hash(a) == e.hash(b) {
		t.Error("the same hash though a nonce has become equal to a version")
	}
	c := newWorld(Scope{Orphan: true, Holders: 1})
	c.rows[1].rec.Token++
	if e.hash(a) == e.hash(c) {
		t.Error("the same hash with another token")
	}
	d := newWorld(Scope{Orphan: true, Holders: 1})
	d.time += 7
	if e.hash(a) != e.hash(d) {
		t.Error("another hash at another time")
	}
}

// Messages under way are in no order.
func TestHashOfMessages(t *testing.T) {
	w := newWorld(Scope{Holders: 2, Writes: 2, Wants: 1})
	c := &check{taken: map[Transition]uint64{}}
	one := w.begin(c, 0).begin(c, 1)
	other := w.begin(c, 1).begin(c, 0)
	e := newEncoder(w.left)
	if len(one.wires) != 2 || e.hash(one) != e.hash(other) {
		t.Errorf("%d messages under way; hashes %x and %x, want the same", len(one.wires), e.hash(one), e.hash(other))
	}
	if e.hash(one) == e.hash(w.begin(c, 0)) {
		t.Error("the same hash with a message less")
	}
}

func TestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, want := newSet(), map[uint64]bool{}
	for range 300_000 {
		h := rng.Uint64()
		if rng.IntN(4) == 0 {
			h = uint64(rng.IntN(1000)) // many of one shard, and 0
		}
		key := max(h, 1) // 0 and 1 are one
		if s.add(h) == want[key] {
			t.Fatalf("add(%d): new is %v", h, want[key])
		}
		want[key] = true
	}
	used := 0
	for i := range s.shards {
		used += s.shards[i].used
	}
	if used != len(want) {
		t.Errorf("%d in the set, want %d", used, len(want))
	}
}

func TestSetAtOneTime(t *testing.T) {
	s := newSet()
	const n = 50_000
	var fresh [4]int
	var wg sync.WaitGroup
	for w := range fresh {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, 7)) // all add the same
			for range n {
				if s.add(rng.Uint64()) {
					fresh[w]++
				}
			}
		})
	}
	wg.Wait()
	if sum := fresh[0] + fresh[1] + fresh[2] + fresh[3]; sum != n {
		t.Errorf("%d were new to somebody, want %d", sum, n)
	}
}

func TestMissing(t *testing.T) {
	a := Transition{protocol.Waiting, protocol.OpClaim, protocol.Write, "done", protocol.Held}
	b := Transition{protocol.Held, protocol.OpRenew, protocol.Write, "done", protocol.Held}
	c := Transition{protocol.Held, protocol.OpRenew, protocol.Write, "conflict", protocol.Lost}
	taken := map[Transition]uint64{a: 3}
	Merge(taken, map[Transition]uint64{a: 1, c: 2})
	if taken[a] != 4 || taken[c] != 2 {
		t.Errorf("merged: %v", taken)
	}
	want := []Transition{a, b, c}
	if got := Missing(want, taken); !slices.Equal(got, []Transition{b}) {
		t.Errorf("missing: %v, want only %v", got, b)
	}
	if want[0] != a || want[1] != b || want[2] != c {
		t.Error("Missing changed what it was given")
	}
	if got := b.String(); got != "held renew: write done -> held" {
		t.Errorf("String: %q", got)
	}
}

// What a hold was told once isn't among what none ever was, whatever followed.
func TestUnmet(t *testing.T) {
	none := Unmet(nil)
	taken := map[Transition]uint64{}
	for _, tr := range Expected {
		taken[tr] = 1
	}
	some := Unmet(taken)
	if len(none) != 40 || len(some) == 0 || len(some) > 15 {
		t.Errorf("%d of nothing taken, %d of what is expected: %v", len(none), len(some), some)
	}
	if want := "held renew: write done"; !slices.Contains(none, want) || slices.Contains(some, want) {
		t.Errorf("%q: %v, and then %v", want, none, some)
	}
}

// An expected transition that is there twice, or that nothing can take, would make the check's own check worthless.
func TestExpectedAreDistinct(t *testing.T) {
	seen := map[Transition]bool{}
	for _, tr := range Expected {
		if seen[tr] {
			t.Errorf("%v is there twice", tr)
		}
		seen[tr] = true
	}
}
