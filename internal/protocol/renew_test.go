package protocol

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// toRenewal passes the time until the next renewal, and returns when that is.
func (r *rig) toRenewal() clock.Instant {
	r.t.Helper()
	r.sleep()
	return r.now
}

func TestRenewal(t *testing.T) {
	for jitter, after := range map[float64]time.Duration{0: 24 * time.Second, 0.5: 27 * time.Second, 1: 30 * time.Second} {
		r := newRig(t, false)
		r.jitter = jitter
		r.read(store.Record{Key: "job"}, nil)
		r.wrote("1", nil)
		sent := r.toRenewal()
		if sent != 1000+clock.Instant(after) {
			t.Errorf("jitter %v: renewed after %v, want %v", jitter, time.Duration(sent-1000), after)
		}
		act := r.next(Write)
		if act.Until != r.h.Deadline || act.Again != sent.Add(rigAttempt) || act.Rec.Version != "1" || act.Rec.Nonce != "n2" || act.Rec.Token != r.h.Term.Token || act.Rec.Owner != "me" {
			t.Errorf("the renewal: %+v", act)
		}
		r.now += 9
		r.wrote("2", nil)
		if r.h.Deadline != sent.Add(rigValidity) || r.h.Term.Version != "2" || r.h.Failing {
			t.Errorf("valid until %v under %+v", r.h.Deadline, r.h.Term)
		}
	}
}

func TestRenewalOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		drive func(r *rig)
		check func(r *rig, sent clock.Instant)
	}{
		"a conflict with its own nonce": {func(r *rig) {
			rec := r.next(Write).Rec
			rec.Version = "2"
			r.wrote("", conflict(rec))
		}, renewed},
		"a foreign conflict":            {func(r *rig) { r.wrote("", conflict(foreign("9"))) }, isLost(CauseTaken)},
		"a conflict with a clone":       {func(r *rig) { r.wrote("", conflict(clone(r))) }, isLost(CauseTaken)},
		"a conflict with a free record": {func(r *rig) { r.wrote("", conflict(marked(Freed(r.h.Term, WhyReleased, noon, "x")))) }, isLost(CauseTaken)},
		"the record is gone":            {func(r *rig) { r.wrote("", driver.NotFound("job")) }, isLost(CauseTaken)},
		"broken":                        {func(r *rig) { r.wrote("", conflict(marked(Broken(r.h.Term, "ops", rigTTL, "x")))) }, isLost(CauseBroken)},
		"a clone, broken":               {func(r *rig) { r.wrote("", conflict(marked(Broken(clone(r), "ops", rigTTL, "x")))) }, isLost(CauseTaken)},
		"refused":                       {func(r *rig) { r.wrote("", errRefused) }, jeopardy(errRefused, false)},
		"corrupt is tried again":        {func(r *rig) { r.wrote("", store.ErrCorrupt) }, jeopardy(store.ErrCorrupt, false)},
		"unknown":                       {func(r *rig) { r.wrote("", errLost) }, jeopardy(store.ErrUnknownOutcome, true)},
		"unknown: landed": {func(r *rig) {
			rec := r.wrote("2", errLost)
			r.sleep()
			r.read(rec, nil)
		}, renewed},
		"unknown: not yet": {func(r *rig) {
			first := r.wrote("2", errLost)
			r.sleep()
			r.read(r.h.Term, nil)
			if !r.h.Failing {
				r.t.Error("out of jeopardy before a renewal has landed")
			}
			if again := r.next(Write).Rec; again.Nonce != first.Nonce || again.Version != "1" {
				r.t.Errorf("sent again: %+v", again)
			}
			r.wrote("2", nil)
		}, renewed},
		"unknown: not yet, and it beats the second": {func(r *rig) {
			first := r.wrote("2", errLost)
			r.sleep()
			r.read(r.h.Term, nil)
			r.wrote("", conflict(first))
		}, renewed},
		"unknown: superseded": {func(r *rig) {
			r.wrote("2", errLost)
			r.sleep()
			r.read(foreign("9"), nil)
			if r.h.Err != nil {
				r.t.Errorf("the loss is blamed on %v", r.h.Err)
			}
		}, isLost(CauseTaken)},
		"unknown: landed and broken since": {func(r *rig) {
			rec := r.wrote("2", errLost)
			r.sleep()
			r.read(marked(Broken(rec, "ops", rigTTL, "x")), nil)
		}, isLost(CauseBroken)},
		"unknown: broken before it landed": {func(r *rig) {
			r.wrote("2", errLost)
			r.sleep()
			r.read(marked(Broken(r.h.Term, "ops", rigTTL, "x")), nil)
		}, isLost(CauseBroken)},
		"an answer after the deadline": {func(r *rig) { r.wroteAt(r.h.Deadline, "2", nil) }, isLost(CauseExpired)},
		"an answer after the deadline, in jeopardy": {func(r *rig) {
			rec := r.wrote("2", errLost)
			r.sleep()
			r.next(Read)
			r.now = r.h.Deadline
			r.h.Read(r.env(), "job", rec, nil)
		}, isLost(CauseOutage)},
		"a conflict after the deadline": {func(r *rig) { r.wroteAt(r.h.Deadline, "", conflict(foreign("9"))) }, isLost(CauseExpired)},
		"an answer just in time":        {func(r *rig) { r.wroteAt(r.h.Deadline-1, "2", nil) }, renewed},
	} {
		t.Run(name, func(t *testing.T) {
			r := heldRig(t)
			sent := r.toRenewal()
			c.drive(r)
			c.check(r, sent)
		})
	}
}

