package drive

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// A wait for two keys ends with the first change of either, with the first error of either, and with its context.
func TestFinding_N1_AWaitForTwoKeys(t *testing.T) {
	errRefused := errors.New("refused")
	for name, c := range map[string]struct {
		do   func(t *testing.T, st store.Store, cancel context.CancelCauseFunc)
		fail string // the Wait of this key fails
		key  string
		err  error
	}{
		"the first":        {func(t *testing.T, st store.Store, _ context.CancelCauseFunc) { put(t, st, "a") }, "", "a", nil},
		"the second":       {func(t *testing.T, st store.Store, _ context.CancelCauseFunc) { put(t, st, "b") }, "", "b", nil},
		"its context":      {func(_ *testing.T, _ store.Store, cancel context.CancelCauseFunc) { cancel(errRefused) }, "", "", errRefused},
		"the first fails":  {nil, "a", "", errRefused},
		"the second fails": {nil, "b", "", errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				st := faulty.Wrap(inner, func(op faulty.Op) faulty.Fault {
					if op.Kind == faulty.Wait && op.Key == c.fail {
						return faulty.Fault{Err: errRefused}
					}
					return faulty.Fault{}
				})
				defer st.Close()
				a, b := put(t, st, "a"), put(t, st, "b")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				type answer struct {
					rec store.Record
					err error
				}
				answered := make(chan answer, 1)
				go func() {
					rec, err := Await(ctx, st, protocol.Action{Kind: protocol.Wait, Key: "a", Version: a.Version, Also: "b", AlsoVersion: b.Version})
					answered <- answer{rec, err}
				}()
				synctest.Wait()
				if c.do != nil {
					c.do(t, st, cancel)
				}
				if got := <-answered; got.rec.Key != c.key || !errors.Is(got.err, c.err) {
					t.Errorf("%+v, want %q and %v", got, c.key, c.err)
				}
			})
		})
	}
}

// put writes the record under key again, or makes it.
func put(t *testing.T, st store.Store, key string) store.Record {
	t.Helper()
	rec, err := store.Load(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	rec, err = st.Put(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// What a wait for two keys found is told of the key that it found.
func TestFinding_N1_TheSecondKeyIsToldOf(t *testing.T) {
	d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, protocol.Timing{TTL: ttl}.WithDefaults(), false, Recollection{})
	d.Hold.Follow = true
	env := protocol.Env{Now: 1, Nonce: Nonce}
	tell := func(act protocol.Action, rec store.Record) { d.Hold.Tell(env, act, rec, nil) }
	tell(d.Next(env, true), store.Record{Key: "job", Owner: "other", Token: 7, TTL: ttl, Session: "s", Version: "3"})
	session := store.Record{Key: "s", Owner: "other", Token: 1, TTL: ttl, Version: "4"}
	tell(d.Next(env, true), session)
	act := d.Next(env, true)
	session.Version = "5"
	tell(act, session)
	if next := d.Next(env, true); act.Kind != protocol.Wait || next.Kind != protocol.Wait || next.Version != "3" || next.AlsoVersion != "5" {
		t.Errorf("%+v after %+v", next, act)
	}
}

// What a wait for two keys found of the name itself isn't told of the session: a name that is free now is taken.
func TestFinding_N1_TheFirstKeyIsToldOf(t *testing.T) {
	d := Want("job", protocol.Claim{Owner: "me", TTL: ttl}, protocol.Timing{TTL: ttl}.WithDefaults(), false, Recollection{})
	d.Hold.Follow = true
	env := protocol.Env{Nonce: Nonce}
	d.Hold.Tell(env, d.Next(env, true), store.Record{Key: "job", Owner: "other", Token: 7, TTL: ttl, Session: ".session/other", Version: "3"}, nil)
	d.Hold.Tell(env, d.Next(env, true), store.Record{Key: ".session/other", Owner: "other", Token: 1, TTL: ttl, Version: "4"}, nil)
	act := d.Next(env, true)
	if act.Kind != protocol.Wait || act.Also != ".session/other" {
		t.Fatalf("%+v, want a wait for both", act)
	}
	d.Hold.Tell(env, act, store.Record{Key: "job", Token: 7, TTL: ttl, Version: "5"}, nil)
	if next := d.Next(env, true); next.Kind != protocol.Write || next.Rec.Key != "job" || next.Rec.Version != "5" {
		t.Errorf("%+v, want the claim of the free name", next)
	}
}
