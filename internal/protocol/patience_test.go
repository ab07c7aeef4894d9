package protocol

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

const patience = 2 * time.Second

// changed tells that the wait which was asked for has found rec.
func (r *rig) changed(rec store.Record) {
	r.t.Helper()
	r.h.Read(r.env(), r.next(Wait).Key, rec, nil)
}

// waits passes the wait that has to be asked for, in vain.
func (r *rig) waits() {
	r.t.Helper()
	r.now = r.next(Wait).Until
	r.h.Woke()
}

// Who goes behind others leaves a free name to them for so long, and then takes it.
func TestPatienceLeavesAFreeNameToOthers(t *testing.T) {
	r := newRig(t, false)
	r.h.Patience = patience
	free := store.Record{Key: "job", Token: 7, Version: "4"}
	r.read(free, nil)
	until := r.now.Add(patience)
	if act := r.next(Wait); act.Key != "job" || act.Version != "4" || act.Until != until {
		t.Errorf("%+v", act)
	}
	taken := foreign("5")
	r.changed(taken) // somebody was quicker
	if act := r.next(Wait); act.Version != "5" || act.Until == until {
		t.Errorf("%+v", act)
	}
	r.now = until
	free.Version = "6"
	r.changed(free) // and has let go again
	if act := r.next(Wait); act.Version != "6" || act.Until != r.now.Add(patience) {
		t.Errorf("%+v", act)
	}
	r.waits()
	if act := r.next(Write); act.Rec.Owner != "me" || act.Rec.Version != "6" {
		t.Errorf("%+v", act)
	}
}

// A patience that has ended counts no more.
func TestPatienceEnds(t *testing.T) {
	r := newRig(t, false)
	r.h.Patience = patience
	r.read(store.Record{Key: "job", Token: 7, Version: "4"}, nil)
	r.next(Wait)
	r.h.Patience = 0
	r.next(Write)
}

// An abandoned name is freed, so that the others hear of it: they can't see that somebody has died, and may come to know it later.
func TestPatienceFreesAnAbandonedName(t *testing.T) {
	outcomes := map[string]func(r *rig){
		"done": func(r *rig) { r.wrote("10", nil) },
		"conflict": func(r *rig) {
			r.wrote("", conflict(store.Record{Key: "job", Token: 7, Version: "10", Nonce: "another's"}))
		},
		"unknown, and it landed": func(r *rig) {
			rec := r.next(Write).Rec
			r.wrote("", errLost)
			r.sleep()
			rec.Version = "10"
			r.read(rec, nil)
		},
		"unknown, and it did not land": func(r *rig) {
			rec := r.next(Write).Rec
			r.wrote("", errLost)
			r.sleep()
			r.read(foreign("9"), nil)
			if again := r.next(Write).Rec; again.Nonce != rec.Nonce {
				t.Errorf("%+v, then %+v", rec, again)
			}
			r.wrote("10", nil)
		},
	}
	for name, outcome := range outcomes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			r.h.Patience = patience
			r.read(foreign("9"), nil)
			r.waits()
			r.read(foreign("9"), nil)
			if act := r.next(Write); act.Rec.Owner != "" || act.Rec.Version != "9" || act.Rec.Token != foreign("9").Token || len(act.Rec.Past) != 1 {
				t.Errorf("%+v", act.Rec)
			}
			outcome(r)
			if act := r.next(Wait); act.Version != "10" || act.Until != r.now.Add(patience) {
				t.Errorf("%+v", act)
			}
			if len(r.h.Orphans()) != 0 {
				t.Errorf("orphans: %q", r.h.Orphans())
			}
			r.waits()
			if act := r.next(Write); act.Rec.Owner != "me" || act.Rec.Version != "10" {
				t.Errorf("%+v", act)
			}
		})
	}
}

// What was handed to a hold is its own, and a try is made once: neither waits.
func TestPatienceHasExceptions(t *testing.T) {
	offered := foreign("9")
	offered.Owner, offered.Intervention = "me", store.InterventionHandedOver
	r := newRig(t, false)
	r.h.Patience = patience
	r.read(offered, nil)
	if rec := r.next(Write).Rec; rec.Owner != "me" {
		t.Errorf("an offer is answered by %+v", rec)
	}

	given := foreign("9")
	given.Owner, given.Nonce = "me", "n0"
	r = newRig(t, false)
	r.h.Patience, r.h.mine = patience, []string{"n0"}
	r.read(given, nil)
	if rec := r.next(Write).Rec; rec.Owner != "me" {
		t.Errorf("a term of its own, given up, is followed by %+v", rec)
	}

	r = newRig(t, true)
	r.h.Patience = patience
	r.read(store.Record{Key: "job", Version: "4"}, nil)
	r.next(Write)
}

// The term of a successor that never came has not been.
func TestAFreedOfferIsNoTerm(t *testing.T) {
	rec := foreign("9")
	rec.Intervention, rec.Past = store.InterventionHandedOver, []store.Term{{Owner: "before", Token: 1}}
	if past := Freed(rec, WhyExpired, rec.Acquired, "n").Past; len(past) != 1 || past[0].Owner != "before" {
		t.Errorf("%+v", past)
	}
}

// A name that nobody has ever had is left to others like one that became free.
func TestPatienceWithANewName(t *testing.T) {
	r := newRig(t, false)
	r.h.Patience = patience
	r.read(store.Record{}, nil)
	if act := r.next(Wait); act.Version != "" || act.Until != r.now.Add(patience) {
		t.Errorf("%+v", act)
	}
	r.waits()
	if rec := r.next(Write).Rec; rec.Owner != "me" {
		t.Errorf("then %+v", rec)
	}
}

// To free an abandoned name is nothing that has to be settled when the hold is given up.
func TestGivingUpWhileAnAbandonedNameIsFreed(t *testing.T) {
	r := newRig(t, false)
	r.h.Patience = patience
	old := foreign("9")
	old.Age = rigTTL
	r.read(old, nil)
	r.wrote("", errLost)
	r.stop("")
	r.next(Idle)
	r.phase(Ended)
}
