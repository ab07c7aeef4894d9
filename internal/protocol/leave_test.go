package protocol

import (
	"errors"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func TestLeaving(t *testing.T) {
	r := heldRig(t)
	r.stop("")
	r.phase(Leaving)
	if r.h.Valid(r.now) {
		t.Error("valid while it is let go")
	}
	act := r.next(Write)
	if act.Rec.Owner != "" || act.Rec.Version != "1" || act.Rec.Token != r.h.Term.Token || act.Rec.Past[0].Why != WhyReleased || act.Until != r.now.Add(rigRenew) || act.Again <= r.now || act.Again >= act.Until {
		t.Errorf("%+v", act)
	}
	r.wrote("2", nil)
	r.ended(nil)
	if got := r.h.Orphans(); len(got) != 0 {
		t.Errorf("orphans %v of a release that landed", got)
	}
	r.stop("") // nothing more comes of it
	r.ended(nil)
}

// The outcomes of letting go, for a release and for a hand-over, from the first write on.
func TestLeavingOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		drive    func(r *rig)
		released error // what a release ends with
		handed   error // what a hand-over ends with
		orphaned bool  // the record may still show this hold
	}{
		"a conflict with its own nonce": {drive: func(r *rig) {
			rec := r.next(Write).Rec
			rec.Version = "2"
			r.wrote("", conflict(rec))
		}},
		"a foreign conflict": {drive: func(r *rig) { r.wrote("", conflict(foreign("9"))) }, handed: store.ErrConflict, orphaned: true},
		"a clone's version":  {drive: func(r *rig) { r.wrote("", conflict(clone(r))) }, handed: store.ErrConflict, orphaned: true},
		"the record is gone": {drive: func(r *rig) { r.wrote("", driver.NotFound("job")) }, handed: store.ErrConflict, orphaned: true},
		"marked meanwhile": {drive: func(r *rig) {
			r.wrote("", conflict(marked(Broken(r.h.Term, "ops", rigTTL, "x"))))
			if act := r.next(Write); act.Rec.Version != "8" || act.Rec.Token < r.h.Term.Token {
				r.t.Errorf("%+v", act.Rec)
			}
			r.wrote("2", nil)
		}},
		"refused once": {drive: func(r *rig) {
			r.wrote("", errRefused)
			r.sleep()
			r.wrote("2", nil)
		}},
		"impossible": {drive: func(r *rig) { r.wrote("", &store.InvalidError{}) }, released: store.ErrInvalid, handed: store.ErrInvalid, orphaned: true},
		"closed":     {drive: func(r *rig) { r.wrote("", store.ErrClosed) }, released: store.ErrClosed, handed: store.ErrClosed, orphaned: true},
		"unknown: landed": {drive: func(r *rig) {
			rec := r.wrote("2", errLost)
			r.sleep()
			r.read(rec, nil)
		}},
		"unknown: not yet": {drive: func(r *rig) {
			first := r.wrote("2", errLost)
			r.sleep()
			r.read(r.h.Term, nil)
			if again := r.next(Write).Rec; again.Nonce != first.Nonce || again.Version != "1" {
				r.t.Errorf("sent again: %+v", again)
			}
			r.wrote("2", nil)
		}},
		"unknown: superseded": {drive: func(r *rig) {
			r.wrote("2", errLost)
			r.sleep()
			r.read(foreign("9"), nil)
		}, handed: store.ErrConflict, orphaned: true},
		"unknown, then closed": {drive: func(r *rig) {
			r.wrote("2", errLost)
			r.sleep()
			r.read(store.Record{}, store.ErrClosed)
		}, released: store.ErrUnknownOutcome, handed: store.ErrUnknownOutcome, orphaned: true},
		"refused to the end": {drive: func(r *rig) { r.fail(errRefused, errRefused) }, released: errRefused, handed: errRefused, orphaned: true},
		"unknown to the end": {drive: func(r *rig) { r.fail(errLost, errRefused) }, released: store.ErrUnknownOutcome, handed: store.ErrUnknownOutcome, orphaned: true},
		"no time at all": {
			drive:    func(r *rig) { r.now = r.now.Add(rigRenew) },
			released: store.ErrUnknownOutcome, handed: store.ErrUnknownOutcome, orphaned: true,
		},
	} {
		for to, want := range map[string]error{"": c.released, "heir": c.handed} {
			t.Run(name+" "+to, func(t *testing.T) {
				r := heldRig(t)
				nonce := r.h.Term.Nonce
				r.stop(to)
				c.drive(r)
				r.ended(want)
				if got := slices.Contains(r.h.Orphans(), nonce); got != c.orphaned {
					t.Errorf("orphans %v", r.h.Orphans())
				}
			})
		}
	}
}

