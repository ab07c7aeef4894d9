package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// The store is away: ids go on until the window of the server's number is over, and not longer; then there is a problem of its own, and
// when the store is back there are ids again.
func TestIDsEndWithTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clock.NewFake(0)
		clk.StepWall(30 * 365 * 24 * time.Hour) // layouts begin later than the bubble's time
		net := faulty.Wrap(memory.NewDB(memory.Options{Clock: clk}).Open(), nil)
		manager, err := lease.NewManager(net, lease.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		m := newMint(manager, nil)
		o := order{layout: flake.Snowflake(), n: 3}
		ask := func() (ids []string, err error) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			ids, _, err = m.make(ctx, o)
			return ids, err
		}
		seen := map[string]bool{}
		note := func(ids []string) {
			for _, id := range ids {
				if seen[id] {
					t.Errorf("%s twice", id)
				}
				seen[id] = true
			}
		}
		ids, err := ask()
		if err != nil {
			t.Fatal(err)
		}
		note(ids)
		ceiling := m.known("twitter").hold.Ceiling()
		var outage faulty.Outage
		net.SetPlan(outage.Plan(nil))
		outage.Start()
		for {
			ids, err = ask()
			if err != nil {
				break
			}
			note(ids)
			if clk.Wall().After(ceiling.Add(time.Minute)) {
				t.Fatalf("there are ids at %v, and the window ended at %v", clk.Wall(), ceiling)
			}
			time.Sleep(time.Second)
		}
		if at := clk.Wall(); at.Before(ceiling) || at.After(ceiling.Add(time.Minute)) {
			t.Errorf("they ended at %v, the window did at %v", at, ceiling)
		}
		var p *api.Problem
		if !errors.As(noIDs(err), &p) || p.Code != api.CodeNoIDs {
			t.Errorf("then there is %v", noIDs(err))
		}
		for id := range seen {
			n, err := flake.Parse(id)
			if err != nil {
				t.Fatal(err)
			}
			if parts, err := flake.Decode(flake.Snowflake(), n); err != nil || !parts.Time.Before(ceiling) {
				t.Errorf("%s: %+v, %v: past the window's end at %v", id, parts, err, ceiling)
			}
		}
		outage.End()
		if ids, err = ask(); err != nil {
			t.Errorf("when the store is back: %v", err)
		}
		note(ids)
		if err := errors.Join(m.close(), net.Close()); err != nil {
			t.Error(err)
		}
	})
}
