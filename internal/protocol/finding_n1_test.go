package protocol

import (
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Who can wait for two keys at once hears of the renewals of the session that keeps the name, and needs no reads.
func TestFinding_N1_AWaiterFollowsTheSession(t *testing.T) {
	r := newRig(t, false)
	r.h.Follow = true
	kept := store.Record{Key: "job", Owner: "other", Token: 7, TTL: rigTTL, Session: ".session/other", Version: "3"}
	session := store.Record{Key: kept.Session, Owner: "other", Token: 1, TTL: rigTTL, Nonce: "a", Version: "4"}
	r.read(kept, nil)
	r.read(session, nil)
	for _, version := range []string{"4", "5", "6"} {
		act := r.next(Wait)
		if act.Key != "job" || act.Version != "3" || act.Also != session.Key || act.AlsoVersion != version || act.Until != r.h.session.Dead() {
			t.Fatalf("%+v", act)
		}
		r.now = r.now.Add(rigTTL / 3)
		session.Version, session.Nonce = string(version[0]+1), version
		r.h.Read(r.env(), session.Key, session, nil)
	}
	act := r.next(Wait)
	r.now = act.Until
	r.h.Woke()
	r.read(session, nil) // nothing is taken for dead that was not just read
	if act := r.next(Write); act.Rec.Key != session.Key || act.Rec.Owner != "" {
		t.Errorf("%+v", act)
	}
}

// A session that is closed frees the name at once.
func TestFinding_N1_ASessionThatIsClosed(t *testing.T) {
	r := newRig(t, false)
	r.h.Follow = true
	r.read(store.Record{Key: "job", Owner: "other", Token: 7, TTL: rigTTL, Session: ".session/other", Version: "3"}, nil)
	r.read(store.Record{Key: ".session/other", Owner: "other", Token: 1, TTL: rigTTL, Version: "4"}, nil)
	r.next(Wait)
	r.h.Read(r.env(), ".session/other", store.Record{Key: ".session/other"}, nil)
	if act := r.next(Write); act.Rec.Key != "job" || act.Rec.Owner != "me" || act.Rec.Version != "3" {
		t.Errorf("%+v", act)
	}
}
