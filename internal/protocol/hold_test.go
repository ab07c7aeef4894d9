package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// A hold that supposes its name to be new begins with the write, unless it has seen the record.
func TestSupposeNew(t *testing.T) {
	r := newRig(t, true)
	r.h.SupposeNew()
	if rec := r.next(Write).Rec; rec.Version != "" || rec.Owner != "me" || rec.Key != "job" {
		t.Errorf("a new name is taken by %+v", rec)
	}
	r.wrote("", conflict(foreign("3")))
	r.next(Refuse)

	r = newRig(t, true)
	r.h.rec = Seen{Rec: foreign("3"), Known: true}
	r.h.SupposeNew()
	r.read(foreign("3"), nil) // what was remembered says who has it, and is read again
	r.next(Refuse)
}

// What was just read needs no second read, except for one that only tries.
func TestFresh(t *testing.T) {
	for _, try := range []bool{false, true} {
		r := newRig(t, try)
		r.h.rec = Seen{Rec: foreign("3"), Known: true, Since: r.now}
		r.h.Fresh()
		if !try {
			r.next(Wait)
			continue
		}
		r.read(foreign("3"), nil)
		r.next(Refuse)
	}
	r := newRig(t, false)
	r.h.Fresh() // of nothing
	if r.h.recFresh {
		t.Error("fresh, though nothing was read")
	}
}

// What was remembered of a session spares no read before its lease is taken.
func TestRecallSession(t *testing.T) {
	kept := store.Record{Owner: "other", Session: ".session/o", TTL: rigTTL, Nonce: "x", Version: "3"}
	session := store.Record{Key: ".session/o", Owner: "other", TTL: rigTTL, Nonce: "s", Version: "1"}
	r := newRig(t, false)
	r.h.RecallSession(Seen{Rec: session, Known: true, Since: r.now.Add(-2 * rigTTL)})
	if r.h.SeenSession().Rec.Key != ".session/o" {
		t.Fatalf("remembered: %+v", r.h.SeenSession())
	}
	r.read(kept, nil)
	r.read(session, nil)
	if act := r.next(Write); act.Key != ".session/o" || act.Rec.Owner != "" {
		t.Errorf("want the abandoned session closed, since it was first seen a long time ago: %+v", act)
	}
}

// A claim in doubt that is given up is settled if it may land yet: not when another version has taken the place of the one it was to replace.
func TestGivingUp(t *testing.T) {
	for name, c := range map[string]struct {
		drive func(r *rig)
		want  Phase
	}{
		"before anything was asked":  {func(*rig) {}, Ended},
		"while it waits":             {func(r *rig) { r.read(foreign("3"), nil); r.next(Wait) }, Ended},
		"while a write is under way": {func(r *rig) { r.read(store.Record{}, nil); r.next(Write) }, Ended},
		"after a refusal":            {func(r *rig) { r.read(store.Record{}, nil); r.wrote("", errRefused) }, Ended},
		"in doubt":                   {func(r *rig) { r.read(store.Record{}, nil); r.wrote("", errLost) }, Leaving},
		"in doubt, and another's now": {func(r *rig) {
			r.read(store.Record{}, nil)
			r.wrote("", errLost)
			r.sleep()
			r.read(foreign("3"), nil)
		}, Ended},
	} {
		r := newRig(t, false)
		c.drive(r)
		r.stop("")
		if r.h.Phase != c.want || r.h.Unsettled() != (c.want == Leaving) {
			t.Errorf("%s: phase %d, unsettled %v, want phase %d", name, r.h.Phase, r.h.Unsettled(), c.want)
		}
	}
}

// A second Stop changes nothing but how and until when it is left.
func TestStopTwice(t *testing.T) {
	r := heldRig(t)
	r.stop("")
	first := r.next(Write).Rec
	r.stop("")
	if again := r.next(Write).Rec; again.Nonce != first.Nonce {
		t.Errorf("two writes that free it: %s and %s", first.Nonce, again.Nonce)
	}
	r.wrote("2", nil)
	r.ended(nil)
	r.stop("other")
	r.ended(nil)
}