// fail answers every write and every read with these errors until the hold has ended.
func (r *rig) fail(write, read error) {
	for r.h.Phase == Leaving {
		switch act := r.h.Next(r.env()); act.Kind {
		case Write:
			r.h.Wrote(r.env(), store.Record{}, write)
		case Read:
			r.h.Read(r.env(), act.Key, store.Record{}, read)
		case Sleep:
			r.now = act.Until
			r.h.Woke()
		}
	}
}

// One request that fails, though only when it would have been repeated, leaves time for others.
func TestLeavingTriesMoreThanOnce(t *testing.T) {
	r := heldRig(t)
	r.stop("")
	by, requests := r.now.Add(rigRenew), 0
	for r.h.Phase == Leaving {
		switch act := r.h.Next(r.env()); act.Kind {
		case Write:
			requests++
			r.now = max(act.Again, r.now+1)
			r.h.Wrote(r.env(), store.Record{}, errLost)
		case Read:
			requests++
			r.now = max(act.Again, r.now+1)
			r.h.Read(r.env(), act.Key, store.Record{}, errRefused)
		case Sleep:
			r.now = act.Until
			r.h.Woke()
		}
		if r.now > by {
			t.Fatalf("at %v, allowed until %v", r.now, by)
		}
	}
	if requests < 3 {
		t.Errorf("%d requests", requests)
	}
}

// A hand-over that landed is one, whatever its successor has done since; a release, too.
func TestLeavingInDoubtWithABusySuccessor(t *testing.T) {
	r := heldRig(t)
	r.stop("heir")
	offer := r.wrote("2", errLost)
	claim := Claimed(offer, Claim{Owner: "heir", TTL: rigTTL}, offer.Token+1, WhyExpired, noon, "h1")
	claim.Version = "3"
	for name, cur := range map[string]store.Record{
		"confirmed": claim,
		"released":  Freed(claim, WhyReleased, noon, "h2"),
		"followed":  Claimed(claim, Claim{Owner: "third", TTL: rigTTL}, claim.Token+1, WhyExpired, noon, "t1"),
		"broken":    marked(Broken(offer, "ops", rigTTL, "x")),
	} {
		c := *r
		c.sleep()
		cur.Version = name
		c.read(cur, nil)
		if c.next(Idle); c.h.Phase != Ended || c.h.Err != nil {
			t.Errorf("%s: phase %d, %v", name, c.h.Phase, c.h.Err)
		}
	}
}

// Leaving with a renewal on its way, which may land before the release, or be overtaken by it.
func TestLeavingWithARenewalInDoubt(t *testing.T) {
	start := func(t *testing.T) (*rig, store.Record) {
		r := heldRig(t)
		r.toRenewal()
		rec := r.wrote("2", errLost)
		r.stop("")
		if got := r.h.Orphans(); !slices.Contains(got, rec.Nonce) || !slices.Contains(got, r.h.Term.Nonce) {
			t.Errorf("orphans %v", got)
		}
		return r, rec
	}
	t.Run("overtaken", func(t *testing.T) {
		r, _ := start(t)
		r.wrote("2", nil)
		r.ended(nil)
	})
	t.Run("landed first", func(t *testing.T) {
		r, rec := start(t)
		r.wrote("", conflict(rec))
		if act := r.next(Write); act.Rec.Version != "2" || act.Rec.Owner != "" {
			t.Errorf("%+v", act.Rec)
		}
		r.wrote("3", nil)
		r.ended(nil)
	})
	t.Run("landed first, and marked", func(t *testing.T) {
		r, rec := start(t)
		r.wrote("", conflict(marked(Broken(rec, "ops", rigTTL, "x"))))
		if act := r.next(Write); act.Rec.Version != "8" || act.Rec.Past[0].Why != "broken by ops" {
			t.Errorf("%+v", act.Rec)
		}
		r.wrote("9", nil)
		r.ended(nil)
	})
}

