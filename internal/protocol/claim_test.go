package protocol

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func TestClaimOfAFreeName(t *testing.T) {
	r := newRig(t, false)
	if act := r.next(Read); act.Key != "job" || act.Until != r.now.Add(rigAnswer) || act.Again != r.now.Add(rigRenew) {
		t.Errorf("%+v", act)
	}
	r.read(store.Record{Key: "job", Token: 1 << 50, Version: "4"}, nil)
	r.now += 5
	act := r.next(Write)
	if act.Rec.Owner != "me" || act.Rec.Token != 1<<50+1 || act.Rec.Version != "4" || act.Rec.Nonce != "n1" || act.Rec.TTL != rigTTL {
		t.Errorf("the claim: %+v", act.Rec)
	}
	r.now += clock.Instant(3 * time.Second)
	r.wrote("5", nil)
	r.phase(Held)
	if r.h.Deadline != 1005+clock.Instant(rigValidity) || r.h.Term.Version != "5" || !r.h.Valid(r.h.Deadline-1) || r.h.Valid(r.h.Deadline) {
		t.Errorf("valid until %v under %+v", r.h.Deadline, r.h.Term)
	}
}

// The outcomes of a claim, from the first write on.
func TestClaimOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		try   bool
		drive func(r *rig)
		check func(r *rig)
	}{
		"a conflict with its own nonce": {false, func(r *rig) {
			rec := r.next(Write).Rec
			rec.Version = "1"
			r.now += 7
			r.wrote("", conflict(rec))
		}, func(r *rig) {
			r.phase(Held)
			if r.h.Deadline != 1000+clock.Instant(rigValidity) || r.h.Term.Version != "1" {
				t.Errorf("valid until %d under %+v", r.h.Deadline, r.h.Term)
			}
		}},
		"a foreign conflict": {false, func(r *rig) { r.wrote("", conflict(foreign("9"))) }, func(r *rig) {
			if act := r.next(Wait); act.Version != "9" || act.Until != r.now.Add(rigTTL) {
				t.Errorf("%+v", act)
			}
		}},
		"a foreign conflict of a try": {true, func(r *rig) { r.wrote("", conflict(foreign("9"))) }, func(r *rig) {
			if act := r.next(Refuse); act.Until != r.now.Add(rigTTL) {
				t.Errorf("%+v", act)
			}
		}},
		"a conflict with the same owner, a clone": {true, func(r *rig) {
			rec := foreign("9")
			rec.Owner = "me"
			r.wrote("", conflict(rec))
		}, func(r *rig) { r.next(Refuse) }},
		"a conflict that names the version that was demanded": {false, func(r *rig) { r.wrote("", conflict(store.Record{Key: "job"})) }, func(r *rig) {
			r.sleep()
			r.wrote("1", nil)
			r.phase(Held)
		}},
		"the record was deleted": {false, func(r *rig) { r.wrote("", driver.NotFound("job")) }, func(r *rig) {
			r.wrote("1", nil)
			r.phase(Held)
		}},
		"refused": {false, func(r *rig) { r.wrote("", errRefused) }, func(r *rig) {
			if !errors.Is(r.h.Err, errRefused) {
				t.Error(r.h.Err)
			}
			r.sleep()
			r.wrote("1", nil)
			r.phase(Held)
			if r.h.Err != nil {
				t.Error(r.h.Err)
			}
		}},
		"refused, of a try": {true, func(r *rig) { r.wrote("", errRefused) }, func(r *rig) { r.ended(errRefused) }},
		"impossible":        {false, func(r *rig) { r.wrote("", &store.InvalidError{}) }, func(r *rig) { r.ended(store.ErrInvalid) }},
		"corrupt":           {false, func(r *rig) { r.wrote("", driver.Corrupt("job", errRefused)) }, func(r *rig) { r.ended(store.ErrCorrupt) }},
		"closed":            {false, func(r *rig) { r.wrote("", store.ErrClosed) }, func(r *rig) { r.ended(store.ErrClosed) }},
		"unknown, then closed": {false, func(r *rig) {
			r.wrote("", errLost)
			r.sleep()
			r.read(store.Record{}, store.ErrClosed)
		}, func(r *rig) {
			r.ended(store.ErrClosed)
			if !slices.Contains(r.h.Orphans(), "n1") {
				t.Errorf("orphans %v", r.h.Orphans())
			}
		}},
		"unknown: landed": {true, func(r *rig) {
			rec := r.wrote("1", errLost)
			r.sleep()
			r.read(rec, nil)
		}, func(r *rig) {
			r.phase(Held)
			if r.h.Deadline != 1000+clock.Instant(rigValidity) {
				t.Errorf("valid until %d: not from the first send", r.h.Deadline)
			}
		}},
		"unknown: not yet": {true, func(r *rig) {
			first := r.wrote("", errLost)
			r.sleep()
			r.read(store.Record{}, nil)
			if again := r.next(Write).Rec; again.Nonce != first.Nonce || again.Version != "" {
				t.Errorf("sent again: %+v", again)
			}
			r.wrote("1", nil)
		}, func(r *rig) {
			r.phase(Held)
			if r.h.Deadline != 1000+clock.Instant(rigValidity) {
				t.Errorf("valid until %d: not from the first send", r.h.Deadline)
			}
		}},
		"unknown: superseded": {false, func(r *rig) {
			r.wrote("", errLost)
			r.sleep()
			r.read(foreign("9"), nil)
		}, func(r *rig) {
			r.next(Wait)
			if got := r.h.Orphans(); !slices.Contains(got, "n1") {
				t.Errorf("orphans %v", got)
			}
		}},
		"unknown: landed and marked since": {false, func(r *rig) {
			rec := r.wrote("1", errLost)
			r.sleep()
			rec = Broken(rec, "ops", rigTTL, "x")
			rec.Version = "2"
			r.read(rec, nil)
		}, func(r *rig) { // its own, but not adopted
			if act := r.next(Write); act.Rec.Token <= r.h.Seen().Rec.Token || act.Rec.Version != "2" || act.Rec.Past[0].Why != "broken by ops" {
				t.Errorf("the next claim: %+v", act.Rec)
			}
		}},
		"unknown, and the read fails, too": {true, func(r *rig) {
			rec := r.wrote("1", errLost)
			r.sleep()
			r.read(store.Record{}, errRefused)
			r.sleep()
			r.read(rec, nil)
		}, func(r *rig) { r.phase(Held) }},
		"unknown to a try, until it is of no use": {true, func(r *rig) {
			r.wrote("1", errLost)
			r.now = 1000 + clock.Instant(rigValidity)
		}, func(r *rig) {
			if act := r.next(Write); act.Rec.Owner != "" || act.Rec.Nonce == "n1" {
				t.Errorf("not settled: %+v", act.Rec)
			}
			r.phase(Leaving)
			if got := r.h.Orphans(); !errors.Is(r.h.Err, store.ErrUnknownOutcome) || !slices.Contains(got, "n1") {
				t.Errorf("orphans %v, %v", got, r.h.Err)
			}
		}},
		"too late": {false, func(r *rig) {
			r.next(Write)
			r.now = 1000 + clock.Instant(rigValidity)
			r.wrote("1", nil)
		}, func(r *rig) {
			r.phase(Waiting)
			again := r.next(Write).Rec
			if again.Token <= r.h.Term.Token || again.Version != "1" || again.Past[0].Why != "given up" {
				t.Errorf("the next claim: %+v", again)
			}
			r.wrote("2", nil)
			r.phase(Held)
		}},
		"as late as can be": {false, func(r *rig) {
			r.next(Write)
			r.now = 1000 + clock.Instant(rigValidity) - 1
			r.wrote("1", nil)
		}, func(r *rig) { r.phase(Held) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.try)
			r.read(store.Record{Key: "job"}, nil)
			c.drive(r)
			r.t = t
			c.check(r)
		})
	}
}