// Nothing is left to be settled of a hold that is let go for certain; and to insist then changes nothing.
func TestInsist(t *testing.T) {
	r := heldRig(t)
	r.stop("")
	r.wrote("", errLost)
	r.now = r.now.Add(rigRenew)
	r.next(Idle)
	r.phase(Ended)
	if !errors.Is(r.h.Err, store.ErrUnknownOutcome) || !r.h.Unsettled() {
		t.Fatalf("%v, unsettled %v", r.h.Err, r.h.Unsettled())
	}
	r.h.Insist(clock.Never)
	r.phase(Leaving)
	if act := r.next(Read); act.Until != r.now.Add(rigAnswer) || act.Again != r.now.Add(rigRenew/3) {
		t.Errorf("a request of one that has for ever may take %v, and is repeated after %v, want that after a third of the renewal", act.Until.Sub(r.now), act.Again.Sub(r.now))
	}
	r.read(foreign("9"), nil)
	r.ended(nil)
	r.h.Insist(clock.Never)
	r.phase(Ended)
}

// A request that lets go may take the time that is left. It is repeated after a quarter of that, and an attempt's time at least.
func TestRequestsThatLetGo(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{60 * time.Second: 15 * time.Second, 9 * time.Second: rigAttempt, 2 * time.Second: 0} {
		r := heldRig(t)
		r.h.Stop(r.env(), Exit{Why: WhyReleased, By: r.now.Add(left)})
		act := r.next(Write)
		if again := max(act.Again.Sub(r.now), 0); act.Until != r.now.Add(left) || again != want {
			t.Errorf("with %v left, a request may take %v, and is repeated after %v, want %v", left, act.Until.Sub(r.now), again, want)
		}
	}
}

// A release that is refused for certain has no unknown outcome, whatever was in doubt before was read.
func TestAReleaseThatIsRefusedForCertain(t *testing.T) {
	r := heldRig(t)
	r.stop("")
	r.wrote("", store.ErrCorrupt)
	r.ended(store.ErrCorrupt)
	if errors.Is(r.h.Err, store.ErrUnknownOutcome) {
		t.Errorf("%v: nothing is in doubt", r.h.Err)
	}
	r = heldRig(t)
	r.stop("")
	r.wrote("", errLost)
	r.sleep()
	r.read(store.Record{}, store.ErrCorrupt)
	r.ended(store.ErrCorrupt)
	if !errors.Is(r.h.Err, store.ErrUnknownOutcome) {
		t.Errorf("%v: the release may have landed", r.h.Err)
	}
}

// Only a renewal that may have landed leaves a nonce of its own behind.
func TestOrphans(t *testing.T) {
	r := heldRig(t)
	if orphans := r.h.Orphans(); len(orphans) != 1 || orphans[0] != "n1" {
		t.Errorf("of a hold that is held: %q", orphans)
	}
	r.toRenewal()
	renewal := r.wrote("", errRefused)
	if orphans := r.h.Orphans(); len(orphans) != 1 {
		t.Errorf("after a renewal that was refused: %q", orphans)
	}
	r.stop("")
	if base := r.h.pending; base != "" {
		t.Errorf("a renewal that was refused, %s, counts as under way: %s", renewal.Nonce, base)
	}

	r = heldRig(t)
	r.toRenewal()
	renewal = r.wrote("", errLost)
	if orphans := r.h.Orphans(); len(orphans) != 2 || orphans[1] != renewal.Nonce {
		t.Errorf("after a renewal in doubt: %q, want %s too", orphans, renewal.Nonce)
	}
	r.stop("")
	r.wrote("", errLost) // what frees it names nobody as the owner
	if orphans := r.h.Orphans(); len(orphans) != 2 {
		t.Errorf("after a release in doubt: %q", orphans)
	}
	r = heldRig(t)
	r.stop("other")
	r.wrote("", errLost) // nor does what hands it over name this hold
	if orphans := r.h.Orphans(); len(orphans) != 1 {
		t.Errorf("after a hand-over in doubt: %q", orphans)
	}
}

// Retries are spread: with more jitter they come later, and each failure in a row makes the pause longer.
func TestRetriesAreSpread(t *testing.T) {
	pause := func(jitter float64, failures int) time.Duration {
		r := heldRig(t)
		r.toRenewal()
		r.jitter = jitter
		for i := range failures {
			if i > 0 {
				r.sleep()
			}
			r.wrote("", errRefused)
		}
		return r.next(Sleep).Until.Sub(r.now)
	}
	timing := rigTiming()
	for failures := 1; failures <= 3; failures++ {
		whole := timing.retry(failures - 1)
		if least, most := pause(0, failures), pause(0.5, failures); least != whole/2 || most != whole {
			t.Errorf("after %d failures: from %v to %v without and with a jitter of 0.5, want half and all of %v", failures, least, most, whole)
		}
	}
}

