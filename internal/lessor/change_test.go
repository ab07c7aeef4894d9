package lessor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/proof/ctxtest"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// Two changes of one name are made one after the other, also when nothing else is asked of it.
func TestChangesOfANameAreMadeInTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		net.SetPlan(leasetest.Once(faulty.Fault{Delay: time.Second}, leasetest.ByOwner("a")))
		done, before := make(chan error, 2), net.Count(faulty.Put)
		for range 2 {
			go func() { done <- second(r.Renew(context.Background(), "job", "a", rec.Token, 0, nil)) }()
			synctest.Wait()
		}
		if n := net.Count(faulty.Put) - before; n != 1 {
			t.Errorf("%d changes are being made at once", n)
		}
		if err := errors.Join(<-done, <-done); err != nil || w.Writes() != 3 {
			t.Errorf("%v, after %d writes", err, w.Writes())
		}
	})
}

// Closing ends a change that is under way, and one that is to be made after it: both have an error, and neither is made.
func TestCloseEndsChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		q := send(r, wants("b", time.Hour))
		net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- second(r.Renew(context.Background(), "job", "a", rec.Token, 0, nil)) }()
			synctest.Wait()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-done; err == nil {
				t.Error("a change of a registry that was closed is said to be made")
			}
		}
		if <-q.done; !errors.Is(q.err, ErrClosed) || w.Writes() != 1 {
			t.Errorf("who waited: %v; %d writes", q.err, w.Writes())
		}
	})
}

// A change that the store doesn't answer is given up when the time of its caller is over, with an unknown outcome. One whose caller has
// gone before is not.
func TestAChangeIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Kind == faulty.Put} })
		const most = ttl / 10
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		begun := time.Now()
		err := second(r.Renew(ctx, "job", "a", rec.Token, 0, nil))
		if took := time.Since(begun); took != most || !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%v after %v, want an unknown outcome after %v", err, took, most)
		}
		net.SetPlan(leasetest.Once(faulty.Fault{Delay: most}, leasetest.ByOwner("a")))
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(most/2, leave)
		if err := second(r.Renew(ctx, "job", "a", rec.Token, 0, nil)); err != nil {
			t.Errorf("whose caller has gone: %v", err)
		}
	})
}

// The same for a change that was begun after another one.
func TestALaterChangeIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		net.SetPlan(leasetest.Once(faulty.Fault{Delay: time.Second}, leasetest.ByOwner("a")))
		first := make(chan error, 1)
		go func() { first <- second(r.Renew(context.Background(), "job", "a", rec.Token, 0, nil)) }()
		synctest.Wait()
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Kind == faulty.Put} })
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		begun := time.Now()
		err := second(r.Renew(ctx, "job", "a", rec.Token, 0, nil))
		if took := time.Since(begun); took != 2*time.Second || !errors.Is(err, store.ErrUnknownOutcome) || <-first != nil {
			t.Errorf("%v after %v, want an unknown outcome after 2s", err, took)
		}
	})
}

// A change whose caller's time is over before its turn comes is not made, and the caller hears so.
func TestAChangeIsGivenUpBeforeItsTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		net.SetPlan(leasetest.Once(faulty.Fault{Delay: 2 * time.Second}, leasetest.ByOwner("a")))
		first := make(chan error, 1)
		go func() { first <- second(r.Renew(context.Background(), "job", "a", rec.Token, 0, nil)) }()
		synctest.Wait()
		before := net.Count(faulty.Put)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := second(r.Release(ctx, "job", "a", rec.Token, "released", nil))
		if took := time.Since(begun); took != time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%v after %v, want the end of its time after 1s, and no doubt", err, took)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if after := net.Count(faulty.Put); after != before {
			t.Errorf("%d writes, %d before: the change was made", after, before)
		}
	})
}

