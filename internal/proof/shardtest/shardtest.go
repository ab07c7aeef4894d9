// Package shardtest is what the tests of the transports to sharded workers have in common: a space
// on a store in memory, its workers, and a guard of what they accept.
package shardtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// Space is the name of the space, and TTL that of its workers.
const (
	Space = "s"
	TTL   = 5 * time.Second
)

// Names are those of the space.
var Names = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"}

// World is a space, and what its workers were asked and have accepted.
type World struct {
	T  *testing.T
	St store.Store
	DB *memory.DB

	mu       sync.Mutex
	marks    map[string]fence.Mark // of keys
	accepted map[string]int        // by what was written
	hits     []string              // which worker was asked
}

// New returns a world that ends with the test.
func New(t *testing.T) *World {
	db := memory.NewDB(memory.Options{})
	w := &World{T: t, DB: db, St: db.Open(), marks: map[string]fence.Mark{}, accepted: map[string]int{}}
	t.Cleanup(func() {
		if err := w.St.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Worker is one of the space's.
type Worker struct {
	*shard.Owner
	Name string
}

// Join starts a worker. It ends with the test.
func (w *World) Join(name, address string) Worker {
	w.T.Helper()
	st := w.DB.Open()
	m, err := lease.NewManager(st, lease.Options{TTL: TTL})
	if err != nil {
		w.T.Fatal(err)
	}
	o, err := shard.Join(w.T.Context(), m, shard.Space{Name: Space, Names: Names}, shard.Worker{Name: name, Address: address, Strategy: Settled{}})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		if err := errors.Join(o.Close(), m.Close(), st.Close()); err != nil {
			w.T.Error(err)
		}
	})
	return Worker{o, name}
}

// Settled gives the first worker what nobody owns, and lets the rest stay where a test moved it.
type Settled struct{}

// Plan implements [shard.Strategy].
func (Settled) Plan(s *shard.State) (moves []shard.Move) {
	for i, sl := range s.Slices {
		for n, to := range s.Workers {
			if !to.Goes && (sl.Owner < 0 || s.Workers[sl.Owner].Goes) && sl.Next < 0 {
				moves = append(moves, shard.Move{Slice: i, To: n})
				break
			}
		}
	}
	return moves
}

// Hit takes down that a worker was asked.
func (w *World) Hit(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits = append(w.hits, name)
}

// Asked says which workers were asked, in order.
func (w *World) Asked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.hits, " ")
}

// Accept is what a worker's program does with what was written: the slice is checked, and a guard
// keeps a mark for each key. The error is that of the check.
func (w *World) Accept(s *shard.Slice, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := s.Check(); err != nil {
		return err
	}
	mark, err := w.marks[s.Name].Admit(s.Name, s.Sequencer().Holder, s.Token)
	if err != nil {
		w.T.Error(err)
	}
	w.marks[s.Name] = mark
	w.accepted[text]++
	return nil
}

// Count returns how often a text was accepted.
func (w *World) Count(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted[text]
}

// Accepted returns how often each text was accepted.
func (w *World) Accepted() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.accepted)
}

// WritesWhileMoved has four callers write to all keys, each by what caller returns for it, while
// the keys move one by one to a worker and back to the other: 30 times at the least, and until 100
// writes were accepted. It checks that what a caller was told is written was written once, by the
// owner, and nothing else was.
func (w *World) WritesWhileMoved(to, back Worker, caller func() (write func(key, text string) error)) {
	w.T.Helper()
	ctx, stop := context.WithCancel(w.T.Context())
	var callers sync.WaitGroup
	var mu sync.Mutex
	written := map[string]bool{}
	for i := range 4 {
		write := caller()
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				text := fmt.Sprint(i, "/", n)
				if err := write(Names[n%len(Names)], text); err != nil {
					w.T.Errorf("%s: %v", text, err)
					continue
				}
				mu.Lock()
				written[text] = true
				mu.Unlock()
			}
		})
	}
	enough := func(moves int) bool { // on a machine that is slow there are few writes to a move
		mu.Lock()
		defer mu.Unlock()
		return moves >= 30 && len(written) >= 100 || w.T.Failed()
	}
	n := 0
	for ; !enough(n); n++ {
		worker := []Worker{to, back}[n/len(Names)%2]
		key := Names[n%len(Names)]
		w.Move(key, worker)
		w.Owns(worker, key)
	}
	stop()
	callers.Wait()
	w.once(written)
	w.T.Logf("%d writes accepted, %d moves", len(written), n)
}

// once checks that each text of which a caller was told was accepted once, and no other: 100 of
// them at the least.
func (w *World) once(written map[string]bool) {
	w.T.Helper()
	accepted := w.Accepted()
	for text, n := range accepted {
		if n != 1 || !written[text] {
			w.T.Errorf("%s was accepted %d times; its caller was told so: %t", text, n, written[text])
		}
	}
	if len(written) != len(accepted) || len(written) < 100 {
		w.T.Errorf("callers were told of %d writes, and %d were accepted", len(written), len(accepted))
	}
}

// Router returns a router that ends with the test.
func (w *World) Router() *shard.Router {
	w.T.Helper()
	r, err := shard.NewRouter(w.T.Context(), w.St, Space, shard.RouterOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(r.Close)
	return r
}

// Until blocks until what says true.
func (w *World) Until(what string, ok func() bool) {
	w.T.Helper()
	clk := clock.System()
	for late := clk.Now().Add(20 * time.Second); !ok(); {
		if clk.Now() > late {
			w.T.Fatalf("not within 20 s: %s", what)
		}
		_ = clock.Sleep(w.T.Context(), clk, 5*time.Millisecond)
	}
}

// Owns blocks until a worker owns keys.
func (w *World) Owns(p Worker, keys ...string) {
	w.T.Helper()
	w.Until(fmt.Sprint(p.Name, " owns ", keys), func() bool {
		for _, k := range keys {
			if _, err := p.Check(k); err != nil {
				return false
			}
		}
		return true
	})
}

// Move asks for a key to be moved to a worker.
func (w *World) Move(key string, p Worker) {
	w.T.Helper()
	if err := shard.RequestMove(w.T.Context(), w.St, Space, key, p.Name); err != nil {
		w.T.Fatal(err)
	}
}