// A break is for its owner's session to hear of, unless that session was broken itself.
func TestNeedsNotice(t *testing.T) {
	session := store.Record{Key: ".session/1", Owner: "me", TTL: rigTTL, Nonce: "s"}
	if !NeedsNotice(session, "me") {
		t.Error("a session that lives isn't told of the break of its lease")
	}
	if NeedsNotice(session, "other") {
		t.Error("another's session is told")
	}
	if NeedsNotice(store.Record{Key: ".session/1"}, "me") {
		t.Error("a session that is over is told")
	}
	if NeedsNotice(Broken(session, "ops", rigTTL, "x"), "me") {
		t.Error("a notice takes the place of the session's own break")
	}
}

// A read that succeeds after one that failed has mended that, whatever it found.
func TestAReadMendsAFailure(t *testing.T) {
	r := newRig(t, false)
	r.read(store.Record{}, errRefused)
	r.sleep()
	r.read(store.Record{}, nil)
	if r.h.Err != nil || r.h.failures != 0 {
		t.Errorf("after a read of no record: %v, %d failures in a row", r.h.Err, r.h.failures)
	}
	r = newRig(t, false)
	kept := foreign("3")
	kept.Session = "s"
	r.read(kept, nil)
	r.h.Read(r.env(), r.next(Read).Key, store.Record{}, errRefused)
	r.sleep()
	r.read(store.Record{Key: "s", Owner: "other", TTL: rigTTL, Version: "1"}, nil)
	if r.h.Err != nil || r.h.failures != 0 {
		t.Errorf("after a read of the session: %v, %d failures in a row", r.h.Err, r.h.failures)
	}
}

// What was remembered before a failed read has to be read all the same.
func TestAFailedReadMakesNothingFresh(t *testing.T) {
	kept := foreign("3")
	kept.Session = "s"
	r := newRig(t, false)
	r.h.rec = Seen{Rec: kept, Known: true, Since: r.now}
	r.h.RecallSession(Seen{Rec: store.Record{Key: "s", Owner: "other", TTL: rigTTL, Version: "1"}, Known: true, Since: r.now})
	r.read(store.Record{Key: "job"}, errRefused)
	r.sleep()
	r.read(kept, nil)
}

// A store that vouches for a holder's end has the session read again: what ended the one has ended the other.
func TestARecordThatIsKnownToBeOver(t *testing.T) {
	kept := foreign("3")
	kept.Session = "s"
	alive := store.Record{Key: "s", Owner: "other", TTL: rigTTL, Version: "1"}
	r := newRig(t, false)
	r.read(kept, nil)
	r.read(alive, nil)
	act := r.next(Wait)
	over := kept
	over.Age = store.AgeGone
	r.h.Read(r.env(), act.Key, over, nil)
	r.read(alive, nil)
	if act := r.next(Sleep); act.Until != r.now.Add(rigRenew) { // the session lives: a wait for its lease would be over at once
		t.Errorf("sleeps for %v", act.Until.Sub(r.now))
	}
}

// What an operator writes on a term that has ended changes nothing of why it did.
func TestAMarkOnATermThatHasEnded(t *testing.T) {
	r := heldRig(t)
	r.toRenewal()
	r.next(Write)
	r.now = r.h.Deadline
	r.h.Wrote(r.env(), store.Record{}, conflict(marked(Broken(r.h.Term, "ops", rigTTL, "x"))))
	r.lost(CauseExpired)
}

// A renewal in doubt is settled by the release: nothing of the hold is left then.
func TestNothingIsLeftAfterARelease(t *testing.T) {
	r := heldRig(t)
	r.toRenewal()
	r.wrote("", errLost)
	r.stop("")
	r.wrote("9", nil)
	r.ended(nil)
	if orphans := r.h.Orphans(); len(orphans) != 0 {
		t.Errorf("%q", orphans)
	}
}

// A waiter keeps a claim in doubt until its outcome is known; only a try gives up.
func TestAWaiterKeepsAClaimInDoubt(t *testing.T) {
	r := newRig(t, false)
	r.read(store.Record{}, nil)
	r.wrote("", errLost)
	for range 200 {
		r.sleep()
		r.read(store.Record{}, errRefused)
	}
	if r.phase(Waiting); r.now < clock.Instant(rigTTL) {
		t.Fatal("the time is too short to tell")
	}
}

// A nonce is remembered once.
func TestANonceIsRememberedOnce(t *testing.T) {
	if all := appended(appended(nil, "n1"), "n1+mark"); len(all) != 1 {
		t.Errorf("%q", all)
	}
}