func renewed(r *rig, sent clock.Instant) {
	r.t.Helper()
	r.phase(Held)
	if r.h.Deadline != sent.Add(rigValidity) || r.h.Term.Version != "2" || r.h.Failing || r.h.Err != nil {
		r.t.Errorf("valid until %v under %+v, failing: %v (%v)", r.h.Deadline, r.h.Term, r.h.Failing, r.h.Err)
	}
}

func isLost(cause Cause) func(*rig, clock.Instant) {
	return func(r *rig, _ clock.Instant) { r.t.Helper(); r.lost(cause) }
}

func jeopardy(want error, ask bool) func(*rig, clock.Instant) {
	return func(r *rig, _ clock.Instant) {
		r.t.Helper()
		r.phase(Held)
		if !r.h.Failing || !errors.Is(r.h.Err, want) || r.h.Deadline != 1000+clock.Instant(rigValidity) {
			r.t.Errorf("failing: %v (%v), valid until %v", r.h.Failing, r.h.Err, r.h.Deadline)
		}
		r.sleep()
		if act := r.h.Next(r.env()); (act.Kind == Read) != ask || (act.Kind == Write) == ask {
			r.t.Errorf("then action %d", act.Kind)
		}
	}
}

// clone is the record as a clone of this process has renewed it.
func clone(r *rig) store.Record {
	rec := r.h.Term
	rec.Nonce, rec.Version = "clone", "9"
	return rec
}

func marked(rec store.Record) store.Record {
	rec.Version = "8"
	return rec
}

// A term that came back with a restored store is not renewed: what was taken since has been forgotten.
func TestRenewalOverARestoredStore(t *testing.T) {
	r := heldRig(t)
	r.toRenewal()
	back := r.h.Term
	back.Version = "77"
	r.wrote("", conflict(back))
	r.lost(CauseTaken)
}

// A notice is shown to the driver, and taken off by the next write.
func TestNotice(t *testing.T) {
	r := heldRig(t)
	sent := r.toRenewal()
	r.wrote("", conflict(marked(Noticed(r.h.Term, "ops", []byte("told"), "x"))))
	r.phase(Held)
	if string(r.h.Notice) != "told" {
		t.Errorf("notice %q", r.h.Notice)
	}
	rec := r.wrote("2", nil)
	if rec.Intervention != "" || rec.Note != "" || rec.Data != nil || baseNonce(rec.Nonce) != rec.Nonce {
		t.Errorf("%+v", rec)
	}
	renewed(r, sent)
}

// Retries come ever more slowly up to the length of an attempt, never beyond the deadline, and no request outlasts it.
func TestRenewalRetries(t *testing.T) {
	r := heldRig(t)
	r.toRenewal()
	deadline, requests := r.h.Deadline, 0
	for r.h.Phase == Held {
		switch act := r.h.Next(r.env()); act.Kind {
		case Write, Read:
			requests++
			if act.Until != deadline || act.Again > r.now.Add(rigAttempt) || act.Again >= deadline {
				t.Fatalf("at %v a request until %v, repeated at %v", r.now, act.Until, act.Again)
			}
			if r.now = act.Again; r.now == 0 {
				r.now = act.Until
			}
			if act.Kind == Write {
				r.h.Wrote(r.env(), store.Record{}, errLost)
			} else {
				r.h.Read(r.env(), "job", store.Record{}, errRefused)
			}
		case Sleep:
			if act.Until > deadline || act.Until <= r.now {
				t.Fatalf("at %v a pause until %v", r.now, act.Until)
			}
			r.now = act.Until
			r.h.Woke()
		}
	}
	r.lost(CauseOutage)
	if r.now != deadline || requests < 7 {
		t.Errorf("lost at %v after %d requests, want it at %v", r.now, requests, deadline)
	}
}

