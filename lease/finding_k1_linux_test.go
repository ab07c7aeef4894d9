package lease_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// tries are processes of one machine that look at "job" once each, on a store that vouches for no age.
type tries struct {
	t   *testing.T
	db  *memory.DB
	clk *clocktest.Clock
	dir string
}

func inTries(t *testing.T, f func(t *testing.T, w tries)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { f(t, tries{t, memory.NewDB(memory.Options{}), clocktest.New(0), dir}) })
}

// try is one process: how its try ends, and what the book says after it.
func (w tries) try() (*lease.Lease, error) {
	w.t.Helper()
	book := sightings.New(w.dir, "store")
	st := faulty.Ageless(w.db.Open())
	m, err := lease.NewManager(st, lease.Options{Clock: w.clk, TTL: ttl, Sightings: book})
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := m.TryAcquire(w.t.Context(), "job")
	if err := errors.Join(book.Save(), m.Close(), st.Close()); err != nil {
		w.t.Fatal(err)
	}
	return l, err
}

func (w tries) refused(when string) {
	w.t.Helper()
	if l, err := w.try(); !errors.Is(err, lease.ErrHeld) {
		w.t.Fatalf("%s: %v, %v, want it held", when, l, err)
	}
}

// write changes the record as its holder, or an operator, would.
func (w tries) write(change func(*store.Record)) {
	w.t.Helper()
	err := store.Update(w.t.Context(), w.db.Open(), "job", func(rec *store.Record) (bool, error) {
		change(rec)
		return true, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func alive(nonce string) func(*store.Record) {
	return func(rec *store.Record) {
		rec.Owner, rec.Token, rec.TTL, rec.Nonce = "holder", 5, ttl, nonce
		rec.Past = []store.Term{{Owner: "before", Token: 4, Why: "released"}}
	}
}

// Processes that each look once take a dead holder's name a TTL after the first of them saw its record, and not before; what else the
// record says stays.
func TestFinding_K1_ProcessesRememberWhatTheySaw(t *testing.T) {
	inTries(t, func(t *testing.T, w tries) {
		w.write(alive("n1"))
		time.Sleep(time.Hour) // nobody looks
		w.refused("the first look")
		time.Sleep(ttl - time.Second)
		w.refused("less than a TTL later")
		time.Sleep(time.Second)
		l, err := w.try()
		if err != nil || l.Token() <= 5 {
			t.Fatalf("a TTL after the first look: %v", err)
		}
		rec, err := w.db.Open().Get(t.Context(), "job")
		if err != nil || len(rec.Past) != 2 || rec.Past[0].Owner != "holder" || rec.Past[0].Why != "expired" || rec.Past[1].Owner != "before" {
			t.Errorf("the record: %+v, %v", rec, err)
		}
	})
}

// A sign of life between two looks, however many TTLs apart they are, is one.
func TestFinding_K1_ALiveHolderKeepsItsName(t *testing.T) {
	inTries(t, func(t *testing.T, w tries) {
		for _, nonce := range []string{"n1", "n2", "n3", "n4"} {
			w.write(alive(nonce))
			w.refused(nonce)
			time.Sleep(10 * ttl)
		}
	})
}

// The holder's session keeps the name. It is observed, too, and closed before the name is taken.
func TestFinding_K1_ASessionIsRemembered(t *testing.T) {
	inTries(t, func(t *testing.T, w tries) {
		const session = ".session/holder/1"
		w.write(alive("n1"))
		w.write(func(rec *store.Record) { rec.Session = session })
		renew := func(nonce string) {
			err := store.Update(t.Context(), w.db.Open(), session, func(rec *store.Record) (bool, error) {
				rec.Owner, rec.Token, rec.TTL, rec.Nonce = "holder", 1, ttl, nonce
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		renew("s1")
		w.refused("the first look")
		time.Sleep(5 * ttl)
		renew("s2")
		w.refused("the session lives")
		time.Sleep(ttl)
		if _, err := w.try(); err != nil {
			t.Fatalf("a TTL after its last renewal was seen: %v", err)
		}
		if rec, err := w.db.Open().Get(t.Context(), session); err != nil || rec.Owner != "" {
			t.Errorf("the session was not closed: %+v, %v", rec, err)
		}
	})
}

// The session is closed between two looks: the name is taken, and what else its record says stays.
func TestFinding_K1_AClosedSession(t *testing.T) {
	inTries(t, func(t *testing.T, w tries) {
		const session = ".session/holder/1"
		w.write(alive("n1"))
		w.write(func(rec *store.Record) { rec.Session = session })
		for _, owner := range []string{"holder", ""} {
			err := store.Update(t.Context(), w.db.Open(), session, func(rec *store.Record) (bool, error) {
				rec.Owner, rec.Token, rec.TTL, rec.Nonce = owner, 1, ttl, "s"+owner
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if owner != "" {
				w.refused("the first look")
			}
		}
		if _, err := w.try(); err != nil {
			t.Fatal(err)
		}
		if rec, err := w.db.Open().Get(t.Context(), "job"); err != nil || len(rec.Past) != 2 {
			t.Errorf("the record: %+v, %v", rec, err)
		}
	})
}

// A store that was restored gives a version to another write: that is no reason to take the name from who made it.
func TestFinding_K1_ARestoredStoresVersionsAreOthers(t *testing.T) {
	inTries(t, func(t *testing.T, w tries) {
		w.write(alive("n1"))
		w.refused("the first look")
		w.db = memory.NewDB(memory.Options{})
		w.write(alive("n2"))
		time.Sleep(10 * ttl)
		w.refused("of the restored store")
	})
}