// A name that is held is waited for, read again when it seems abandoned, and taken if it still is.
func TestClaimOfAnAbandonedName(t *testing.T) {
	r := newRig(t, false)
	held := foreign("3")
	r.read(held, nil)
	act := r.next(Wait)
	if act.Key != "job" || act.Version != "3" || act.Until != r.now.Add(rigTTL) {
		t.Errorf("%+v", act)
	}
	r.now += 10
	held.Version, held.Nonce = "4", "renewed"
	r.h.Read(r.env(), "job", held, nil)
	act = r.next(Wait)
	if act.Version != "4" || act.Until != r.now.Add(rigTTL) {
		t.Errorf("%+v", act)
	}
	r.now = act.Until
	r.h.Woke()
	r.read(held, nil) // once more, to see that it is still that version
	claim := r.wrote("5", nil)
	if claim.Token != held.Token+1 || claim.Past[0].Why != "expired" || claim.Past[0].Owner != "other" {
		t.Errorf("the claim: %+v", claim)
	}
	r.phase(Held)
}

func TestClaimWaitFails(t *testing.T) {
	r := newRig(t, false)
	r.read(foreign("3"), nil)
	r.next(Wait)
	r.h.Read(r.env(), "job", store.Record{}, errRefused)
	r.sleep()
	r.read(store.Record{Key: "job", Token: 9, Version: "4"}, nil)
	r.wrote("5", nil)
	r.phase(Held)
}

