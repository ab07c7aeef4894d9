package lock

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = leasetest.TTL

type world struct {
	*leasetest.World

	proofs *proofs // of deaths; nil on a store that has none
}

// inWorld runs f twice: on a store that vouches for the age of its records, and on one that doesn't.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	leasetest.RunBoth(t, func(t *testing.T, w *leasetest.World) { f(t, &world{World: w}) })
}

type process = leasetest.Process

func (w *world) process(plan faulty.Plan) *process {
	w.T.Helper()
	h, p := w.Host(leasetest.InTurn(plan)), &process{}
	st := store.Store(h.Net)
	if w.proofs != nil {
		st = proving{h.Net, w.proofs, p}
	}
	*p = *h.Process(st, lease.Options{})
	return p
}

// edit changes a record as an outsider does who gives it a nonce.
func (w *world) edit(key string, change func(rec *store.Record)) {
	w.T.Helper()
	w.Edit(key, func(rec *store.Record) {
		change(rec)
		rec.Nonce += "x"
	})
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
