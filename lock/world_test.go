package lock

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// world is one database and the processes that use it, in virtual time.
type world struct {
	t       *testing.T
	db      *memory.DB
	ageless bool // the store vouches for no Age

	proofs *proofs // of deaths; nil on a store that has none
}

// inWorld runs f twice: on a store that vouches for the age of its records, and on one that doesn't.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	for _, ageless := range []bool{false, true} {
		t.Run(fmt.Sprintf("ageless=%t", ageless), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f(t, &world{t: t, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)}), ageless: ageless})
			})
		})
	}
}

// process is one, with a session.
type process struct {
	*lease.Session
	m   *lease.Manager
	net *faulty.Store
	clk *clocktest.Clock
	cut bool
	mu  sync.Mutex
}

func (w *world) process(plan faulty.Plan) *process {
	w.t.Helper()
	p := &process{clk: clocktest.New(0)}
	st := store.Store(w.db.Open())
	if w.ageless {
		st = faulty.Ageless(st)
	}
	p.net = faulty.Wrap(st, func(op faulty.Op) faulty.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.cut:
			return faulty.Fault{Drop: true}
		case plan != nil:
			return plan(op)
		}
		return faulty.Fault{}
	})
	st = p.net
	if w.proofs != nil {
		st = proving{p.net, w.proofs, p}
	}
	m, err := lease.NewManager(st, lease.Options{TTL: ttl, Clock: p.clk})
	if err != nil {
		w.t.Fatal(err)
	}
	p.m = m
	w.t.Cleanup(func() {
		if err := errors.Join(m.Close(), p.net.Close()); err != nil {
			w.t.Error(err)
		}
	})
	if p.Session, err = m.OpenSession(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// die cuts a process off from the store for good.
func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

func semaphore(t testing.TB, s *lease.Session, limit int, fair bool) *Semaphore {
	t.Helper()
	sem, err := NewSemaphore(s, "licences", SemaphoreOptions{Limit: limit, Fair: fair})
	if err != nil {
		t.Fatal(err)
	}
	return sem
}

func must(t testing.TB, h *Hold, err error) *Hold {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ledger sees what is held at the same time.
type ledger struct {
	t     testing.TB
	mu    sync.Mutex
	used  int
	limit int
	slots map[int]bool
	seen  map[fence.Token]bool
	grown []string
}

func (l *ledger) enter(h *Hold, weight int, who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used += weight
	l.grown = append(l.grown, who)
	if l.used > l.limit {
		l.t.Errorf("%d are held of %d", l.used, l.limit)
	}
	if l.slots == nil {
		l.slots = map[int]bool{}
	}
	if l.slots[h.Slot()] {
		l.t.Errorf("slot %d is held twice", h.Slot())
	}
	l.slots[h.Slot()] = true
	if l.seen == nil {
		l.seen = map[fence.Token]bool{}
	}
	if l.seen[h.Token()] {
		l.t.Errorf("token %d was granted twice", h.Token())
	}
	l.seen[h.Token()] = true
}

func (l *ledger) leave(h *Hold, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= weight
	delete(l.slots, h.Slot())
}
