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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/internal/steady"
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

// erasers delete a record by the engine's own client, where that is a matter of a line.
var erasers = map[string]func(t testing.TB, srv *servers.Server, name string) error{
	"etcd": func(t testing.TB, srv *servers.Server, name string) error {
		_, err := etcdClient(t, srv.Addr).Delete(t.Context(), "engines/"+name)
		return err
	},
	"kubernetes": func(t testing.TB, srv *servers.Server, name string) error {
		return kubeClient(t, srv, srv.Addr).Leases(theNamespace(t, srv)).Delete(t.Context(), name, metav1.DeleteOptions{})
	},
	"postgres": func(t testing.TB, srv *servers.Server, name string) error {
		_, err := pgPool(t, srv, srv.Addr).Exec(t.Context(), "DELETE FROM engines WHERE key = $1", name)
		return err
	},
	"redis": func(t testing.TB, srv *servers.Server, name string) error {
		return redisClient(t, srv, srv.Addr).Del(t.Context(), "engines:"+name).Err()
	},
}

// meddler is an outsider with a handle of its own on the records.
type meddler struct {
	t     testing.TB
	st    store.Store
	erase func(name string) error
	old   store.Record // of a term before
}

// meddle does the n-th thing to a name's record.
func (o *meddler) meddle(n int, name string) string {
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
		change(func(r *store.Record) { version := r.Version; *r = o.old; r.Version = version })
		return "restores an earlier term"
	default:
		change(func(r *store.Record) { r.Owner, r.Session, r.TTL, r.Nonce = "", "", 0, "outsider" })
		return "frees it"
	}
}

// TestFinding_S16_OutsidersEndTerms has an outsider delete, edit, restore and free the record of a lease that a session keeps, on each
// engine: the holder notices, says why, and never relies on it beside the next one for longer than TTL/3. What the outsider does to
// nothing but the version ends no term.
func TestFinding_S16_OutsidersEndTerms(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		st := openFile(t)
		steady.Run(t, func(t testing.TB) {
			tryOutsiders(t, func(testing.TB) store.Store { return st }, nil)
		})
	})
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			srv := k.start(t)
			inst := k.prepare(t, srv)
			steady.Run(t, func(t testing.TB) {
				var erase func(name string) error
				if e := erasers[k.name]; e != nil {
					erase = func(name string) error { return e(t, srv, name) }
				}
				tryOutsiders(t, func(t testing.TB) store.Store { return inst.open(t, srv.Addr) }, erase)
			})
		})
	}
}

const outsiderTTL = 6 * time.Second

func tryOutsiders(t testing.TB, open func(t testing.TB) store.Store, erase func(name string) error) {
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
	var worst time.Duration
	for n := range outsiderRounds(t) {
		name := fmt.Sprintf("outsider-%d-%d", calm.Token(), n)
		before, err := s.Acquire(ctx, name)
		must(t, err)
		o.old, err = o.st.Get(ctx, name)
		must(t, err)
		must(t, before.Release(ctx))
		l, err := s.Acquire(ctx, name)
		must(t, err)
		time.Sleep(rand.N(outsiderTTL / 4)) // anywhere between two looks

		touched, err := o.st.Get(ctx, "outsider-calm")
		must(t, err)
		_, err = o.st.Put(ctx, touched)
		must(t, err)
		what := o.meddle(n, name)
		done := m.Clock().Now()
		select {
		case <-l.Context().Done():
		case <-ctx.Done():
			t.Fatalf("an outsider %s: the holder has not noticed", what)
		}
		took := m.Clock().Now().Sub(done)
		worst = max(worst, took)
		var lost *lease.LostError
		if err := l.Check(); !errors.As(err, &lost) || lost.Cause != lease.Taken || lost.Err == nil {
			t.Errorf("an outsider %s: %v, want it taken, and why", what, err)
		}
		nextTerm(ctx, t, o, name, l.Token())
	}
	t.Logf("%d rounds: noticed %v later at most, of a TTL of %v", outsiderRounds(t), worst, outsiderTTL)
	// What is measured contains that the test is woken.
	if limit := outsiderTTL/3 + time.Second; worst > limit {
		t.Errorf("noticed %v later, want %v at most", worst, limit)
	}
	must(t, calm.Check())
	must(t, s.Check())
}

// nextTerm has the name had again after what the outsider did, once that shows nobody as its holder, under a higher token.
func nextTerm(ctx context.Context, t testing.TB, o *meddler, name string, before fence.Token) {
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
		t.Errorf("%s: token %d after %d", name, next.Token(), before)
	}
	must(t, next.Release(ctx))
}
