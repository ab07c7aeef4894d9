package shard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/faulty"
)

// loaded returns a state of a hashed space whose loads are measured. owner and load may be nil.
func loaded(slices, workers int, owner func(i int) int, load func(i int) float64) *shard.State {
	s := state(slices, workers, owner)
	s.Measured, s.Floor, s.Ceiling = true, slices, 2*slices
	width := math.MaxUint64/uint64(slices) + 1
	for i := range s.Slices {
		e := &s.Slices[i]
		e.From, e.To, e.Load = uint64(i)*width, uint64(i+1)*width-1, 10
		if load != nil {
			e.Load = load(i)
		}
	}
	return s
}

// loadsOf carries moves out, and returns the load of each worker then.
func loadsOf(t *testing.T, s *shard.State, moves []shard.Move) []float64 {
	t.Helper()
	follow(t, s, moves)
	has := make([]float64, len(s.Workers))
	for _, e := range s.Slices {
		if e.Owner >= 0 {
			has[e.Owner] += e.Load
		}
	}
	return has
}

func TestBalanceByLoad(t *testing.T) {
	third := func(i int) int { return i % 3 }
	for _, c := range []struct {
		name   string
		s      *shard.State
		change func(s *shard.State)
		moves  int // at most
		want   func(has []float64) bool
	}{
		{"all are given out by load", loaded(90, 3, nil, func(i int) float64 { return float64(i) }), nil, 90,
			func(h []float64) bool { return math.Abs(h[0]-1335) < 30 && math.Abs(h[1]-1335) < 30 }},
		{"within the tolerance nothing moves", loaded(90, 3, third, func(i int) float64 { return 10 + float64(i%3)*0.9 }), nil, 0, func([]float64) bool { return true }},
		{"beyond it the load is levelled", loaded(90, 3, third, func(i int) float64 { return 10 + float64(i%3)*5 }), nil, 12,
			func(h []float64) bool { return math.Abs(h[0]-450) <= 45 && math.Abs(h[2]-450) <= 45 }},
		{"a space with little to do needs no balance", loaded(90, 3, third, func(i int) float64 { return 10 + float64(i%3)*5 }), func(s *shard.State) {
			for i := range s.Slices {
				s.Slices[i].Load /= 1000
			}
		}, 0, func([]float64) bool { return true }},
		{"at most so many for each", loaded(90, 3, third, func(i int) float64 { return 10 + float64(i%3)*5 }), func(s *shard.State) { s.Placement.Max = 30 }, 0,
			func(h []float64) bool { return h[0] == 300 }},
		{"a pin keeps a slice where it belongs", loaded(90, 3, third, func(i int) float64 { return 10 + float64(i%3)*5 }), func(s *shard.State) {
			s.Placement.Pins = []shard.Pin{{Prefix: "p", Zone: "z1"}}
		}, 60, func(h []float64) bool { return h[0] == 0 && h[2] == 0 }},
		{"one that goes gets rid of all", loaded(90, 3, third, nil), func(s *shard.State) { s.Workers[1].Goes = true }, 30,
			func(h []float64) bool { return h[0] == 450 && h[1] == 0 && h[2] == 450 }},
		{"what is busy stays", loaded(90, 3, third, func(i int) float64 { return 10 + float64(i%3)*5 }), func(s *shard.State) {
			for i := range s.Slices {
				s.Slices[i].Busy = true
			}
		}, 0, func([]float64) bool { return true }},
		{"zones get the same", loaded(120, 4, nil, nil), func(s *shard.State) { s.Placement.Zones = true }, 120,
			func(h []float64) bool { return h[0] == 200 && h[1] == 400 && h[2] == 400 && h[3] == 200 }},
		{"a heavy name is left alone, and its worker has little else", loaded(91, 3, third, func(i int) float64 { return map[bool]float64{true: 900, false: 10}[i == 0] }),
			func(s *shard.State) { s.Floor, s.Ceiling = 0, 0 }, 30, func(h []float64) bool { return h[0] <= 960 && h[1] >= 400 && h[2] >= 400 }},
		{"beside a heavy name the others are levelled among themselves", loaded(91, 3, func(i int) int { return map[bool]int{true: 0, false: 1 + (i-1)/60}[i == 0] },
			func(i int) float64 { return map[bool]float64{true: 900, false: 10}[i == 0] }),
			func(s *shard.State) { s.Floor, s.Ceiling = 0, 0 }, 20, func(h []float64) bool { return h[0] == 900 && h[1] <= 495 && h[2] >= 405 }},
	} {
		if c.change != nil {
			c.change(c.s)
		}
		plan := func() []shard.Move { return shard.Balance{Churn: 1, MaxLoad: 30}.Plan(c.s) }
		moves := plan()
		has := loadsOf(t, c.s, moves)
		if len(moves) > c.moves || !c.want(has) {
			t.Errorf("%s: %d moves, then %v", c.name, len(moves), has)
		}
		if again := plan(); len(again) > 0 {
			t.Errorf("%s: then %d more moves: it never settles", c.name, len(again))
		}
	}
}