// A hold that a session keeps is valid while the session is, and has nothing to renew.
func TestKeptHold(t *testing.T) {
	claimed := func(t *testing.T, session clock.Instant, took time.Duration) *rig {
		r := newRig(t, false)
		r.h = New("job", Claim{Owner: "me", TTL: rigTTL, Session: "s"}, r.h.Timing, false, Seen{}, nil)
		r.session = session
		r.read(store.Record{Key: "job"}, nil)
		act := r.next(Write)
		if act.Rec.Session != "s" {
			t.Errorf("%+v", act.Rec)
		}
		r.now = r.now.Add(took)
		act.Rec.Version = "1"
		r.h.Wrote(r.env(), act.Rec, nil)
		return r
	}
	t.Run("valid while its session is", func(t *testing.T) {
		r := claimed(t, 5000, 0)
		r.phase(Held)
		if !r.h.Valid(4999) || r.h.Valid(5000) {
			t.Errorf("valid until %d", r.h.Deadline)
		}
		if act := r.next(Sleep); act.Until != 5000 {
			t.Errorf("%+v", act)
		}
		r.now = 5000
		r.lost(CauseExpired)
	})
	t.Run("its session is over when the claim lands", func(t *testing.T) {
		r := claimed(t, 5000, 4000)
		r.lost(CauseSession)
		r.stop("")
		r.wrote("2", nil) // what landed is let go
		r.ended(nil)
	})
	t.Run("its session ends", func(t *testing.T) {
		r := claimed(t, 5000, 0)
		r.h.LoseSession()
		r.lost(CauseSession)
		r.h.LoseSession()
		r.lost(CauseSession)
	})
}

// Whatever answers come and whenever, a hold is never valid beyond Sent + Validity of a write of its own that landed, a
// loss is final, and the token it holds is the one that it claimed with.
func TestHoldIsNeverValidForTooLong(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &rig{t: t, h: New("job", Claim{Owner: "me", TTL: rigTTL}, rigTiming(), false, Seen{}, nil), now: 1000}
		stored := store.Record{Key: "job"}
		sent := map[string]clock.Instant{} // by nonce: when a write of that was first asked for
		latest := clock.Always             // Sent of the own write that landed last
		version := 0
		var lost bool
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			act := r.h.Next(r.env())
			switch act.Kind {
			case Write:
				if _, again := sent[act.Rec.Nonce]; !again {
					sent[act.Rec.Nonce] = r.now
				}
				lands := rapid.Bool().Draw(rt, "lands") && stored.Version == act.Rec.Version
				r.now = r.now.Add(time.Duration(rapid.Int64Range(0, int64(rigValidity)).Draw(rt, "takes")))
				if lands {
					version++
					stored = act.Rec
					stored.Version = string(rune('0' + version))
					if stored.Owner == "me" {
						latest = sent[stored.Nonce]
					}
				}
				switch {
				case rapid.Bool().Draw(rt, "no answer"):
					r.h.Wrote(r.env(), store.Record{}, errLost)
				case lands:
					r.h.Wrote(r.env(), stored, nil)
				case stored.Version != act.Rec.Version:
					r.h.Wrote(r.env(), store.Record{}, conflict(stored))
				default:
					r.h.Wrote(r.env(), store.Record{}, errRefused)
				}
			case Read:
				r.now = r.now.Add(time.Duration(rapid.Int64Range(0, int64(rigAttempt)).Draw(rt, "takes")))
				if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
					r.h.Read(r.env(), act.Key, store.Record{}, errRefused)
				} else {
					r.h.Read(r.env(), act.Key, stored, nil)
				}
			case Sleep, Wait:
				r.now = act.Until
				r.h.Woke()
			}
			if rapid.IntRange(0, 20).Draw(rt, "taken") == 0 && r.h.Phase == Held {
				version++
				stored = foreign(string(rune('0' + version)))
			}
			if r.h.Valid(r.now) && (latest == clock.Always || r.now >= latest.Add(rigValidity)) {
				rt.Fatalf("valid at %v, the last write was sent at %v", r.now, latest)
			}
			if lost && r.h.Phase != Lost {
				rt.Fatalf("phase %d after a loss", r.h.Phase)
			}
			lost = r.h.Phase == Lost
		}
	})
}

// A renewal that has no answer yet has the hold in jeopardy, and its answer takes it out: counted from when the first copy was sent.
func TestALateRenewal(t *testing.T) {
	r := heldRig(t)
	sent := r.toRenewal()
	act := r.next(Write)
	r.now = act.Again
	r.h.Late(r.env())
	if !r.h.Failing || !errors.Is(r.h.Err, store.ErrUnknownOutcome) || !r.h.Valid(r.now) {
		t.Errorf("failing %v, %v, valid %v", r.h.Failing, r.h.Err, r.h.Valid(r.now))
	}
	r.now = act.Until - 1
	stored := act.Rec
	stored.Version = "2"
	r.h.Wrote(r.env(), stored, nil)
	renewed(r, sent)

	r = heldRig(t)
	r.toRenewal()
	r.now = r.next(Write).Until
	r.h.Late(r.env())
	r.lost(CauseExpired)
	r.h.Late(r.env())
	if r.h.Failing || r.h.Err != nil {
		t.Errorf("a hold that is over is failing: %v", r.h.Err)
	}
}
