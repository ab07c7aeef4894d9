package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Every error that a server meets comes out of a client as the same one.
func TestErrorsTravel(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	rec := store.Record{Key: "job", Owner: "a", Token: 7, TTL: time.Minute, Acquired: since, Nonce: "n", Version: "v1"}
	for _, err := range []error{
		&lease.HeldError{Key: "job", Owner: "a", Since: since, Token: 7, ExpiresIn: 5 * time.Second, Note: "why"},
		&lease.NotCurrentError{Token: 5, Record: store.Record{Key: "job", Owner: "a", Token: 7}},
		&lease.LostError{Key: "job", Token: 7, Cause: lease.Broken, Err: errors.New("op: stuck")},
		&store.ConflictError{Current: rec},
		&store.InvalidError{Field: "TTL", Value: "1ns", Want: "10 ms or more"},
		driver.Corrupt("job", errors.New("no JSON")),
	} {
		if got := travel(t, fmt.Errorf("on the way: %w", err)); !reflect.DeepEqual(got, err) {
			t.Errorf("%#v\narrives as %#v", err, got)
		}
	}
	for err, target := range map[error]error{
		driver.Unknown("job", errors.New("cut")):  store.ErrUnknownOutcome,
		driver.NotFound("job"):                    store.ErrNotFound,
		driver.Corrupt("job", errors.New("bad")):  store.ErrCorrupt,
		fmt.Errorf("%w: x", election.ErrNoLeader): election.ErrNoLeader,
		election.ErrNotElected:                    election.ErrNotElected,
		election.ErrNoCandidate:                   election.ErrNoCandidate,
		election.ErrNotPaused:                     election.ErrNotPaused,
		election.ErrPauses:                        election.ErrPauses,
		election.ErrTooMany:                       election.ErrTooMany,
		NewProblem(CodeInvalid, "no JSON object"): store.ErrInvalid,
	} {
		if got := travel(t, err); !errors.Is(got, target) {
			t.Errorf("%v arrives as %v", err, got)
		}
	}
	// What may be over later is none of those: a client must not take it for an answer.
	for _, err := range []error{errors.New("dial: refused"), NewProblem(CodeClosing, "closing")} {
		got := travel(t, err)
		for _, target := range []error{store.ErrUnknownOutcome, store.ErrNotFound, store.ErrInvalid, store.ErrConflict, lease.ErrHeld, lease.ErrLost} {
			if errors.Is(got, target) {
				t.Errorf("%v arrives as %v, which matches %v", err, got, target)
			}
		}
	}
}

func travel(t *testing.T, err error) error {
	t.Helper()
	text, jsonErr := json.Marshal(ProblemOf(err))
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	var p Problem
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	if p.Status < 400 || p.Title == "" || p.Detail == "" {
		t.Errorf("%s", text)
	}
	return p.Err()
}

func TestCodes(t *testing.T) {
	for _, c := range Codes() {
		if s := c.Status(); s < 400 || s > 599 || kinds[c].Title == "" {
			t.Errorf("%s has status %d", c, s)
		}
	}
	if got := Code("new one").Status(); got != 500 {
		t.Errorf("a code that isn't known has status %d", got)
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"15": 15 * time.Second, "0.25": 250 * time.Millisecond, `"1m30s"`: 90 * time.Second, "0": 0, "-1": -time.Second, "1e2": 100 * time.Second,
	} {
		var s Seconds
		if err := json.Unmarshal([]byte(text), &s); err != nil || time.Duration(s) != want {
			t.Errorf("%s: %v, %v; want %v", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{`"15"`, `"x"`, "1e300", "true", "[]", `""`} {
		var s Seconds
		if err := json.Unmarshal([]byte(text), &s); err == nil {
			t.Errorf("%s: %v", text, time.Duration(s))
		}
	}
	if text, err := json.Marshal(Seconds(1500*time.Millisecond + 1)); err != nil || string(text) != "1.501" {
		t.Errorf("%s, %v", text, err)
	}
	for text, ok := range map[string]bool{"15": true, "1m": true, "NaN": false, "Inf": false, "": false} {
		if _, err := ParseSeconds(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