func TestClaimOfAnOffer(t *testing.T) {
	r := newRig(t, false)
	offer, err := HandedOver(foreign("3"), "me", rigTTL, noon, "their4")
	if err != nil {
		t.Fatal(err)
	}
	offer.Version = "4"
	r.read(offer, nil)
	claim := r.wrote("5", nil)
	r.phase(Held)
	if claim.Intervention != "" || claim.Note != "" || claim.Token < offer.Token || len(claim.Past) != 1 || claim.Nonce != "n1" {
		t.Errorf("the claim: %+v", claim)
	}
}

func TestClaimWithoutATokenLeft(t *testing.T) {
	r := newRig(t, false)
	r.read(store.Record{Key: "job", Token: fence.MaxToken, Version: "1"}, nil)
	r.next(Idle)
	r.phase(Ended)
	if r.h.Err == nil {
		t.Error("no error")
	}
}

func TestClaimRemembersWhatWasSeen(t *testing.T) {
	seen := Seen{}.Note(foreign("3"), 0)
	r := newRig(t, true)
	r.h = New("job", r.h.Claim, r.h.Timing, true, seen, nil)
	r.now = clock.Instant(rigTTL) - 1
	r.read(foreign("3"), nil)
	if act := r.next(Refuse); act.Until != clock.Instant(rigTTL) {
		t.Errorf("%+v", act)
	}
	r.h = New("job", r.h.Claim, r.h.Timing, true, r.h.Seen(), nil)
	r.now++
	r.read(foreign("3"), nil)
	r.wrote("4", nil)
	r.phase(Held)
}

func TestSessionIsMadeOnce(t *testing.T) {
	for name, rec := range map[string]store.Record{
		"closed": {Key: "s", Token: 5, Version: "2"}, "alive": {Key: "s", Owner: "me", Token: 5, TTL: rigTTL, Version: "2"},
	} {
		r := newRig(t, false)
		r.h = NewSession("s", r.h.Claim, r.h.Timing)
		r.wrote("", conflict(rec))
		r.ended(store.ErrConflict)
		if r.h.Seen().Rec.Version != "2" {
			t.Errorf("%s: %+v", name, r.h.Seen())
		}
	}
	r := newRig(t, false)
	r.h = NewSession("s", r.h.Claim, r.h.Timing)
	r.wrote("1", nil)
	r.phase(Held)
}

func TestGivingUpAClaim(t *testing.T) {
	t.Run("before anything was sent", func(t *testing.T) {
		r := newRig(t, false)
		r.stop("")
		r.ended(nil)
	})
	t.Run("while the name is held", func(t *testing.T) {
		r := newRig(t, false)
		r.read(foreign("3"), nil)
		r.next(Wait)
		r.stop("")
		r.ended(nil)
	})
	t.Run("after a failure", func(t *testing.T) {
		r := newRig(t, false)
		r.read(store.Record{}, errRefused)
		r.stop("")
		r.ended(errRefused)
	})
	doubt := func(t *testing.T) (*rig, store.Record) {
		r := newRig(t, false)
		r.read(store.Record{Key: "job"}, nil)
		rec := r.wrote("1", errLost)
		r.stop("")
		r.phase(Leaving)
		return r, rec
	}
	t.Run("in doubt: landed", func(t *testing.T) {
		r, rec := doubt(t)
		r.wrote("", conflict(rec))
		if freed := r.wrote("2", nil); freed.Owner != "" || freed.Past[0].Why != WhyReleased || freed.Token != rec.Token {
			t.Errorf("%+v", freed)
		}
		r.ended(nil)
		if got := r.h.Orphans(); len(got) != 0 {
			t.Errorf("orphans %v", got)
		}
	})
	t.Run("in doubt: not yet, and never after this", func(t *testing.T) {
		r, rec := doubt(t)
		if blank := r.wrote("1", nil); blank.Owner != "" || blank.Token != 0 || len(blank.Past) != 0 || blank.Nonce == rec.Nonce {
			t.Errorf("%+v", blank)
		}
		r.ended(nil)
	})
	t.Run("in doubt: superseded", func(t *testing.T) {
		r, _ := doubt(t)
		r.wrote("", conflict(foreign("9")))
		r.ended(nil)
	})
	t.Run("in doubt: superseded, as was read", func(t *testing.T) {
		r := newRig(t, false)
		r.read(store.Record{Key: "job"}, nil)
		r.wrote("1", errLost)
		r.sleep()
		r.read(foreign("9"), nil)
		r.stop("")
		r.ended(nil)
	})
	t.Run("in doubt, and nobody answers", func(t *testing.T) {
		r, rec := doubt(t)
		r.fail(errRefused, errRefused)
		r.ended(errRefused)
		if r.now < 1000+clock.Instant(rigRenew) || !slices.Contains(r.h.Orphans(), rec.Nonce) {
			t.Errorf("at %v, orphans %v", time.Duration(r.now), r.h.Orphans())
		}
	})
}
