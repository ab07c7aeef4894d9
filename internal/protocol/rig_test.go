package protocol

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The timings of a rig's hold: valid for 80 of 100 s, renewed every 24 to 30 s.
const (
	rigTTL      = 100 * time.Second
	rigValidity = 80 * time.Second
	rigRenew    = 30 * time.Second
	rigAttempt  = 5 * time.Second
	rigAnswer   = 45 * time.Second // how long a request that takes a name may take: half of the validity, and an attempt
)

var (
	errRefused = errors.New("refused")
	errLost    = driver.Unknown("job", errors.New("reply lost"))
)

// rig drives one hold by hand: it plays the driver, the clock and the store.
type rig struct {
	t       *testing.T
	h       Hold
	now     clock.Instant
	jitter  float64
	session clock.Instant
	nonces  int
}

func rigTiming() Timing {
	return Timing{TTL: rigTTL, Renew: rigRenew, Attempt: rigAttempt}.WithDefaults()
}

func newRig(t *testing.T, try bool) *rig {
	t.Helper()
	timing := rigTiming()
	if err := timing.Check(); err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, h: New("job", Claim{Owner: "me", TTL: rigTTL}, timing, try, Seen{}, nil), now: 1000}
}

// heldRig returns a rig whose hold has just been claimed, at the instant 1000, as version 1.
func heldRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, false)
	r.read(store.Record{Key: "job"}, nil)
	r.wrote("1", nil)
	r.phase(Held)
	return r
}

func (r *rig) env() Env {
	return Env{
		Now: r.now, Wall: noon.Add(time.Duration(r.now)), Jitter: r.jitter, Session: r.session,
		Nonce: func() string { r.nonces++; return fmt.Sprint("n", r.nonces) },
	}
}

// next fails unless the hold asks for that kind of action now.
func (r *rig) next(want Kind) Action {
	r.t.Helper()
	act := r.h.Next(r.env())
	if act.Kind != want {
		r.t.Fatalf("at %v the hold asks for action %d %+v, want %d", time.Duration(r.now), act.Kind, act, want)
	}
	return act
}

// read answers the read that has to be asked for.
func (r *rig) read(rec store.Record, err error) {
	r.t.Helper()
	act := r.next(Read)
	if rec.Key == "" {
		rec.Key = act.Key
	}
	if act.Key != rec.Key {
		r.t.Fatalf("the hold reads %s, want %s", act.Key, rec.Key)
	}
	r.h.Read(r.env(), act.Key, rec, err)
}

// wrote answers the write that has to be asked for, and returns what was to be written, as that version.
func (r *rig) wrote(version string, err error) store.Record {
	r.t.Helper()
	rec := r.next(Write).Rec
	if err == nil {
		stored := rec
		stored.Version = version
		r.h.Wrote(r.env(), stored, nil)
		return stored
	}
	r.h.Wrote(r.env(), store.Record{}, err)
	rec.Version = version
	return rec
}

// wroteAt answers, at that instant, the write that has to be asked for now.
func (r *rig) wroteAt(at clock.Instant, version string, err error) {
	r.t.Helper()
	rec := r.next(Write).Rec
	rec.Version = version
	r.now = at
	r.h.Wrote(r.env(), rec, err)
}

// sleep passes the pause that has to be asked for.
func (r *rig) sleep() {
	r.t.Helper()
	act := r.next(Sleep)
	if act.Until <= r.now {
		r.t.Fatalf("a pause until %v, at %v", time.Duration(act.Until), time.Duration(r.now))
	}
	r.now = act.Until
	r.h.Woke()
}

func (r *rig) phase(want Phase) {
	r.t.Helper()
	if r.h.Phase != want {
		r.t.Fatalf("phase %d (cause %d, %v), want %d", r.h.Phase, r.h.Cause, r.h.Err, want)
	}
}

func (r *rig) lost(want Cause) {
	r.t.Helper()
	r.next(Idle)
	r.phase(Lost)
	if r.h.Cause != want || r.h.Valid(r.now) {
		r.t.Errorf("lost by cause %d, want %d", r.h.Cause, want)
	}
}

// ended fails unless the hold has ended with that error.
func (r *rig) ended(want error) {
	r.t.Helper()
	r.next(Idle)
	r.phase(Ended)
	if want == nil && r.h.Err != nil || want != nil && !errors.Is(r.h.Err, want) {
		r.t.Errorf("ended with %v, want %v", r.h.Err, want)
	}
}

func (r *rig) stop(to string) {
	r.h.Stop(r.env(), Exit{Why: WhyReleased, To: to, By: r.now.Add(rigRenew)})
}

func conflict(rec store.Record) error { return &store.ConflictError{Current: rec} }

// foreign is a record that somebody else has just taken.
func foreign(version string) store.Record {
	return store.Record{Key: "job", Owner: "other", Token: 1 << 50, TTL: rigTTL, Nonce: "their" + version, Version: version}
}