// Slices of which nothing is reported any more stay, however many of them a worker has; those that nobody owns are spread.
func TestSlicesWithoutLoad(t *testing.T) {
	idle := func(int) float64 { return 0 }
	if moves := (shard.Balance{}).Plan(loaded(90, 3, func(i int) int { return i % 3 * (i % 2) }, idle)); len(moves) > 0 {
		t.Errorf("%d move", len(moves))
	}
	s := loaded(90, 3, nil, idle)
	for w, n := range carry(t, s, shard.Balance{}.Plan(s)) {
		if n != 30 {
			t.Errorf("worker %d gets %d of 90 idle slices", w, n)
		}
	}
}

// The budget bounds how many slices are under way for balance.
func TestChurnIsBounded(t *testing.T) {
	s := loaded(1000, 10, func(int) int { return 0 }, nil)
	moves := shard.Balance{}.Plan(s)
	if len(moves) != 50 {
		t.Errorf("%d moves at once, want a twentieth of 1000", len(moves))
	}
	for _, m := range moves {
		s.Slices[m.Slice].Next = m.To // they are under way
	}
	if more := (shard.Balance{}).Plan(s); len(more) != 0 {
		t.Errorf("%d more while these are under way", len(more))
	}
}

// A hot key gets a slice of its own, of which its worker has nothing beside; when it is cold again, the slice merges.
func TestAHotKeyGetsASlice(t *testing.T) {
	s := loaded(64, 4, func(i int) int { return i % 4 }, nil)
	s.Slices[9].Load = 800
	hot := s.Slices[9].From + 12345
	s.Slices[9].Hot = []shard.HotKey{{Hash: hot, Load: 790}}
	settleAt := func(load func(from, to uint64) float64) {
		for step := 0; ; step++ {
			moves := shard.Balance{Churn: 1}.Plan(s)
			if len(moves) == 0 {
				return
			}
			if step > 100 {
				t.Fatal("it never settles")
			}
			for n := len(moves) - 1; n >= 0; n-- {
				m := moves[n]
				e := &s.Slices[m.Slice]
				switch {
				case m.Split != 0:
					upper := *e
					upper.From, e.To = m.Split, m.Split-1
					s.Slices = append(s.Slices[:m.Slice+1], append([]shard.SliceState{upper}, s.Slices[m.Slice+1:]...)...)
				case m.Merge:
					e.To = s.Slices[m.Slice+1].To
					s.Slices = append(s.Slices[:m.Slice+1], s.Slices[m.Slice+2:]...)
				default:
					e.Owner = m.To
				}
			}
			for i := range s.Slices {
				e := &s.Slices[i]
				e.Load = load(e.From, e.To)
				e.Hot = nil
				if e.Load > 790 {
					e.Hot = []shard.HotKey{{Hash: hot, Load: 790}}
				}
			}
		}
	}
	even := func(from, to uint64) float64 { return 640 * float64(to-from) / math.MaxUint64 }
	settleAt(func(from, to uint64) float64 {
		if from <= hot && hot <= to {
			return even(from, to) + 790
		}
		return even(from, to)
	})
	owner, alone := -1, false
	for _, e := range s.Slices {
		if e.From <= hot && hot <= e.To {
			owner, alone = e.Owner, e.From == e.To
		}
	}
	has := loadsOf(t, s, nil)
	if !alone || has[owner] > 790*1.1 || len(s.Slices) > 70 {
		t.Errorf("alone: %t; its worker has %v of which 790 are the key's; %d slices", alone, has[owner], len(s.Slices))
	}
	settleAt(even)
	if len(s.Slices) > 65 {
		t.Errorf("when it is cold again there are %d slices, want 64 as at first, or 65", len(s.Slices))
	}
}

