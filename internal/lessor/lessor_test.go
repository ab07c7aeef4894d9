package lessor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestTerm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		g, err := r.Acquire(t.Context(), wants("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		if want := w.Clk.Now().Add(validity); g.ValidUntil != want {
			t.Errorf("valid until %v, want %v", g.ValidUntil, want)
		}
		time.Sleep(5 * time.Second)
		renewed, err := r.Renew(t.Context(), "job", "a", g.Record.Token, 0, nil)
		if want := w.Clk.Now().Add(validity); err != nil || renewed.ValidUntil != want || renewed.Record.Token != g.Record.Token {
			t.Errorf("renewed: %+v, %v; want it valid until %v", renewed, err, want)
		}
		if renewed, err = r.Renew(t.Context(), "job", "a", g.Record.Token, time.Minute, nil); err != nil || renewed.Record.TTL != time.Minute {
			t.Errorf("renewed for a minute: %+v, %v", renewed, err)
		}
		if w.Writes() != 3 {
			t.Errorf("%d writes for an acquire and two renewals", w.Writes())
		}
		released(t, r, g.Record)
		if rec := w.Get("job"); rec.Owner != "" || rec.Token != g.Record.Token || rec.Past[0].Why != "released" {
			t.Errorf("after the release: %+v", rec)
		}
		again := granted(t, r, wants("a", 0))
		if again.Token <= g.Record.Token {
			t.Errorf("the next term has token %d after %d", again.Token, g.Record.Token)
		}
		for what, err := range map[string]error{
			"renewing":            second(r.Renew(t.Context(), "job", "a", g.Record.Token, 0, nil)),
			"releasing":           second(r.Release(t.Context(), "job", "a", g.Record.Token, "", nil)),
			"renewing as another": second(r.Renew(t.Context(), "job", "b", again.Token, 0, nil)),
		} {
			if !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s what isn't the term: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A holder that falls silent holds until its TTL is over, and to the microsecond no longer; on a store that vouches for no age, as
// observed.
func TestSilentHolderExpires(t *testing.T) {
	for _, ageless := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			w.Ageless = ageless
			before, _ := w.registry()
			dead := granted(t, before, wants("dead", 0))
			begun := time.Now()
			r, _ := w.registry() // knows nothing of it
			time.Sleep(time.Second)
			q := send(r, wants("next", time.Minute))
			<-q.done
			want := ttl
			if ageless {
				want += time.Second
			}
			if got := q.at.Sub(begun); q.err != nil || got.Truncate(time.Microsecond) != want {
				t.Errorf("ageless %v: granted after %v, %v; want %v", ageless, got, q.err, want)
			}
			if q.grant.Record.Token <= dead.Token || q.grant.Record.Past[0].Why != "expired" {
				t.Errorf("granted %+v", q.grant.Record)
			}
		})
	}
}

// Pitfall P6: callers who never wait find an abandoned name all the same, since the registry remembers what it saw.
func TestPitfall_P6_TriesObserve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Ageless = true
		r, _ := w.registry()
		granted(t, r, wants("dead", 0))
		r, _ = w.registry()
		_, err := r.Acquire(t.Context(), wants("next", 0))
		heldBy(t, err, "dead")
		time.Sleep(ttl)
		granted(t, r, wants("next", 0))
	})
}

// First come, first served; who leaves is skipped, and who waits no longer than allowed.
func TestOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		owners := names(64)
		holder := granted(t, r, wants("holder", 0))
		queue := make([]*request, len(owners))
		for i, owner := range owners {
			queue[i] = send(r, wants(owner, time.Minute))
		}
		if got := r.Waiting("job"); len(got) != 64 || got[0].Owner != owners[0] || got[63].Owner != owners[63] {
			t.Fatalf("%d wait: %+v", len(got), got)
		}
		left := []int{0, 17, 63}
		for _, i := range left {
			queue[i].cancel()
			if !queue[i].over() || !errors.Is(queue[i].err, context.Canceled) {
				t.Errorf("%s left, and got %v", owners[i], queue[i].err)
			}
		}
		writes := w.Writes()
		for i := range owners {
			if slices.Contains(left, i) {
				continue
			}
			released(t, r, holder)
			if !queue[i].over() || queue[i].err != nil {
				t.Fatalf("%s is next, and has %v", owners[i], queue[i].err)
			}
			holder = queue[i].grant.Record
		}
		if n := w.Writes() - writes; n != 61 {
			t.Errorf("%d writes for 61 releases, each with a grant", n)
		}
		if len(r.Waiting("job")) != 0 {
			t.Errorf("left behind: %+v", r.Waiting("job"))
		}
	})
}

