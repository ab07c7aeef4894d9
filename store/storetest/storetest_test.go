package storetest

import (
	"context"
	"flag"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.nofailfile", "true") // engines fail here on purpose
	goleak.VerifyTestMain(m)
}

// instanceOf returns what a factory would for handles of db.
func instanceOf(open func() store.Store) Instance {
	return Instance{
		Open:   func(context.Context) (store.Store, error) { return open(), nil },
		Pushes: true,
		HasAge: true,
	}
}

// The suite passes on engines that are right: one that pushes, one that is polled, one behind a network with delays, one
// whose connection can be cut, and one that is said to be slow and volatile.
func TestRightEngines(t *testing.T) {
	right := map[string]func() Instance{
		"pushes": func() Instance {
			db := memory.NewDB(memory.Options{})
			return instanceOf(func() store.Store { return db.Open() })
		},
		"polled": func() Instance {
			db := memory.NewDB(memory.Options{})
			inst := instanceOf(func() store.Store { return struct{ store.Store }{db.Open()} })
			inst.Pushes = false
			return inst
		},
		"far": func() Instance {
			db := memory.NewDB(memory.Options{})
			plan := faulty.Random(1, faulty.Rates{Delay: 0.5, ReplyDelay: 0.5, MaxDelay: time.Millisecond})
			return instanceOf(func() store.Store { return faulty.Wrap(db.Open(), plan) })
		},
		"cut": func() Instance {
			db := memory.NewDB(memory.Options{})
			var outage faulty.Outage
			inst := instanceOf(func() store.Store { return faulty.Wrap(db.Open(), outage.Plan(nil)) })
			inst.Cut = func() error { outage.Start(); return nil }
			inst.Heal = func() error { outage.End(); return nil }
			return inst
		},
		"replicated, reads durable":       func() Instance { return pairOf(store.ReadDurable) },
		"replicated, reads of the leader": func() Instance { return pairOf(store.ReadLeader) },
		"replicated, local reads":         func() Instance { return pairOf(store.ReadLocal) },
		"slow": func() Instance {
			db := memory.NewDB(memory.Options{})
			inst := instanceOf(func() store.Store { return db.Open() })
			inst.Slow, inst.Volatile, inst.HasAge = true, true, false
			return inst
		},
	}
	for name, build := range right {
		t.Run(name, func(t *testing.T) {
			for _, c := range checks {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						inst := build()
						if c.needs != nil && c.needs(inst) != "" {
							t.Skip(c.needs(inst))
						}
						if err := c.try(t.Context(), inst, t.Logf); err != nil {
							t.Error(err)
						}
					})
				})
			}
		})
	}
}

// A server that is well may have a fault of its own now and then: a write that it has refused is tried again.
func TestRefusalsMayBeUnclear(t *testing.T) {
	for _, name := range []string{"ConflictCarriesCurrent", "LargestRecords", "NoAliasing", "AgeIsLowerBound", "DeleteChecksVersion", "VersionsAreNeverReused", "OtherVersionsNeverMatch"} {
		i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
		if i < 0 {
			t.Errorf("no check is called %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db, refusals := memory.NewDB(memory.Options{}), new(atomic.Int64)
				inst := instanceOf(func() store.Store {
					e := &engine{Store: db.Open()}
					doubtful(e, func() bool { return refusals.Add(1)%(unknowns+1) != 0 })
					return e
				})
				if err := checks[i].try(t.Context(), inst, t.Logf); err != nil {
					t.Error(err)
				}
				if refusals.Load() == 0 {
					t.Error("nothing was refused")
				}
			})
		})
	}
}

// Every engine that is broken in some way is caught by the checks that are about it, and there is such an engine for every
// check.
func TestBrokenEngines(t *testing.T) {
	tried := map[string]bool{}
	for _, b := range slices.Concat(brokenRecords, brokenWrites, brokenReads, brokenOutcomes, brokenWaits, brokenLives, brokenReplicas) {
		for _, name := range b.caught {
			tried[name] = true
			t.Run(b.name+"/"+name, func(t *testing.T) {
				i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
				if i < 0 {
					t.Fatal("no such check")
				}
				synctest.Test(t, func(t *testing.T) {
					inst := b.build()
					if c := checks[i]; c.needs != nil && c.needs(inst) != "" {
						t.Fatalf("the check does not apply: %s", c.needs(inst))
					}
					err := checks[i].try(t.Context(), inst, t.Logf)
					if err == nil {
						t.Fatal("the check passes")
					}
					t.Log(err)
				})
			})
		}
	}
	for _, c := range checks {
		if !tried[c.name] {
			t.Errorf("no broken engine shows that %s catches anything", c.name)
		}
	}
}

// Odd keys are valid, and each is there once.
func TestOddKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range odd {
		if err := driver.CheckKey(key); err != nil {
			t.Error(err)
		}
		if seen[key] {
			t.Errorf("%q is there twice", key)
		}
		seen[key] = true
	}
}