// A renewal for a holder elsewhere that gets no answer is sent once more, beside the first, long before it is given up.
func TestAChangeWithoutAnAnswerIsSentAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		before := net.Count(faulty.Put)
		net.SetPlan(leasetest.Once(faulty.Fault{Drop: true}, leasetest.ByOwner("a")))
		begun := time.Now()
		err := second(r.Renew(t.Context(), "job", "a", rec.Token, 0, nil))
		if took, sent := time.Since(begun), net.Count(faulty.Put)-before; err != nil || took.Round(time.Millisecond) != attempt.Round(time.Millisecond) || sent != 2 {
			t.Errorf("%v after %v and %d copies, want success after %v and 2", err, took, sent, attempt)
		}
	})
}

// A registry that lives for months keeps nothing of the changes that it has made.
func TestAChangeLeavesNoContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		rec := granted(t, r, wants("a", 0))
		parent := ctxtest.New(r.ctx)
		r.ctx = parent
		synctest.Wait()
		before := parent.Kept()
		for range 3 {
			if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if after := parent.Kept(); after > before {
			t.Errorf("%d contexts are kept, %d before", after, before)
		}
	})
}

// slow is a store that does what it was asked, whether or not its caller still waits.
type slow struct{ store.Store }

func (s slow) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	time.Sleep(time.Second)
	return s.Store.Put(context.WithoutCancel(ctx), rec)
}

// Close returns when nothing is under way any more, and then the store is asked for nothing.
func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		net := faulty.Wrap(slow{w.DB.Open()}, nil)
		r := New(net, Options{Clock: w.Clk})
		q := send(r, wants("a", time.Hour))
		begun := time.Now()
		if err := r.Close(); err != nil || time.Since(begun) != time.Second {
			t.Errorf("closed after %v, %v", time.Since(begun), err)
		}
		<-q.done
		asked := func() int { return net.Count(faulty.Put) + net.Count(faulty.Get) }
		before := asked()
		for _, err := range []error{
			second(r.Acquire(t.Context(), wants("b", 0))), second(r.Renew(t.Context(), "job", "a", 1, 0, nil)),
			second(r.Release(t.Context(), "job", "a", 1, "", nil)), r.Close(),
		} {
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		if asked() != before || len(r.names) != 1 || r.names["job"].running && r.names["job"].todo != nil {
			t.Errorf("%d requests of a registry that is closed", asked()-before)
		}
		_ = net.Close()
	})
}

// A release that the store refuses for certain grants nothing to who is next.
func TestARefusedReleaseHasNoHeir(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, Request{Key: "job", Owner: "a", TTL: time.Hour})
		q := send(r, wants("b", time.Hour))
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if op.Kind == faulty.Put {
				f.Err = errDown
			}
			return f
		})
		if _, err := r.Release(t.Context(), "job", "a", rec.Token, "released", nil); !errors.Is(err, errDown) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("released: %v", err)
		}
		if q.over() || w.Get("job").Owner != "a" {
			t.Fatalf("granted %+v, %v; stored %+v", q.grant, q.err, w.Get("job"))
		}
		net.SetPlan(nil)
		released(t, r, rec)
		if <-q.done; q.err != nil || w.Get("job").Owner != "b" {
			t.Errorf("%v; stored %+v", q.err, w.Get("job"))
		}
	})
}

// A term that was ended elsewhere, and is another's by now, is not said to be released, and the other's stays as it is.
func TestReleaseOfWhatEndedElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		other, _ := w.registry()
		rec := granted(t, r, wants("a", 0))
		released(t, other, rec)
		for _, owner := range []string{"", "b"} {
			if owner != "" {
				granted(t, other, wants(owner, 0))
			}
			got, err := r.Release(t.Context(), "job", "a", rec.Token, "released", nil)
			if !errors.Is(err, fence.ErrStale) || got.Owner != owner || w.Get("job").Owner != owner {
				t.Errorf("released when %q has the name: %+v, %v", owner, got, err)
			}
		}
	})
}