// A wait ends when it was to end, not a sweep later, and the place is given up.
func TestDeadlineIsExact(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		rec := granted(t, r, wants("holder", 0))
		begun := time.Now()
		q := send(r, wants("late", 2345*time.Millisecond))
		<-q.done
		if got := q.at.Sub(begun).Truncate(time.Microsecond); got != 2345*time.Millisecond {
			t.Errorf("the wait ended after %v", got)
		}
		heldBy(t, q.err, "holder")
		_, err := r.Acquire(t.Context(), wants("hasty", 0))
		heldBy(t, err, "holder")
		if got := time.Since(begun).Truncate(time.Microsecond); got != 2345*time.Millisecond {
			t.Errorf("one who doesn't wait had to wait until %v", got)
		}
		released(t, r, rec)
		if rec := w.Get("job"); rec.Owner != "" {
			t.Errorf("granted to one who had left: %+v", rec)
		}
	})
}

// Pitfall P11: whoever has gone is granted nothing: not while it waited, nor with the write on its way.
func TestPitfall_P11_WhoHasGoneIsGrantedNothing(t *testing.T) {
	for _, next := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			r, net := w.registry()
			rec := granted(t, r, wants("holder", 0))
			gone := send(r, wants("gone", time.Minute))
			var after *request
			if next {
				after = send(r, wants("after", time.Minute))
			}
			net.SetPlan(leasetest.Once(faulty.Fault{ReplyDelay: time.Second}, leasetest.ByOwner("gone")))
			done := make(chan struct{})
			go func() {
				defer close(done)
				released(t, r, rec)
			}()
			synctest.Wait()
			gone.cancel()
			<-done
			if !gone.over() || gone.err == nil {
				t.Errorf("the one who has gone has %+v, %v", gone.grant, gone.err)
			}
			switch rec := w.Get("job"); {
			case next && (!after.over() || rec.Owner != "after"):
				t.Errorf("the next one waits still: %+v", rec)
			case !next && rec.Owner != "":
				t.Errorf("it holds: %+v", rec)
			}
		})
	}
}

// The same, and its own claim of a free name is on its way.
func TestPitfall_P11_ClaimOfOneWhoHasGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(leasetest.Once(faulty.Fault{ReplyDelay: time.Second}, leasetest.ByOwner("gone")))
		begun := time.Now()
		gone := send(r, wants("gone", time.Minute))
		gone.cancel()
		after := send(r, wants("after", time.Minute))
		<-after.done
		if d := time.Since(begun); d > 2*time.Second {
			t.Errorf("the name was free again after %v", d)
		}
		if after.err != nil || w.Get("job").Owner != "after" || !gone.over() {
			t.Errorf("the next one: %v, %+v", after.err, w.Get("job"))
		}
	})
}

// The same, and it goes in the very moment in which it is granted the name.
func TestPitfall_P11_GrantToOneWhoIsGoing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		w.onQueue = func(_ string, waiting int) {
			if waiting == 0 {
				cancel()
			}
		}
		r, _ := w.registry()
		if g, err := r.Acquire(ctx, wants("going", time.Minute)); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", g, err)
		}
		synctest.Wait()
		if rec := w.Get("job"); rec.Owner != "" || rec.Token == 0 {
			t.Errorf("it holds: %+v", rec)
		}
	})
}

