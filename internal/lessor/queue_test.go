package lessor

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

var errDown = errors.New("down")

// Who doesn't wait is refused at once, also behind others, who go on waiting; how many of them leave makes no difference.
func TestTriesAreRefusedBehindOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Minute})
		time.Sleep(5 * time.Second)
		for _, q := range []*request{send(r, wants("gone", time.Hour)), send(r, wants("gone, too", time.Hour))} {
			q.cancel()
			<-q.done
		}
		first, second := send(r, wants("first", time.Hour)), send(r, wants("second", time.Hour))
		for range 3 {
			begun := time.Now()
			_, err := r.Acquire(t.Context(), wants("hasty", 0))
			heldBy(t, err, "holder")
			if took := time.Since(begun); took > time.Millisecond {
				t.Errorf("refused after %v", took)
			}
			held := new(lease.HeldError)
			if errors.As(err, &held); held.ExpiresIn.Truncate(time.Second) != 55*time.Second {
				t.Errorf("the name is said to expire in %v, want 55 s", held.ExpiresIn)
			}
			if first.over() || second.over() {
				t.Error("who waits was refused, too")
			}
			second.cancel()
			<-second.done
			second = send(r, wants("second", time.Hour))
		}
		for _, q := range []*request{first, second} {
			q.cancel()
			<-q.done
		}
	})
}

// Whoever is told of queues hears of each change, and sees since when and until when each request waits: a request that is sent again
// keeps its place and its time, and waits as long as it says from then on.
func TestQueuesAreShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var lengths []int
		w.onQueue = func(_ string, waiting int) { lengths = append(lengths, waiting) }
		r, _ := w.registry()
		rec := granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		req := wants("a", time.Minute)
		req.ID = "k1"
		first, since := send(r, req), w.Clk.Now()
		time.Sleep(40 * time.Second)
		again, b := send(r, req), send(r, wants("b", time.Hour))
		<-first.done
		if got := r.Waiting("job"); len(got) != 2 || got[0].Since != since || got[0].Until != w.Clk.Now().Add(time.Minute) || got[1].Since != w.Clk.Now() {
			t.Errorf("shown: %+v", got)
		}
		b.cancel()
		<-b.done
		released(t, r, rec)
		<-again.done
		if want := []int{1, 0, 1, 1, 2, 1, 0}; !slices.Equal(lengths, want) {
			t.Errorf("lengths %v, want %v", lengths, want)
		}
	})
}

// waits is a store that counts the waits for a change that are under way.
type waits struct {
	store.Store
	active atomic.Int32
}

func (s *waits) Wait(ctx context.Context, key, version string) (store.Record, error) {
	s.active.Add(1)
	defer s.active.Add(-1)
	return store.Wait(ctx, s.Store, key, version)
}

// The store is asked to tell of changes as long as somebody waits for the name, and no longer.
func TestNobodyWatchesANameThatNobodyWaitsFor(t *testing.T) {
	for name, leave := range map[string]func(r *Registry, q *request){
		"it leaves":  func(_ *Registry, q *request) { q.cancel() },
		"it removed": func(r *Registry, _ *request) { r.Remove("job", "") },
	} {
		inWorld(t, func(t *testing.T, w *world) {
			st := &waits{Store: w.DB.Open()}
			r := New(st, Options{Clock: w.Clk})
			granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
			q := send(r, wants("a", time.Hour))
			time.Sleep(2 * calm)
			if synctest.Wait(); st.active.Load() != 1 {
				t.Errorf("%s: %d waits for a change, want one", name, st.active.Load())
			}
			leave(r, q)
			<-q.done
			if synctest.Wait(); st.active.Load() != 0 {
				t.Errorf("%s: %d waits for nobody", name, st.active.Load())
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Changes that are made here are told to who waits here: the store isn't read for that, and tells nothing.
func TestWaitersHearOfChangesMadeHere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		r, net := w.registry()
		rec := granted(t, r, wants("holder", 0))
		q := send(r, wants("a", time.Hour))
		time.Sleep(2 * calm)
		reads := net.Count(faulty.Get)
		for i := range 3 {
			if _, err := r.Renew(t.Context(), "job", "holder", rec.Token, 0, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * calm)
			synctest.Wait()
			if got := net.Count(faulty.Wait); got != 2+i {
				t.Errorf("%d waits for a change after %d renewals", got, i+1)
			}
		}
		if net.Count(faulty.Get) != reads || net.Count(faulty.Push) != 0 || q.over() {
			t.Errorf("%d reads, and the store has told %d times of changes", net.Count(faulty.Get)-reads, net.Count(faulty.Push))
		}
		q.cancel()
		<-q.done
		if _, err := r.Renew(t.Context(), "job", "holder", rec.Token, 0, nil); err != nil {
			t.Fatal(err)
		}
		q = send(r, wants("b", time.Hour)) // what was written a moment ago need not be read
		if net.Count(faulty.Get) != reads {
			t.Errorf("%d reads of what was just written", net.Count(faulty.Get)-reads)
		}
		q.cancel()
		<-q.done
	})
}

// A wait for a change fails, and the store is asked once more: a release elsewhere is noticed when it happens.
func TestAFailedWatchIsAskedForAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		other, _ := w.registry()
		rec := granted(t, other, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		net.SetPlan(leasetest.Once(faulty.Fault{Err: errDown}, func(op faulty.Op) bool { return op.Kind == faulty.Wait }))
		q := send(r, wants("a", time.Hour))
		time.Sleep(time.Minute)
		released(t, other, rec)
		if !q.over() || q.err != nil {
			t.Errorf("the name is free, and who waits has %+v, %v", q.grant, q.err)
		}
		q.cancel()
	})
}

