package engines

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// outsiderRounds is in how many rounds an outsider meddles with each engine: LEASEHOLD_OUTSIDER_ROUNDS=200 is the whole proof.
func outsiderRounds(t testing.TB) int {
	text := os.Getenv("LEASEHOLD_OUTSIDER_ROUNDS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LEASEHOLD_OUTSIDER_ROUNDS=%s: want a number of rounds", text)
	}
	return n
}

// meddler is an outsider with a handle of its own on the records.
type meddler struct {
	t     testing.TB
	st    store.Store
	erase func(name string) error
}

// meddle does the n-th thing to a name's record; old is the one of a term before.
func (o *meddler) meddle(n int, name string, old store.Record) string {
	o.t.Helper()
	change := func(f func(*store.Record)) {
		rec, err := o.st.Get(o.t.Context(), name)
		must(o.t, err)
		f(&rec)
		_, err = o.st.Put(o.t.Context(), rec)
		must(o.t, err)
	}
	switch n % 4 {
	case 0:
		must(o.t, o.erase(name))
		return "deletes it"
	case 1:
		change(func(r *store.Record) { r.Owner = "somebody/else" })
		return "edits its holder"
	case 2:
		change(func(r *store.Record) { version := r.Version; *r = old; r.Version = version })
		return "restores an earlier term"
	default:
		change(func(r *store.Record) { r.Owner, r.Session, r.TTL, r.Nonce = "", "", 0, "outsider" })
		return "frees it"
	}
}

// TestFinding_S16_OutsidersEndTerms has an outsider delete, edit, restore and free the records of leases that sessions keep, on each
// engine, one of the library's and one that a server keeps for a holder elsewhere: the holder notices, says why, and never relies on it beside the next one for longer than TTL/3. What the outsider does to
// nothing but the version ends no term.
func TestFinding_S16_OutsidersEndTerms(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		st := openFile(t)
		stalltest.Run(t, func(try testing.TB) {
			tryOutsiders(try, t, func(testing.TB) store.Store { return st }, nil)
		})
	})
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			srv := k.start(t)
			inst := k.prepare(t, srv)
			stalltest.Run(t, func(try testing.TB) {
				var erase func(name string) error
				if e := k.erase; e != nil {
					erase = func(name string) error { return e(try, srv, name) }
				}
				tryOutsiders(try, t, func(t testing.TB) store.Store { return inst.open(t, srv.Addr) }, erase)
			})
		})
	}
}

const outsiderTTL = 6 * time.Second

// tryOutsiders fails outer, at once, for what no stall of the machine explains.
func tryOutsiders(t, outer testing.TB, open func(t testing.TB) store.Store, erase func(name string) error) {
	o := &meddler{t: t, st: open(t), erase: erase}
	if erase == nil {
		o.erase = func(name string) error {
			rec, err := o.st.Get(t.Context(), name)
			if err != nil {
				return err
			}
			return o.st.Delete(t.Context(), name, rec.Version)
		}
	}
	m, err := lease.NewManager(open(t), lease.Options{TTL: outsiderTTL})
	must(t, err)
	defer m.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(outsiderRounds(t))*time.Minute)
	defer cancel()
	s, err := m.OpenSession(ctx)
	must(t, err)
	calm, err := s.Acquire(ctx, "outsider-calm")
	must(t, err)
	away := serveElsewhere(ctx, t, open(t))
	defer away.close()
	var worst, worstServed time.Duration
	for n := range outsiderRounds(t) {
		name := fmt.Sprintf("outsider-%d-%d", calm.Token(), n)
		before, err := s.Acquire(ctx, name)
		must(t, err)
		old, err := o.st.Get(ctx, name)
		must(t, err)
		must(t, before.Release(ctx))
		served := away.acquire(ctx, fmt.Sprintf("outsider-served-%d-%d", calm.Token(), n))
		l, err := s.Acquire(ctx, name)
		must(t, err)
		time.Sleep(rand.N(outsiderTTL / 4)) // anywhere between two looks

		touched, err := o.st.Get(ctx, "outsider-calm")
		must(t, err)
		_, err = o.st.Put(ctx, touched)
		must(t, err)
		what := o.meddle(n, name, old)
		done := m.Clock().Now()
		oldServed := served
		oldServed.Token, oldServed.Nonce = served.Token-1, "of a term before"
		o.meddle(n, served.Key, oldServed)
		doneServed := m.Clock().Now()
		select {
		case <-l.Context().Done():
		case <-ctx.Done():
			t.Fatalf("an outsider %s: the holder has not noticed", what)
		}
		took := m.Clock().Now().Sub(done)
		worst = max(worst, took)
		var lost *lease.LostError
		if err := l.Check(); !errors.As(err, &lost) || lost.Cause != lease.CauseTaken || lost.Err == nil {
			outer.Errorf("an outsider %s: %v, want it taken, and why", what, err)
		}
		nextTerm(ctx, t, outer, o, name, l.Token())
		worstServed = max(worstServed, away.hears(ctx, served, what).Sub(doneServed))
		nextTerm(ctx, t, outer, o, served.Key, served.Token)
	}
	t.Logf("%d rounds: noticed %v later at most, and elsewhere %v, of a TTL of %v", outsiderRounds(t), worst, worstServed, outsiderTTL)
	// What is measured contains that the test is woken.
	if limit := outsiderTTL/3 + time.Second; max(worst, worstServed) > limit {
		stalltest.Over(t, max(worst, worstServed)-limit, "noticed %v later, and elsewhere %v, want %v at most", worst, worstServed, limit)
	}
	must(t, calm.Check())
	must(t, s.Check())
}