// A release's outcome is unknown, and the store doesn't answer for a while: whoever was to be next is, soon after.
func TestHeirOfAnUnknownRelease(t *testing.T) {
	for _, landed := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			r, net := w.registry()
			rec := granted(t, r, wants("a", 0))
			b := wants("b", time.Minute)
			b.TTL = 4 * ttl // not to be found dead before it is found
			q := send(r, b)
			var outage faulty.Outage
			net.SetPlan(func(op faulty.Op) faulty.Fault {
				if op.Kind != faulty.Put {
					return outage.Plan(nil)(op)
				}
				outage.Start()
				return faulty.Fault{LoseReply: landed, Drop: !landed}
			})
			if _, err := r.Release(t.Context(), "job", "a", rec.Token, "released", nil); !errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("released: %v", err)
			}
			net.SetPlan(nil)
			begun := time.Now()
			<-q.done
			// A read may have been lost in the outage, and is given up after TTL/3. By then a is dead, if the write did not land.
			if d := time.Since(begun); q.err != nil || d > b.TTL/3+time.Second {
				t.Errorf("landed %v: the next one after %v: %v", landed, d, q.err)
			}
		})
	}
}

// Replies are lost, of each write: the write is recognised, not repeated under another token, and never taken for not done.
func TestLostReplies(t *testing.T) {
	for _, fault := range []faulty.Fault{{LoseReply: true}, {ApplyLate: 50 * time.Millisecond}, {ApplyTwice: true, ApplyLate: 20 * time.Millisecond}} {
		inWorld(t, func(t *testing.T, w *world) {
			r, net := w.registry()
			net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("a")))
			rec := granted(t, r, wants("a", time.Minute))
			net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("a")))
			if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil); err != nil {
				t.Errorf("%+v: renewal: %v", fault, err)
			}
			q := send(r, wants("b", time.Minute))
			net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("b")))
			released(t, r, rec)
			<-q.done
			if q.err != nil || w.Get("job").Owner != "b" || w.Get("job").Token != q.grant.Record.Token {
				t.Errorf("%+v: the heir: %+v, %v", fault, q.grant, q.err)
			}
			net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("")))
			released(t, r, q.grant.Record)
			if rec := w.Get("job"); rec.Owner != "" {
				t.Errorf("%+v: not released: %+v", fault, rec)
			}
		})
	}
}

// A request that is sent again gets the term that was granted, or the place in the queue.
func TestRequestSentAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		first := Request{Key: "job", Owner: "a", TTL: ttl, ID: "k1"}
		rec := granted(t, r, first)
		time.Sleep(time.Second)
		again := first
		again.Owner = "a, anew"
		for range 2 {
			g, err := r.Acquire(t.Context(), again)
			if err != nil || g.Record.Token != rec.Token || g.Record.Owner != "a" || g.ValidUntil != w.Clk.Now().Add(validity) {
				t.Errorf("sent again: %+v, %v", g, err)
			}
			r, _ = w.registry() // and another server answers
		}
		waits := Request{Key: "job", Owner: "b", TTL: ttl, ID: "k2", Wait: time.Hour}
		b, c := send(r, waits), send(r, wants("c", time.Hour))
		b2 := send(r, waits)
		if !b.over() || !errors.Is(b.err, ErrReplaced) {
			t.Errorf("the first one: %v", b.err)
		}
		b3 := send(r, waits)
		if !b2.over() || !errors.Is(b2.err, ErrReplaced) {
			t.Fatalf("the second one: %v", b2.err)
		}
		released(t, r, w.Get("job"))
		if !b3.over() || b3.err != nil || c.over() {
			t.Errorf("it has lost its place: %v", b3.err)
		}
		released(t, r, b3.grant.Record)
		other := granted(t, r, Request{Key: "other", Owner: "a", TTL: ttl, ID: "k1"})
		released(t, r, other)
		if g, err := r.Acquire(t.Context(), Request{Key: "other", Owner: "a", TTL: ttl, ID: "k1"}); err != nil || g.Record.Token <= other.Token {
			t.Errorf("a term that was released is granted again as it was: %+v, %v", g, err)
		}
		c.cancel()
		<-c.done
	})
}

