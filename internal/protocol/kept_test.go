package protocol

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Who waits for a name that a session keeps looks at the session every third of the TTL, closes it when it is dead, and
// takes the name after that only.
func TestClaimOfAKeptName(t *testing.T) {
	kept := foreign("3")
	kept.Session = "s"
	session := func(version string) store.Record {
		return store.Record{Key: "s", Owner: "other", Token: 5, TTL: rigTTL, Nonce: "s" + version, Version: version}
	}
	r := newRig(t, false)
	r.read(kept, nil)
	r.read(session("1"), nil)
	for _, version := range []string{"2", "2", "2", "2"} { // renewed once
		act := r.next(Wait)
		if act.Key != "job" || act.Version != "3" || act.Until != min(r.now.Add(rigRenew), r.h.session.Dead()) {
			t.Errorf("at %v: %+v", time.Duration(r.now), act)
		}
		r.now = act.Until
		r.h.Woke()
		r.read(session(version), nil)
	}
	act := r.next(Wait)
	if seen := clock.Instant(rigRenew) + 1000; act.Until != seen.Add(rigTTL) {
		t.Errorf("%+v, version 2 was first seen at %d", act, seen)
	}
	r.now = act.Until
	r.h.Woke()
	r.read(session("2"), nil)
	fenced := r.wrote("3", nil)
	if fenced.Key != "s" || fenced.Owner != "" || fenced.Token != 5 || fenced.Past[0].Why != "expired" {
		t.Errorf("the session is closed by %+v", fenced)
	}
	if claim := r.wrote("4", nil); claim.Key != "job" || claim.Past[0].Why != "session ended" || claim.Session != "" {
		t.Errorf("the claim: %+v", claim)
	}
	r.phase(Held)
}

// The outcomes of closing a dead session.
func TestFenceOutcomes(t *testing.T) {
	alive := store.Record{Key: "s", Owner: "other", Token: 5, TTL: rigTTL, Version: "2"}
	start := func(t *testing.T, try bool) *rig {
		r := newRig(t, try)
		kept := foreign("3")
		kept.Session = "s"
		r.read(kept, nil)
		dead := alive
		dead.Version, dead.Age = "1", rigTTL
		r.read(dead, nil)
		if act := r.next(Write); act.Key != "s" || act.Rec.Version != "1" {
			t.Fatalf("%+v", act)
		}
		return r
	}
	closed := store.Record{Key: "s", Token: 5, Version: "2"}
	for name, c := range map[string]struct {
		try  bool
		err  error
		then func(r *rig)
	}{
		"it was renewed in time":   {false, conflict(alive), func(r *rig) { r.next(Wait) }},
		"it was renewed, of a try": {true, conflict(alive), func(r *rig) { r.next(Refuse) }},
		"somebody else has":        {false, conflict(closed), func(r *rig) { r.wrote("4", nil); r.phase(Held) }},
		"its record is gone":       {false, driver.NotFound("s"), func(r *rig) { r.wrote("4", nil); r.phase(Held) }},
		"refused":                  {false, errRefused, func(r *rig) { r.sleep(); r.read(closed, nil); r.wrote("4", nil); r.phase(Held) }},
		"refused, of a try":        {true, errRefused, func(r *rig) { r.ended(errRefused) }},
		"unknown: landed":          {false, errLost, func(r *rig) { r.sleep(); r.read(closed, nil); r.wrote("4", nil); r.phase(Held) }},
		"unknown: it was renewed":  {false, errLost, func(r *rig) { r.sleep(); r.read(alive, nil); r.next(Wait) }},
		"unknown, of a try":        {true, errLost, func(r *rig) { r.ended(store.ErrUnknownOutcome) }},
		"given up after no answer": {false, errLost, func(r *rig) { r.stop(""); r.ended(store.ErrUnknownOutcome) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.try)
			r.wrote("", c.err)
			c.then(r)
		})
	}
}
