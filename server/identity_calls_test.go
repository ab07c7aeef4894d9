package server_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

func TestIdentityCalls(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{As: "a"}); !errors.Is(err, identity.ErrUndeclared) {
		t.Errorf("%v", err)
	}
	if _, _, err := c.Identities(ctx, "red/blue"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
	o := client.AssignOptions{Values: identity.Values{Range: "5-6"}, As: "a", TTL: time.Hour, Window: time.Minute, Info: map[string]string{"x": "y"}}
	a, err := c.Assign(ctx, "red/blue", o)
	if err != nil || a.Pool != "red/blue" || a.As != "a" || a.TTL != time.Hour || !a.Standing || a.Renewed || a.Ceiling.Sub(a.Floor) != time.Minute || a.Info["x"] != "y" {
		t.Errorf("%+v, %v", a, err)
	}
	if again, err := c.Assign(ctx, "red/blue", o); err != nil || again.Token != a.Token || again.Value != a.Value || !again.Renewed {
		t.Errorf("%+v, %v", again, err)
	}
	var invalid *store.InvalidError
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{As: "b", Value: "7"}); !errors.As(err, &invalid) || invalid.Field != "value" {
		t.Errorf("%v", err)
	}
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{As: "b", Value: a.Value}); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("%v", err)
	}
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{Values: identity.Values{Range: "5-7"}}); !errors.Is(err, identity.ErrMismatch) {
		t.Errorf("%v", err)
	}
	session, err := c.OpenSession(ctx, client.SessionOptions{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Assign(ctx, "red/blue", client.AssignOptions{As: "b", Session: session})
	if err != nil || b.Session != session.ID || b.Standing || b.Holder != session.Holder {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{As: "c"}); !errors.Is(err, identity.ErrExhausted) {
		t.Errorf("%v", err)
	}
	pool, all, err := c.Identities(ctx, "red/blue")
	if err != nil || pool.Pool != "red/blue" || pool.Values.Range != "5-6" || pool.Size != 2 || pool.Layout != "" || len(all) != 2 || all[0].Value != "5" || all[1].Number != 6 {
		t.Errorf("%+v, %+v, %v", pool, all, err)
	}
	for _, id := range []client.Identity{a, b} {
		if err := c.Unassign(ctx, id, time.Now()); err != nil {
			t.Error(err)
		}
		if err := c.Unassign(ctx, id, time.Time{}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("given back twice: %v", err)
		}
	}
	ids, err := c.IDs(ctx, "tsid", 3)
	if err != nil || len(ids) != 3 || ids[0] == ids[1] {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err = c.IDsWith(ctx, "scatter", 2, 7); err != nil || len(ids) != 2 {
		t.Errorf("%v, %v", ids, err)
	}
	if _, err = c.IDs(ctx, "tsid", 0); !errors.As(err, &invalid) || invalid.Field != "n" {
		t.Errorf("%v", err)
	}
}

// An answer that is lost is asked for again: nothing is assigned twice, also to somebody without a name.
func TestIdentityCallsWhoseAnswersAreLost(t *testing.T) {
	s := newSite(t, server.Options{})
	network := servers.Proxy(t, s.Listener.Addr().String())
	c, direct := s.client(t, "http://"+network.Addr), s.client(t, s.URL)
	lost := func(call func() error, done func([]client.Identity) bool) {
		t.Helper()
		network.SwallowReplies(true)
		returned := make(chan error, 1)
		go func() { returned <- call() }()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			_, all, err := direct.Identities(t.Context(), "machines")
			if err == nil && done(all) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("it is not done: %+v, %v", all, err)
			}
		}
		network.SwallowReplies(false)
		if err := <-returned; err != nil {
			t.Error(err)
		}
	}
	var a client.Identity
	lost(func() (err error) {
		a, err = c.Assign(t.Context(), "machines", client.AssignOptions{Values: identity.Values{Range: "1-9"}})
		return err
	}, func(all []client.Identity) bool { return len(all) == 1 && all[0].TTL > time.Hour })
	_, all, err := direct.Identities(t.Context(), "machines")
	if err != nil || len(all) != 1 || all[0].Value != a.Value || all[0].Token != a.Token {
		t.Errorf("assigned %+v; listed %+v, %v", a, all, err)
	}
	lost(func() error { return c.Unassign(t.Context(), a, time.Now()) }, func(all []client.Identity) bool { return len(all) == 0 })
}