// An operator breaks a hold: the holder can't renew it, and whoever waits is next when it has let go.
func TestBroken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		rec := granted(t, r, wants("a", 0))
		q := send(r, wants("b", time.Hour))
		if _, err := drive.Break(t.Context(), w.DB.Open(), "job", drive.EndTerm{Token: rec.Token, By: "op"}); err != nil {
			t.Fatal(err)
		}
		var lost *lease.LostError
		if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil); !errors.As(err, &lost) || lost.Cause != lease.CauseBroken {
			t.Errorf("renewed: %v", err)
		}
		if q.over() {
			t.Fatalf("granted before the holder has let go: %+v", q.grant)
		}
		released(t, r, rec)
		if !q.over() || q.err != nil {
			t.Errorf("the next one: %v", q.err)
		}
	})
}

// The store is away: who doesn't wait is told so after a while, who waits gets the name when it is back.
func TestOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		var outage faulty.Outage
		net.SetPlan(outage.Plan(nil))
		outage.Start()
		begun := time.Now()
		waits := send(r, wants("a", time.Hour))
		hasty := wants("b", 0)
		hasty.Key = "other"
		_, err := r.Acquire(t.Context(), hasty)
		if err == nil || errors.Is(err, lease.ErrHeld) || time.Since(begun) > patience+time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		outage.End()
		<-waits.done
		if waits.err != nil {
			t.Error(waits.err)
		}
	})
}

func TestClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		rec := granted(t, r, wants("a", 0))
		q := send(r, wants("b", time.Hour))
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Error(err)
		}
		if !q.over() || !errors.Is(q.err, ErrClosed) {
			t.Errorf("who waited got %v", q.err)
		}
		if _, err := r.Acquire(t.Context(), wants("c", 0)); !errors.Is(err, ErrClosed) {
			t.Errorf("Acquire: %v", err)
		}
		if _, err := r.Renew(t.Context(), "job", "a", rec.Token, 0, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("Renew: %v", err)
		}
	})
}

func TestBadRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		for _, req := range []Request{
			{Owner: "a", TTL: ttl},
			{Key: ".session/x", Owner: "a", TTL: ttl},
			{Key: "job", TTL: ttl},
			{Key: "job", Owner: "a"},
			{Key: "job", Owner: "a", TTL: store.MaxTTL + 1},
			{Key: "job", Owner: "a", TTL: ttl, Wait: -1},
			{Key: "job", Owner: "a\x00", TTL: ttl},
		} {
			if _, err := r.Acquire(t.Context(), req); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%+v: %v", req, err)
			}
		}
		if len(r.names) > 0 { // nor did they wait for the store to refuse them
			t.Errorf("%d names were asked for", len(r.names))
		}
	})
}

// What is kept by a session is there as long as the session is, and goes with it.
func TestSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		s, err := r.OpenSession(t.Context(), "a", ttl, nil)
		if err != nil {
			t.Fatal(err)
		}
		req := wants("a", 0)
		req.Session = s.Record.Key
		g, err := r.Acquire(t.Context(), req)
		if err != nil || g.ValidUntil != clock.NoDeadline {
			t.Fatalf("%+v, %v", g, err)
		}
		q := send(r, wants("b", time.Hour))
		for range 10 {
			time.Sleep(5 * time.Second)
			if _, err := r.Renew(t.Context(), s.Record.Key, "a", s.Record.Token, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		if q.over() {
			t.Fatalf("taken from a session that lives: %+v", q.grant)
		}
		if _, err := r.Renew(t.Context(), "job", "a", g.Record.Token, 0, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("renewed by itself: %v", err)
		}
		begun := time.Now()
		<-q.done
		if got := q.at.Sub(begun); q.err != nil || got < ttl || got > ttl+ttl/3 {
			t.Errorf("granted %v after the session's last renewal, %v", got, q.err)
		}
		if _, err := r.Renew(t.Context(), s.Record.Key, "a", s.Record.Token, 0, nil); !errors.Is(err, fence.ErrStale) {
			t.Errorf("a session that was closed lives: %v", err)
		}
	})
}
