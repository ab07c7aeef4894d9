package protocol

import (
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// A try under a session that is given up in doubt is settled for as long as that takes: what a session keeps doesn't expire, so a claim
// that landed and that nobody knows of would keep the name for as long as the session lives.
func TestFinding_S12_AGivenUpClaimOfASessionIsSettled(t *testing.T) {
	for name, session := range map[string]string{"kept by a session": "s", "keeps itself": ""} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, true)
			r.h.Claim.Session, r.session = session, clock.NoDeadline
			r.read(store.Record{Key: "job"}, nil)
			claim := r.wrote("1", errLost)
			for r.h.Phase == Waiting { // it never learns what became of the claim
				switch act := r.h.Next(r.env()); act.Kind {
				case Sleep:
					r.now = act.Until
					r.h.Woke()
				case Read:
					r.h.Read(r.env(), act.Key, store.Record{}, errRefused)
				}
			}
			r.phase(Leaving)
			r.wrote("", errRefused)
			r.now = r.now.Add(2 * rigTTL)
			if session == "" {
				r.ended(errRefused) // it expires
				return
			}
			r.wrote("", conflict(claim)) // it had landed
			if act := r.next(Write); act.Rec.Owner != "" || act.Rec.Version != claim.Version {
				t.Errorf("want the claim's record freed: %+v", act.Rec)
			}
			r.wrote("2", nil)
			r.ended(nil)
		})
	}
}