// What is suspected to end its owners is spread, so that it is found out.
func TestSuspectsAreSpread(t *testing.T) {
	s := state(60, 6, func(i int) int { return i%5 + 1 })
	for i := range 5 {
		s.Slices[i*5].Owner, s.Slices[i*5].Deaths = -1, 2
	}
	got := map[int]int{}
	for _, m := range (shard.Balance{}).Plan(s) {
		if s.Slices[m.Slice].Deaths > 0 {
			got[m.To]++
		}
	}
	for w, n := range got {
		if n != 1 {
			t.Errorf("worker %d gets %d of 5 suspects, of 6 workers", w, n)
		}
	}
}

// report has a worker report load of keys, as it would serve them, for a while: n of a key each 50 ms.
func (w *world) report(lasts time.Duration, load func(key string) float64, keys []string, workers ...*process) {
	for range lasts / (50 * time.Millisecond) {
		for _, k := range keys {
			for _, p := range workers {
				if _, err := p.Check(k); err == nil {
					p.Report(k, load(k)/20)
				}
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Reported loads are balanced, at no write beside heartbeats and moves, and a hot key comes to be alone.
func TestReportedLoadIsBalanced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Hashed: true, Slices: 32}
		a, b, c := w.join(space, shard.Worker{Name: "a"}), w.join(space, shard.Worker{Name: "b"}), w.join(space, shard.Worker{Name: "c"})
		settle()
		var keys []string
		for i := range 400 {
			keys = append(keys, fmt.Sprint("key-", i))
		}
		load := func(k string) float64 { // one key has a quarter of all
			if k == "key-7" {
				return 133
			}
			return 1
		}
		share := func() (parts [3]float64) {
			for _, k := range keys {
				for n, p := range []*process{a, b, c} {
					if _, err := p.Check(k); err == nil {
						parts[n] += load(k)
					}
				}
			}
			return parts
		}
		w.report(8*ttl, load, keys, a, b, c)
		synctest.Wait()
		parts := share()
		for n, p := range parts {
			if p < 533.0/3*0.8 || p > 533.0/3*1.2 {
				t.Errorf("worker %d has %v of 533: %v", n, p, parts)
			}
		}
		before, moved := puts(a, b, c), tokens(entries(t, w.st, "s"))
		w.report(4*ttl, load, keys, a, b, c)
		if got := puts(a, b, c) - before; got > 3*(4*4) && tokens(entries(t, w.st, "s")) == moved {
			t.Errorf("%d writes in 4 TTLs of 3 workers while nothing moved: want one for each third of the TTL", got)
		}
		if got := tokens(entries(t, w.st, "s")); got != moved {
			t.Errorf("slices move though the load is as before")
		}
		info := fmt.Sprint(w.st.Get(t.Context(), a.session(t, w)))
		if !strings.Contains(info, shardmap.Carried) {
			t.Error("no digest rides on the heartbeat:", info)
		}
	})
}

func puts(all ...*process) (n int) {
	for _, p := range all {
		n += p.net.Count(faulty.Put)
	}
	return n
}

// tokens returns the tokens of all entries as text.
func tokens(all []shard.Entry) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprint(&b, e.ID(), " ", e.Token, "\n")
	}
	return b.String()
}

func (p *process) session(t *testing.T, w *world) string {
	t.Helper()
	all, err := shard.Members(t.Context(), w.st, "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Holder == p.Manager().Holder() {
			return m.Session
		}
	}
	t.Fatal("no member")
	return ""
}