// Where the store tells of no change, a holder that renews elsewhere is seen to live before its name is claimed.
func TestAHolderElsewhereIsLookedAtBeforeItsNameIsClaimed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		other, _ := w.registry()
		rec := granted(t, other, wants("holder", 0))
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Kind == faulty.Wait} })
		q := send(r, wants("a", time.Hour))
		claims := net.Count(faulty.Put)
		for range 20 {
			time.Sleep(ttl / 3)
			if _, err := other.Renew(t.Context(), "job", "holder", rec.Token, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := net.Count(faulty.Put) - claims; got != 0 || q.over() {
			t.Errorf("%d claims of a name that is held: %+v, %v", got, q.grant, q.err)
		}
		q.cancel()
		<-q.done
	})
}

// The store doesn't answer: the error says that and why, not that somebody holds the name, which nobody knows.
func TestWhyThereIsNoAnswer(t *testing.T) {
	for _, wait := range []time.Duration{0, 5 * time.Second} {
		inWorld(t, func(t *testing.T, w *world) {
			r, net := w.registry()
			granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
			time.Sleep(time.Second)
			net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errDown} })
			_, err := r.Acquire(t.Context(), wants("a", wait))
			if errors.Is(err, errNoAnswer) != (wait > 0) || !errors.Is(err, errDown) || errors.Is(err, lease.ErrHeld) {
				t.Errorf("wait %v: %v", wait, err)
			}
		})
	}
}

// What trying again doesn't mend is told at once.
func TestWhatCannotBeMendedIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: store.ErrCorrupt} })
		q := send(r, wants("a", time.Hour))
		if !q.over() || !errors.Is(q.err, store.ErrCorrupt) {
			t.Errorf("a record that can't be read: %v", q.err)
		}
		net.SetPlan(nil)
		pool := store.Record{Key: "pool", Kind: store.KindPool, Token: 7, Nonce: "n"}
		if _, err := w.DB.Open().Put(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		req := wants("a", time.Hour)
		req.Key = "pool"
		if q = send(r, req); !q.over() || !errors.Is(q.err, store.ErrKind) {
			t.Errorf("a pool's name, without members: %v", q.err)
		}
	})
}

// A claim is behind one that comes back to its place before: it waits on, whatever its own attempt had come to.
func TestAClaimGivesWayToAnEarlierPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		before, _ := w.registry()
		holder := granted(t, before, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		closed(t, before, queued(before, "1"))
		r, net := w.registry()
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if op.Key == "job" {
				f.Err = errDown
			}
			return f
		})
		b := send(r, wants("b", time.Hour))
		time.Sleep(time.Second)
		first := queued(r, "1")[0]
		time.Sleep(time.Second)
		if b.over() || first.over() {
			t.Fatalf("who waits has %v, %v", b.err, first.err)
		}
		net.SetPlan(nil)
		time.Sleep(ttl)
		released(t, r, holder)
		if !first.over() || first.err != nil || b.over() {
			t.Fatalf("the earlier place: %v", first.err)
		}
		released(t, r, first.grant.Record)
		if <-b.done; b.err != nil {
			t.Error(b.err)
		}
	})
}

