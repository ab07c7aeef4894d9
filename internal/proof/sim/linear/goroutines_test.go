package linear_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/sim/linear"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// tally counts what came of the writes of a run, so that a test can tell that there was something to check.
type tally struct{ done, conflicts, missing, unknown atomic.Int64 }

func (c *tally) add(err error) {
	switch {
	case err == nil:
		c.done.Add(1)
	case errors.Is(err, store.ErrConflict):
		c.conflicts.Add(1)
	case errors.Is(err, store.ErrNotFound):
		c.missing.Add(1)
	case errors.Is(err, store.ErrUnknownOutcome):
		c.unknown.Add(1)
	}
}

// contend lets several clients, each with a connection of its own, write the same few records for a while, in virtual time.
func contend(t *testing.T, seed uint64, connect func(client int) store.Store, c *tally) *linear.History {
	t.Helper()
	var h linear.History
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 4 {
			st := h.Client(connect(i))
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for n := range 100 {
					c.add(one(rng, st, fmt.Sprintf("w%d.%d", i, n)))
					time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
				}
				if err := st.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
	return &h
}

// one reads a record and changes it, as a lease does: after an unknown outcome the same write is sent again, at times.
func one(rng *rand.Rand, st store.Store, nonce string) error {
	request := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(context.Background(), time.Duration(100+rng.IntN(900))*time.Millisecond)
	}
	key := []string{"a", "b"}[rng.IntN(2)]
	ctx, cancel := request()
	rec, err := store.Load(ctx, st, key)
	cancel()
	if err != nil {
		return err
	}
	if rng.IntN(5) == 0 { // now it is late for what was read
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
	}
	ctx, cancel = request()
	defer func() { cancel() }()
	if rec.Version != "" && rng.IntN(8) == 0 {
		return st.Delete(ctx, key, rec.Version)
	}
	rec.Nonce = nonce
	_, err = st.Put(ctx, rec)
	for range rng.IntN(3) {
		if !errors.Is(err, store.ErrUnknownOutcome) {
			break
		}
		cancel()
		ctx, cancel = request()
		_, err = st.Put(ctx, rec)
	}
	return err
}

func network(st store.Store, seed uint64) store.Store {
	plan := faulty.Random(seed, faulty.Rates{
		Delay: 0.5, ReplyDelay: 0.5, Refuse: 0.05, LoseReply: 0.1, ApplyLate: 0.1, ApplyTwice: 0.1, Silent: 0.1,
		MaxDelay: 300 * time.Millisecond,
	})
	return faulty.Wrap(st, func(op faulty.Op) faulty.Fault {
		f := plan(op)
		if op.Record.Version == "" {
			f.ApplyTwice = false // what it creates may be deleted before the second copy comes: then it is created twice
		}
		return f
	})
}

func TestGoroutines(t *testing.T) {
	var c tally
	for seed := range uint64(40) {
		var db *memory.DB
		h := contend(t, seed, func(client int) store.Store {
			if client == 0 {
				db = memory.NewDB(memory.Options{})
			}
			return network(db.Open(), seed*10+uint64(client))
		}, &c)
		if err := h.Check(time.Minute); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if h.Len() < 300 {
			t.Errorf("seed %d: only %d operations recorded", seed, h.Len())
		}
	}
	if c.done.Load() == 0 || c.conflicts.Load() == 0 || c.missing.Load() == 0 || c.unknown.Load() == 0 {
		t.Errorf("writes done %d, conflicts %d, not found %d, unknown %d: want some of each",
			c.done.Load(), c.conflicts.Load(), c.missing.Load(), c.unknown.Load())
	}
}

// What a client learns by Wait counts as heard, though no instant is promised for it.
func TestRecorderPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h linear.History
		db := memory.NewDB(memory.Options{})
		a, b := h.Client(db.Open()), h.Client(db.Open())
		if _, pushes := a.(store.Waiter); !pushes {
			t.Fatal("the recorder of a store that pushes doesn't")
		}
		type polled struct{ store.Store }
		if _, pushes := h.Client(polled{db.Open()}).(store.Waiter); pushes {
			t.Error("the recorder of a store that doesn't push does")
		}
		got := make(chan store.Record)
		go func() {
			rec, err := store.Wait(t.Context(), a, "k", "")
			if err != nil {
				t.Error(err)
			}
			got <- rec
		}()
		synctest.Wait()
		if _, err := b.Put(t.Context(), store.Record{Key: "k", Nonce: "n"}); err != nil {
			t.Fatal(err)
		}
		rec := <-got // a has never read it, and may replace it
		rec.Nonce = "m"
		if _, err := a.Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if err := h.Check(time.Minute); err != nil || h.Len() != 2 {
			t.Errorf("Check of %d operations: %v", h.Len(), err)
		}
	})
}

// broken is a store that breaks the contract now and then.
type broken struct {
	store.Store
	sometimes func() bool

	staleReads    bool // a read gives what this client read before
	unconditional bool // a write replaces whatever is there
	forgetful     bool // a write is acknowledged and not done
	oneSided      bool // a write of unknown outcome is reported as not done
	blind         bool // a conflict carries what the writer expected instead of what is there

	mu  sync.Mutex
	old map[string]store.Record
}

func (b *broken) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := b.Store.Get(ctx, key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.old[key]; ok && b.staleReads && b.sometimes() {
		return old, nil
	}
	if err == nil {
		b.old[key] = rec
	}
	return rec, err
}

func (b *broken) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if b.forgetful && b.sometimes() {
		rec.Version = "v" + rec.Nonce
		return rec, nil
	}
	got, err := b.Store.Put(ctx, rec)
	var conflict *store.ConflictError
	switch {
	case b.unconditional && errors.As(err, &conflict) && b.sometimes():
		rec.Version = conflict.Current.Version
		return b.Store.Put(ctx, rec)
	case b.oneSided && errors.Is(err, store.ErrUnknownOutcome):
		return got, faulty.ErrLost
	case b.blind && errors.As(err, &conflict) && rec.Version != "":
		return got, &store.ConflictError{Current: rec}
	}
	return got, err
}

// A store that is broken has to be found out, or the check proves nothing.
func TestBrokenStoresAreFound(t *testing.T) {
	for name, set := range map[string]func(*broken){
		"stale reads":                 func(b *broken) { b.staleReads = true },
		"unconditional writes":        func(b *broken) { b.unconditional = true },
		"writes that aren't done":     func(b *broken) { b.forgetful = true },
		"unknown told as not done":    func(b *broken) { b.oneSided = true },
		"conflicts with wrong record": func(b *broken) { b.blind = true },
	} {
		t.Run(name, func(t *testing.T) {
			const tries = 20
			for seed := range uint64(tries) {
				var db *memory.DB
				h := contend(t, seed, func(client int) store.Store {
					if client == 0 {
						db = memory.NewDB(memory.Options{})
					}
					rng := rand.New(rand.NewPCG(seed, 100+uint64(client)))
					var mu sync.Mutex
					b := &broken{Store: network(db.Open(), seed*10+uint64(client)), old: map[string]store.Record{}}
					b.sometimes = func() bool { mu.Lock(); defer mu.Unlock(); return rng.IntN(5) == 0 }
					set(b)
					return b
				}, &tally{})
				err := h.Check(time.Minute)
				if errors.Is(err, linear.ErrUnsettled) {
					t.Fatal(err)
				}
				if err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("not found in %d runs", tries)
		})
	}
}