// nextTerm has the name had again after what the outsider did, once that shows nobody as its holder, under a higher token.
func nextTerm(ctx context.Context, t, outer testing.TB, o *meddler, name string, before fence.Token) {
	t.Helper()
	rec, err := store.Load(ctx, o.st, name)
	must(t, err)
	if rec.Owner != "" {
		return // it is another's now, to everybody
	}
	m, err := lease.NewManager(o.st, lease.Options{TTL: outsiderTTL})
	must(t, err)
	defer m.Close()
	next, err := m.TryAcquire(ctx, name)
	must(t, err)
	if next.Token() <= before {
		outer.Errorf("%s: token %d after %d", name, next.Token(), before)
	}
	must(t, next.Release(ctx))
}

// elsewhere is a holder that has nothing but a server, and a session there, which it renews every TTL/3.
type elsewhere struct {
	t    testing.TB
	reg  *lessor.Registry
	rec  store.Record
	stop context.CancelFunc
	done chan struct{}
	told chan map[string]lessor.Loss // what each renewal said
}

func serveElsewhere(ctx context.Context, t testing.TB, st store.Store) *elsewhere {
	t.Helper()
	e := &elsewhere{t: t, reg: lessor.New(st, lessor.Options{}), done: make(chan struct{}), told: make(chan map[string]lessor.Loss, 1)}
	g, err := e.reg.OpenSession(ctx, "elsewhere", outsiderTTL, nil)
	must(t, err)
	e.rec = g.Record
	ctx, e.stop = context.WithCancel(ctx)
	go e.renew(ctx)
	return e
}

func (e *elsewhere) renew(ctx context.Context) {
	defer close(e.done)
	keep := func(notice []byte) []byte { return notice }
	for clock.Sleep(ctx, clock.System(), outsiderTTL/3) == nil {
		g, err := e.reg.RenewSession(ctx, e.rec.Key, e.rec.Owner, e.rec.Token, 0, nil, keep, nil)
		if err != nil && ctx.Err() == nil {
			e.t.Errorf("a session elsewhere: %v", err)
			return
		}
		select {
		case <-e.told: // the last one that was not read
		default:
		}
		e.told <- g.Lost
	}
}

func (e *elsewhere) acquire(ctx context.Context, name string) store.Record {
	e.t.Helper()
	g, err := e.reg.Acquire(ctx, lessor.Request{Key: name, Owner: e.rec.Owner, Session: e.rec.Key, TTL: outsiderTTL})
	must(e.t, err)
	return g.Record
}

// hears returns when it has heard that a lease is lost, and lets go of that.
func (e *elsewhere) hears(ctx context.Context, rec store.Record, what string) clock.Instant {
	e.t.Helper()
	for {
		select {
		case lost := <-e.told:
			for name := range lost {
				if name != rec.Key {
					e.t.Errorf("%s is lost, too: %v", name, lost[name].Err)
				}
			}
			loss, ok := lost[rec.Key]
			if !ok {
				continue
			}
			at := clock.System().Now()
			if loss.Token != rec.Token || loss.Cause != lease.CauseTaken || loss.Err == nil {
				e.t.Errorf("an outsider %s: %+v, want it taken, and why", what, loss)
			}
			if _, err := e.reg.Release(ctx, rec.Key, rec.Owner, rec.Token, "lost", nil); !errors.Is(err, fence.ErrStale) {
				e.t.Errorf("released after an outsider %s: %v", what, err)
			}
			return at
		case <-e.done:
			e.t.Fatalf("an outsider %s: the holder elsewhere has heard nothing", what)
		}
	}
}

func (e *elsewhere) close() {
	e.stop()
	<-e.done
	_ = e.reg.Close()
}