// A store that has forgotten a name grants it under a lower token, and that term is renewed like any other.
func TestATermAfterTheStoreHasForgottenTheName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		rec := store.Record{Key: "job", Owner: "old", Token: fence.MaxToken - 9, TTL: ttl, Nonce: "n", Kind: store.KindLease}
		w.Put(rec)
		g, err := r.Renew(t.Context(), "job", "old", rec.Token, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.DB.Open().Delete(t.Context(), "job", g.Record.Version); err != nil {
			t.Fatal(err)
		}
		w.Forget("job")
		now := granted(t, r, wants("a", time.Minute))
		if now.Token >= rec.Token {
			t.Fatalf("token %d: the store has not forgotten %d", now.Token, rec.Token)
		}
		if _, err := r.Renew(t.Context(), "job", "a", now.Token, 0, nil); err != nil {
			t.Errorf("renewed: %v", err)
		}
		q := send(r, wants("b", time.Minute))
		released(t, r, now)
		<-q.done
		if _, err := r.Renew(t.Context(), "job", "b", q.grant.Record.Token, 0, nil); q.err != nil || err != nil {
			t.Errorf("the next term: %v, renewed: %v", q.err, err)
		}
	})
}

// A claim that nobody knows the outcome of, and a release that would make it needless and isn't known either: when the store answers
// again, who waits has the name soon, and doesn't wait for the end of a term that is its own.
func TestAnHeirsOwnClaimInDoubt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Ageless = true
		r, net := w.registry()
		rec := granted(t, r, wants("a", 0))
		b := wants("b", time.Hour)
		b.TTL = 10 * time.Minute
		q := send(r, b)
		var outage faulty.Outage
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			if leasetest.ByOwner("b")(op) && w.Get("job").Owner == "a" {
				outage.Start()
				return faulty.Fault{LoseReply: true}
			}
			return outage.Plan(nil)(op)
		})
		time.Sleep(2 * ttl) // a is silent
		if w.Get("job").Owner != "b" {
			t.Fatalf("stored %+v", w.Get("job"))
		}
		if _, err := r.Release(t.Context(), "job", "a", rec.Token, "released", nil); err == nil {
			t.Error("released without an answer")
		}
		outage.End()
		net.SetPlan(nil)
		begun := time.Now()
		if <-q.done; q.err != nil || time.Since(begun) > b.TTL/2 { // a read that was lost takes a third of it
			t.Errorf("granted after %v, %v", time.Since(begun), q.err)
		}
	})
}

// What a session was told stays on its record as far as it says when it is renewed.
func TestANoticeIsLeftToTheSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		s, err := r.OpenSession(t.Context(), "a", ttl, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := wants("a", 0)
		req.Session = s.Record.Key
		rec := granted(t, r, req)
		if _, err := drive.Break(t.Context(), w.DB.Open(), "job", drive.EndTerm{Token: rec.Token, By: "op"}); err != nil {
			t.Fatal(err)
		}
		for _, left := range []string{"kept", ""} {
			heard := ""
			g, err := r.RenewSession(t.Context(), s.Record.Key, "a", s.Record.Token, 0, Secret(s.Secret), func(notice []byte) []byte {
				if heard = string(notice); left == "" {
					return nil
				}
				return []byte(left)
			}, nil)
			if err != nil || heard == "" || string(g.Notice) != left || string(w.Get(s.Record.Key).Data) != left {
				t.Errorf("told %q, left %q: %+v, %v", heard, left, g, err)
			}
		}
	})
}

// A session that may not have been opened is not said to be.
func TestOpenSessionFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		for want, fault := range map[error]faulty.Fault{errDown: {Err: errDown}, store.ErrUnknownOutcome: {LoseReply: true}} {
			net.SetPlan(func(faulty.Op) faulty.Fault { return fault })
			if g, err := r.OpenSession(t.Context(), "a", ttl, nil); !errors.Is(err, want) || g.Secret != "" {
				t.Errorf("%+v, %v: want %v", g, err, want)
			}
		}
	})
}