// A slice that ends each of its owners soon after it came to them is quarantined after the third, reported, given to one again later, and quarantined for longer.
func TestAKeyOfDeath(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(40)}
		var mu sync.Mutex
		var told []error
		var died []time.Time
		began := time.Now()
		poisoned := false
		for range 8 {
			var p *process
			made := make(chan struct{})
			p = w.join(space, shard.Worker{
				Start: func(_ context.Context, s *shard.Slice) error {
					mu.Lock()
					poison := poisoned && s.Name == "p007"
					if poison {
						died = append(died, time.Now())
					}
					mu.Unlock()
					if poison {
						<-made
						p.outage.Start() // the process dies
					}
					return nil
				},
				OnError: func(err error) {
					mu.Lock()
					defer mu.Unlock()
					if errors.Is(err, shard.ErrQuarantined) {
						told = append(told, err)
					}
				},
			})
			close(made)
		}
		settle()
		mu.Lock()
		poisoned = true
		mu.Unlock()
		// It moves, and kills from then on.
		all, err := shard.Members(t.Context(), w.st, "s")
		if err != nil {
			t.Fatal(err)
		}
		e, err := shard.Lookup(t.Context(), w.st, "s", "p007")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if m.Session != e.Owner {
				if err := shard.RequestMove(t.Context(), w.st, "s", "p007", m.Session); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		time.Sleep(5 * ttl)
		mu.Lock()
		n, reported := len(died), len(told)
		mu.Unlock()
		if n != 3 || reported != 1 {
			t.Errorf("after %v, %d workers have died, and %d times it was told: want 3 and 1: %v", time.Since(began), n, reported, told)
		}
		isolated := 0
		for _, e := range entries(t, w.st, "s") {
			if e.Name == "p007" && (e.Owner != "" || e.Deaths != 3) {
				t.Errorf("%+v", e)
			}
			if e.Name != "p007" && e.Owner == "" {
				isolated++
			}
		}
		if isolated > 1 {
			t.Errorf("%d others have no owner", isolated)
		}
		time.Sleep(3 * ttl) // the quarantine is over: one more worker gets it
		mu.Lock()
		n = len(died)
		mu.Unlock()
		if n != 4 {
			t.Errorf("after the quarantine %d workers have died, want 4", n)
		}
		time.Sleep(6 * ttl) // the next one is twice as long
		if e, err := shard.Lookup(t.Context(), w.st, "s", "p007"); err != nil || e.Owner != "" || e.Deaths != 4 {
			t.Errorf("%+v, %v", e, err)
		}
		mu.Lock()
		poisoned = false
		mu.Unlock()
		if all, err = shard.Members(t.Context(), w.st, "s"); err != nil || len(all) == 0 {
			t.Fatal(all, err)
		}
		to := all[len(all)-1].Session
		if err := shard.RequestMove(t.Context(), w.st, "s", "p007", to); err != nil {
			t.Fatal(err)
		}
		settle()
		if e, err := shard.Lookup(t.Context(), w.st, "s", "p007"); err != nil || e.Owner != to || !e.Quarantined.IsZero() {
			t.Errorf("an operator's move doesn't free it: %+v, %v", e, err)
		}
	})
}

// A fleet that is restarted quickly, each worker closing rather than leaving, quarantines nothing, and one that crashes as a whole a few slices at most.
func TestRestartsQuarantineNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(30)}
		all := []*process{w.join(space, shard.Worker{}), w.join(space, shard.Worker{})}
		for range 8 {
			settle()
			all = append(all, w.join(space, shard.Worker{}))
			if err := all[0].Close(); err != nil {
				t.Fatal(err)
			}
			all = all[1:]
		}
		settle()
		for _, e := range entries(t, w.st, "s") {
			if e.Owner == "" || e.Deaths != 0 {
				t.Errorf("after restarts: %+v", e)
			}
		}
		time.Sleep(5 * ttl)
		all[0].outage.Start() // it has had its slices for long
		time.Sleep(2 * ttl)
		all[0] = w.join(space, shard.Worker{})
		for _, e := range entries(t, w.st, "s") {
			if e.Owner == "" || e.Deaths != 0 {
				t.Errorf("after the death of an old worker: %+v", e)
			}
		}
		for range 6 { // every worker that owns a slice dies
			for _, p := range all {
				p.outage.Start()
			}
			all = []*process{w.join(space, shard.Worker{}), w.join(space, shard.Worker{})}
			time.Sleep(3 * ttl)
		}
		time.Sleep(2 * ttl)
		n := counts(all...)
		if n[0]+n[1] < 26 {
			t.Errorf("after crashes of all, %v of 30 have an owner: want all but 4 at least", n)
		}
	})
}

