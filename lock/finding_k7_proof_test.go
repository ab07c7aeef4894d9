package lock

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
)

// proofs say of which owners it is proven that their processes have ended.
type proofs struct {
	mu   sync.Mutex
	gone map[string]bool
	told chan struct{} // closed at the next death

	awaited map[string]map[string]bool // whose ends were waited for, by the owner that waited
}

func newProofs() *proofs {
	return &proofs{gone: map[string]bool{}, told: make(chan struct{}), awaited: map[string]map[string]bool{}}
}

func (p *proofs) kill(owners ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, owner := range owners {
		p.gone[owner] = true
	}
	close(p.told)
	p.told = make(chan struct{})
}

func (p *proofs) now() (gone map[string]bool, told chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.gone), p.told
}

func (p *proofs) awaits(by *process, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awaited[by.Manager().Holder()] == nil {
		p.awaited[by.Manager().Holder()] = map[string]bool{}
	}
	p.awaited[by.Manager().Holder()][key] = true
}

// proving is a store with proofs.
type proving struct {
	*faulty.Store
	proofs *proofs
	by     *process
}

var _ driver.Witness = proving{}

func (p proving) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := p.Store.Get(ctx, key)
	if gone, _ := p.proofs.now(); gone[rec.Owner] {
		rec.Age = store.AgeGone
	}
	return rec, err
}

func (p proving) PutOwn(ctx context.Context, rec store.Record) (store.Record, error) {
	return p.Put(ctx, rec)
}
func (p proving) Proof() []*os.File { return nil }

func (p proving) WaitHolder(ctx context.Context, key, version string) (store.Record, error) {
	p.proofs.awaits(p.by, key)
	for {
		_, told := p.proofs.now()
		rec, err := store.Load(ctx, p, key)
		if err != nil || rec.Version != version || rec.Age == store.AgeGone {
			return rec, err
		}
		waiting, end := context.WithCancel(ctx)
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			select {
			case <-told:
				end()
			case <-waiting.Done():
			}
		}()
		rec, err = p.Wait(waiting, key, version)
		end()
		<-heard
		if err == nil || ctx.Err() != nil || waiting.Err() == nil {
			return rec, err
		}
	}
}

// inProvenWorld is inWorld on a store that proves deaths, and vouches for no ages else.
func inProvenWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		w.proofs = newProofs()
		f(t, w)
	})
}

// kill ends processes, and proves it.
func (w *world) kill(all ...*process) {
	var owners []string
	for _, p := range all {
		p.Cut()
		owners = append(owners, p.Manager().Holder())
	}
	w.proofs.kill(owners...)
}

// passes has take begin to wait, ends processes after a while, and wants that take comes to its end at once, and not before.
func (w *world) passes(take func() (*Hold, error), after time.Duration, killed ...*process) {
	w.T.Helper()
	got := make(chan error, 1)
	go func() {
		_, err := take()
		got <- err
	}()
	time.Sleep(after)
	select {
	case err := <-got:
		w.T.Fatalf("before anyone was killed: %v", err)
	default:
	}
	w.kill(killed...)
	begun := time.Now()
	if err := <-got; err != nil {
		w.T.Fatal(err)
	}
	if took := time.Since(begun); took > time.Second {
		w.T.Errorf("it waited for %v after the others were killed", took)
	}
}

// Where the store proves a death, those behind the dead pass them at once: whoever is last in a line of dead, who waits for several
// holders of which one dies, and who waits for a name that one holds alone.
func TestFinding_K7_TheDeadArePassedAtOnce(t *testing.T) {
	const after = ttl*4/3 + ttl/7 // between two looks
	t.Run("a line", func(t *testing.T) {
		inProvenWorld(t, func(t *testing.T, w *world) {
			holder, waiter, last := w.process(nil), w.process(nil), w.process(nil)
			h, err := semaphore(t, holder.Session, 1, true).Acquire(t.Context(), 1)
			must(t, h, err)
			go func() { _, _ = semaphore(t, waiter.Session, 1, true).Acquire(t.Context(), 1) }()
			time.Sleep(time.Second)
			w.passes(func() (*Hold, error) { return semaphore(t, last.Session, 1, true).Acquire(t.Context(), 1) }, after, holder, waiter)
		})
	})
	t.Run("one of two holders", func(t *testing.T) {
		for second := range 2 {
			inProvenWorld(t, func(t *testing.T, w *world) {
				var holders []*process
				for range 2 {
					p := w.process(nil)
					h, err := semaphore(t, p.Session, 2, true).Acquire(t.Context(), 1)
					must(t, h, err)
					holders = append(holders, p)
				}
				last := w.process(nil)
				w.passes(func() (*Hold, error) { return semaphore(t, last.Session, 2, true).Acquire(t.Context(), 1) }, after, holders[second])
			})
		}
	})
	t.Run("alone", func(t *testing.T) {
		for _, session := range []bool{false, true} {
			inProvenWorld(t, func(t *testing.T, w *world) {
				holder, reader := w.process(nil), w.process(nil)
				acquire := holder.Manager().Acquire
				if session {
					acquire = holder.Session.Acquire
				}
				_, err := acquire(t.Context(), "x")
				rw, made := NewRWMutex(reader.Session, "x")
				if err := errors.Join(err, made); err != nil {
					t.Fatal(err)
				}
				w.passes(func() (*Hold, error) { return rw.BesideLeases().RLock(t.Context()) }, after, holder)
			})
		}
	})
}

// Who stands in a line waits for the end of the one before it alone, and hears of a release as before.
func TestFinding_K7_OneEndIsWaitedForInALine(t *testing.T) {
	inProvenWorld(t, func(t *testing.T, w *world) {
		var all []*process
		granted := make(chan *Hold, 4)
		for range 4 {
			p := w.process(nil)
			all = append(all, p)
			go func() {
				h, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1)
				if err != nil {
					t.Error(err)
				}
				granted <- h
			}()
			time.Sleep(time.Second)
		}
		time.Sleep(2*ttl + ttl/7)
		w.proofs.mu.Lock()
		for i, p := range all[1:] {
			if got, want := w.proofs.awaited[p.Manager().Holder()], map[string]bool{all[i].Key(): true}; !maps.Equal(got, want) {
				t.Errorf("place %d waits for the ends of %v, want %v", i+1, got, want)
			}
		}
		w.proofs.mu.Unlock()
		for range 3 {
			if err := (<-granted).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			granted <- <-granted
			if took := time.Since(begun); took > time.Second {
				t.Errorf("the next one heard of a release after %v", took)
			}
		}
	})
}