// A client has gone while its claim is in doubt, and the store refuses all for a while: letting go of the claim is tried with pauses, and
// for a TTL at most.
func TestAClaimIsGivenUpWithPauses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		lost := leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.ByOwner("gone"))
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			if f := lost(op); f.LoseReply || op.Kind == faulty.Get && op.Nth == 1 {
				return f
			}
			return faulty.Fault{Err: errDown}
		})
		gone := send(r, wants("gone", time.Hour))
		gone.cancel()
		<-gone.done
		time.Sleep(2 * ttl)
		if n := net.Count(faulty.Put) + net.Count(faulty.Get); n < 3 || n > 100 {
			t.Errorf("%d requests", n)
		}
		n := net.Count(faulty.Put) + net.Count(faulty.Get)
		if time.Sleep(ttl); n != net.Count(faulty.Put)+net.Count(faulty.Get) {
			t.Error("it is tried for ever")
		}
		net.SetPlan(nil)
		granted(t, r, wants("next", time.Minute))
	})
}

// What a claim of an owner left in the store, and could not be let go, keeps that owner from the name no longer than until it asks again.
func TestAnOwnersOwnLeftoverIsTakenOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Ageless = true // else the leftover would be known to be old
		r, net := w.registry()
		var outage faulty.Outage
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			if leasetest.ByOwner("a")(op) {
				outage.Start()
				return faulty.Fault{LoseReply: true}
			}
			return outage.Plan(nil)(op)
		})
		gone := send(r, wants("a", time.Hour))
		gone.cancel()
		<-gone.done
		time.Sleep(3 * ttl)
		outage.End()
		net.SetPlan(nil)
		if rec := w.Get("job"); rec.Owner != "a" {
			t.Fatalf("nothing is left: %+v", rec)
		}
		begun := time.Now()
		if granted(t, r, wants("a", time.Hour)); time.Since(begun) > time.Second {
			t.Errorf("granted after %v", time.Since(begun))
		}
	})
}

// A try whose claim stays in doubt for longer than it would be worth is given up and made once more: it never ends with neither a grant
// nor an error.
func TestATryInDoubtIsMadeOnceMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		begun := time.Now()
		req := wants("a", 0)
		req.TTL = time.Second
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			return faulty.Fault{LoseReply: op.Kind == faulty.Put && op.Nth == 1, Drop: op.Kind == faulty.Get && op.Key == req.Key && time.Since(begun) < 3*time.Second}
		})
		if rec := granted(t, r, req); rec.Token != w.Get("job").Token || w.Get("job").Owner != "a" {
			t.Errorf("granted %+v, stored %+v", rec, w.Get("job"))
		}
	})
}

// A registry whose clock isn't given runs on the system's.
func TestRegistryOnTheSystemClock(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	r := New(db.Open(), Options{})
	released(t, r, granted(t, r, wants("a", 0)))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A name of which something is asked is not forgotten for another, which it doesn't keep out.
func TestABusyNameIsNotForgotten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		r.opts.Names = 1
		rec := granted(t, r, wants("holder", 0))
		q := send(r, wants("a", time.Hour))
		other := wants("b", 0)
		other.Key = "other"
		granted(t, r, other)
		if len(r.Waiting("job")) != 1 {
			t.Errorf("its queue is %+v", r.Waiting("job"))
		}
		released(t, r, rec)
		if !q.over() || q.err != nil {
			t.Errorf("who waits has %v", q.err)
		}
	})
}

// A name that isn't known is claimed as a new one, by one write, where a refusal costs no more than a read.
func TestANewNameIsNotRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		read := 0
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if op.Kind == faulty.Get && op.Key == "job" {
				read++
			}
			return f
		})
		if granted(t, r, wants("a", 0)); read != 0 || net.Count(faulty.Put) != 1 {
			t.Errorf("%d reads, %d writes", read, net.Count(faulty.Put))
		}
	})
}

// Two that don't wait are refused by one look at the record.
func TestTriesAreRefusedTogether(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		time.Sleep(time.Second)
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Delay: 2 * time.Second} })
		begun := time.Now()
		for _, q := range []*request{send(r, wants("a", 0)), send(r, wants("b", 0))} {
			<-q.done
			heldBy(t, q.err, "holder")
			if took := q.at.Sub(begun); took > 2*time.Second+time.Millisecond {
				t.Errorf("refused after %v", took)
			}
		}
	})
}

// Nobody is refused because of nobody: behind a claim of a free name that is under way, one who doesn't wait is refused by who made that.
func TestATryBehindAClaim(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		released(t, r, granted(t, r, wants("before", 0)))
		begun := time.Now()
		net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
			if leasetest.ByOwner("a")(op) && time.Since(begun) < 2*time.Second {
				f.Err = errDown
			}
			return f
		})
		a := send(r, wants("a", time.Hour))
		_, err := r.Acquire(t.Context(), wants("b", 0))
		heldBy(t, err, "a")
		if !a.over() || a.err != nil {
			t.Errorf("the claim: %v", a.err)
		}
	})
}