// In a space of few slices that all die, again and again, as they do when all workers crash for another reason, none is quarantined: the
// crashes end, and all are given out at once.
func TestAFleetThatCrashesIsNoKeyOfDeath(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(4)}
		all := []*process{w.join(space, shard.Worker{}), w.join(space, shard.Worker{})}
		for range 8 {
			time.Sleep(ttl / 2)
			for _, p := range all {
				p.outage.Start()
			}
			all = []*process{w.join(space, shard.Worker{}), w.join(space, shard.Worker{})}
			time.Sleep(2 * ttl)
		}
		for _, e := range entries(t, w.st, "s") {
			if e.Owner == "" || !e.Quarantined.IsZero() {
				t.Errorf("it waits though its workers are well: %+v", e)
			}
		}
	})
}

// Rare requests come by chance: what chance does to loads moves nothing. And when none come any more, all stays where it is.
func TestChanceMovesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Hashed: true, Slices: 32}
		all := []*process{w.join(space, shard.Worker{}), w.join(space, shard.Worker{}), w.join(space, shard.Worker{})}
		settle()
		rng := rand.New(rand.NewPCG(5, 6))
		reports := func(lasts time.Duration) {
			for range lasts / (50 * time.Millisecond) {
				if rng.IntN(2) == 0 { // 10 a second, each of a key of its own
					key := fmt.Sprint("key-", rng.Uint64())
					for _, p := range all {
						p.Report(key, 1)
					}
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
		reports(2 * ttl)
		before := tokens(entries(t, w.st, "s"))
		reports(20 * ttl)
		if after := tokens(entries(t, w.st, "s")); after != before {
			t.Errorf("slices move by chance: before\n%s, after\n%s", before, after)
		}
		time.Sleep(40 * ttl)
		if after := tokens(entries(t, w.st, "s")); after != before {
			t.Errorf("slices move when nothing is reported: before\n%s, after\n%s", before, after)
		}
		all = append(all, w.join(space, shard.Worker{}))
		all[0].outage.Start()
		time.Sleep(4 * ttl)
		for i, n := range counts(all[1:]...) {
			if n < 7 || n > 20 {
				t.Errorf("of 32 slices without any load, worker %d of 3 has %d", i+1, n)
			}
		}
	})
}

// What is sampled is right on average, however fast reports come, and a busy key is found.
func TestReportIsSampled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.join(shard.Space{Name: "s", Hashed: true, Slices: 4}, shard.Worker{})
		settle()
		rng := rand.New(rand.NewPCG(1, 2))
		for range 4 * ttl / time.Second {
			for range 40_000 { // a second, of which 4,000 are of one key
				key := fmt.Sprint("key-", rng.IntN(10))
				a.Report(key, 1)
			}
			time.Sleep(time.Second)
		}
		total, hot, err := loadIn(t, w, a.session(t, w))
		if err != nil || math.Abs(total-40_000) > 2_000 {
			t.Errorf("measured %v, want 40,000 a second: %v", total, err)
		}
		for h, n := range hot {
			if math.Abs(n-4_000) > 1_000 {
				t.Errorf("key %x: %v, want about 4,000 a second", h, n)
			}
		}
		if len(hot) == 0 {
			t.Error("no busy key is found")
		}
		for _, n := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
			a.Report("key-1", n)
		}
		a.Report("key-1", 1)
	})
}

// loadIn returns what the record of a session carries: the load of all slices, and that of busy keys.
func loadIn(t *testing.T, w *world, session string) (total float64, hot map[uint64]float64, err error) {
	t.Helper()
	rec, err := w.st.Get(t.Context(), session)
	if err != nil {
		return 0, nil, err
	}
	d, ok := shardmap.ParseDigest(rec.Info[shardmap.Carried])
	if !ok {
		return 0, nil, fmt.Errorf("no digest: %v", rec.Info)
	}
	for _, s := range d.Slices {
		total += s.Load
	}
	hot = map[uint64]float64{}
	for _, h := range d.Hot {
		hot[h.Hash] = h.Load
	}
	return total, hot, nil
}