func TestLeavingAfterALoss(t *testing.T) {
	t.Run("expired", func(t *testing.T) {
		r := heldRig(t)
		r.now = r.h.Deadline
		r.lost(CauseExpired)
		r.stop("")
		if act := r.next(Write); act.Rec.Version != "1" || act.Rec.Owner != "" {
			t.Errorf("%+v", act.Rec)
		}
		r.wrote("2", nil)
		r.ended(nil)
	})
	t.Run("broken", func(t *testing.T) {
		r := heldRig(t)
		r.toRenewal()
		r.wrote("", conflict(marked(Broken(r.h.Term, "ops", rigTTL, "x"))))
		r.lost(CauseBroken)
		r.stop("")
		if act := r.next(Write); act.Rec.Version != "8" || act.Rec.Past[0].Why != "broken by ops" {
			t.Errorf("%+v", act.Rec)
		}
		r.wrote("9", nil)
		r.ended(nil)
	})
	t.Run("taken, in doubt before", func(t *testing.T) {
		for to, want := range map[string]error{"": nil, "heir": store.ErrConflict} {
			r := heldRig(t)
			r.toRenewal()
			r.wrote("2", errLost)
			r.sleep()
			r.read(foreign("9"), nil)
			r.lost(CauseTaken)
			r.stop(to)
			r.ended(want)
		}
	})
}

// The hold of a term of which only the nonce is known reads the rest before it writes.
func TestResume(t *testing.T) {
	whole := store.Record{Key: "job", Owner: "me", Token: 5, TTL: rigTTL, Session: "s", Nonce: "n0", Version: "7", Data: []byte("d"), Past: []store.Term{{Owner: "z", Token: 4}}}
	start := func(t *testing.T, term store.Record) *rig {
		r := newRig(t, false)
		r.h = Resume(term, Claim{Owner: "me", TTL: rigTTL, Session: "s"}, r.h.Timing)
		if !r.h.Valid(clock.Never - 1) {
			t.Error("a resumed hold is not valid")
		}
		r.stop("")
		return r
	}
	t.Run("whole", func(t *testing.T) {
		r := start(t, whole)
		if rec := r.wrote("8", nil); len(rec.Past) != 2 || string(rec.Data) != "d" {
			t.Errorf("%+v", rec)
		}
		r.ended(nil)
	})
	part := store.Record{Key: "job", Owner: "me", Token: 5, TTL: rigTTL, Session: "s", Nonce: "n0"}
	for name, c := range map[string]struct {
		cur    store.Record
		writes bool
	}{
		"as it was": {whole, true}, "marked since": {marked(Broken(whole, "ops", rigTTL, "x")), true},
		"another's": {foreign("9"), false}, "deleted": {store.Record{Key: "job"}, false},
	} {
		t.Run("in part, "+name, func(t *testing.T) {
			r := start(t, part)
			r.read(store.Record{}, errRefused)
			r.sleep()
			r.read(c.cur, nil)
			if c.writes {
				if rec := r.next(Write).Rec; len(rec.Past) != 2 || string(rec.Data) != "d" || rec.Version != c.cur.Version {
					t.Errorf("%+v", rec)
				}
				r.wrote("10", nil)
			}
			r.ended(nil)
		})
	}
	t.Run("in part, unreadable", func(t *testing.T) {
		r := start(t, part)
		r.fail(nil, errRefused)
		r.ended(errRefused)
		if !slices.Contains(r.h.Orphans(), "n0") || errors.Is(r.h.Err, store.ErrUnknownOutcome) {
			t.Errorf("orphans %v, %v", r.h.Orphans(), r.h.Err)
		}
	})
}
