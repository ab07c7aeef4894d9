package protocol

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// A wait that is over without a change is no failure, and no news either: the record is read before it counts as abandoned. One that
// fails before is a failure, and what it tells in the last moment is heard.
func TestTell(t *testing.T) {
	const until = clock.Instant(rigTTL + clock.Resolution)
	taken := store.Record{Key: "job", Version: "1", Owner: "you", Token: 1, TTL: rigTTL, Nonce: "n"}
	later := taken
	later.Version, later.Nonce = "2", "m"
	nameless := later
	nameless.Key = ""
	down := errors.New("down")
	for _, c := range []struct {
		name  string
		kind  Kind
		now   clock.Instant
		rec   store.Record
		err   error
		fails bool
		shown string
		next  Kind
	}{
		{"a wait that is over", Wait, until, store.Record{}, down, false, "1", Read},
		{"a wait that is over for a while", Wait, until + 1, store.Record{}, down, false, "1", Read},
		{"a wait that fails", Wait, until - 1, store.Record{}, down, true, "1", Sleep},
		{"a change in the last moment", Wait, until, later, nil, false, "2", Wait},
		{"a change before", Wait, until - 1, later, nil, false, "2", Wait},
		{"a change that doesn't say of what", Wait, until - 1, nameless, nil, false, "2", Wait},
		{"a read that takes too long", Read, until, store.Record{}, down, true, "1", Sleep},
		{"a pause", Sleep, until, store.Record{}, nil, false, "1", Read},
	} {
		r := newRig(t, false)
		r.h.Tell(Env{}, Action{Kind: Read, Key: "job"}, taken, nil)
		r.now = c.now
		r.h.Tell(r.env(), Action{Kind: c.kind, Key: "job", Version: "1", Until: until}, c.rec, c.err)
		if (r.h.Err != nil) != c.fails || r.h.Seen().Rec.Version != c.shown {
			t.Errorf("%s: %v, and version %s", c.name, r.h.Err, r.h.Seen().Rec.Version)
		}
		if act := r.h.Next(r.env()); act.Kind != c.next {
			t.Errorf("%s: then %v, want %v", c.name, act.Kind, c.next)
		}
	}
}

// follower has a hold that follows the session that keeps its name wait for both keys.
func follower(t *testing.T) (r *rig, wait Action, session store.Record) {
	r = newRig(t, false)
	r.h.Follow = true
	r.read(store.Record{Key: "job", Owner: "other", Token: 7, TTL: rigTTL, Session: ".session/other", Version: "3"}, nil)
	session = store.Record{Key: ".session/other", Owner: "other", Token: 1, TTL: rigTTL, Version: "4"}
	r.read(session, nil)
	if wait = r.next(Wait); wait.Also != session.Key {
		t.Fatalf("%+v, want a wait for both", wait)
	}
	return r, wait, session
}

// A wait for two keys is about the key that it found changed.
func TestFinding_N1_TheSecondKeyIsToldOf(t *testing.T) {
	r, act, session := follower(t)
	session.Version = "5"
	r.h.Tell(r.env(), act, session, nil)
	if next := r.next(Wait); next.Version != "3" || next.AlsoVersion != "5" {
		t.Errorf("%+v after %+v", next, act)
	}
	r, act, session = follower(t) // of what failed, only the failure is known
	r.h.Tell(r.env(), act, session, errors.New("down"))
	if next := r.next(Sleep); r.h.Err == nil {
		t.Errorf("%+v, without an error", next)
	}
}

// What a wait for two keys found of the name itself isn't told of the session: a name that is free now is taken.
func TestFinding_N1_TheFirstKeyIsToldOf(t *testing.T) {
	r, act, _ := follower(t)
	r.h.Tell(r.env(), act, store.Record{Key: "job", Token: 7, TTL: rigTTL, Version: "5"}, nil)
	if next := r.next(Write); next.Rec.Key != "job" || next.Rec.Version != "5" {
		t.Errorf("%+v, want the claim of the free name", next)
	}
}

// A request is sent once more only before it is given up.
func TestRepeated(t *testing.T) {
	for after, again := range map[clock.Instant]clock.Instant{9: 109, 10: 0, 11: 0} {
		act := Action{Until: 110}.Repeated(100, after.Sub(0))
		if act.Again != again || (act.Asked == 100) != (again != 0) {
			t.Errorf("after %d: %+v", after, act)
		}
	}
}

// A trace parent outlives its term, unless it is longer than any that is one.
func TestTraceOf(t *testing.T) {
	for n, kept := range map[int]bool{0: false, 1: true, MaxTraceParent: true, MaxTraceParent + 1: false} {
		if got := TraceOf(map[string]string{store.InfoTraceParent: strings.Repeat("x", n), "host": "h"}); (len(got) == 1) != kept {
			t.Errorf("of %d bytes: %v", n, got)
		}
	}
}
