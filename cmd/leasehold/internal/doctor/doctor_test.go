package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// around is a store with some calls replaced.
type around struct {
	store.Store
	put func(ctx context.Context, rec store.Record) (store.Record, error)
	del func(ctx context.Context, key, version string) error
}

func (a around) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if a.put == nil {
		return a.Store.Put(ctx, rec)
	}
	return a.put(ctx, rec)
}

func (a around) Delete(ctx context.Context, key, version string) error {
	if a.del == nil {
		return a.Store.Delete(ctx, key, version)
	}
	return a.del(ctx, key, version)
}

func (a around) Inspect(context.Context) []driver.Finding {
	return []driver.Finding{{What: "server", Status: driver.StatusOK, Detail: "3.1"}}
}

func (a around) Properties() store.Properties {
	return store.Properties{Engine: "around", Consistency: "one primary", Fencing: store.FencingPerPrimary}
}

func examine(t *testing.T, wrap func(*around)) map[string]driver.Finding {
	t.Helper()
	return examineBy(t, clock.NewFake(0), wrap) // on which no write is slow
}

func examineBy(t *testing.T, clk clock.Clock, wrap func(*around)) map[string]driver.Finding {
	t.Helper()
	st := memory.New(memory.Options{})
	defer st.Close()
	a := &around{Store: st}
	wrap(a)
	found := map[string]driver.Finding{}
	for _, f := range Examine(t.Context(), *a, Options{Clock: clk, TTL: 20 * time.Second, Samples: 10}) {
		found[f.What] = f
	}
	if left, err := count(st); err != nil || left > 0 && a.del == nil {
		t.Errorf("it left %d records: %v", left, err)
	}
	return found
}

func count(st store.Store) (n int, err error) {
	for _, err := range st.List(context.Background(), "") {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func TestGoodStore(t *testing.T) {
	found := examine(t, func(*around) {})
	for _, what := range []string{"server", "consistency", "conditional writes", "time of a read", "time of a write", "TTL", "deleting"} {
		if found[what].Status != driver.StatusOK {
			t.Errorf("%s: %+v", what, found[what])
		}
	}
	if f := found["fencing"]; f.Status != driver.StatusWarn || f.Advice == "" {
		t.Errorf("tokens that a failover loses are not warned of: %+v", f)
	}
}

func TestUnconditionalWritesAreFound(t *testing.T) {
	for name, wrap := range map[string]func(*around, store.Record) store.Record{
		"everywhere": func(a *around, rec store.Record) store.Record {
			cur, err := store.Load(context.Background(), a.Store, rec.Key)
			if err == nil {
				rec.Version = cur.Version
			}
			return rec
		},
		"on what is there": func(a *around, rec store.Record) store.Record {
			if rec.Version != "" {
				cur, _ := store.Load(context.Background(), a.Store, rec.Key)
				rec.Version = cur.Version
			}
			return rec
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := examine(t, func(a *around) {
				a.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
					return a.Store.Put(ctx, wrap(a, rec))
				}
			})["conditional writes"]
			if f.Status != driver.StatusFail || !strings.Contains(f.Advice, "worthless") {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestWhatFailsIsTold(t *testing.T) {
	found := examine(t, func(a *around) {
		a.put = func(context.Context, store.Record) (store.Record, error) {
			return store.Record{}, errors.New("no permission")
		}
	})
	if f := found["conditional writes"]; f.Status != driver.StatusFail || !strings.Contains(f.Detail, "create a record: no permission") {
		t.Errorf("%+v", f)
	}
	found = examine(t, func(a *around) {
		a.del = func(context.Context, string, string) error { return errors.New("no permission") }
	})
	if f := found["deleting"]; f.Status != driver.StatusFail || f.Advice == "" {
		t.Errorf("%+v", f)
	}
}

func TestSlowStoreGetsALongerTTL(t *testing.T) {
	clk := clock.NewFake(0)
	found := examineBy(t, clk, func(a *around) {
		a.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			clk.Jump(800 * time.Millisecond)
			return a.Store.Put(ctx, rec)
		}
	})
	if f := found["TTL"]; f.Status != driver.StatusWarn || !strings.Contains(f.Advice, "use 25s") {
		t.Errorf("%+v", f)
	}
}

// TestReads: what a read is worth, and how an unknown outcome is settled, are shown.
func TestReads(t *testing.T) {
	found := map[string]string{}
	for _, f := range promises(store.Properties{Engine: "e", Read: store.ReadLeader, Settle: store.SettledByWrite}) {
		found[f.What] = f.Detail
	}
	if !strings.Contains(found["reads"], "leader: a server that was cut off") || found["unknown outcomes"] != "settled by a second write" {
		t.Errorf("%v", found)
	}
}
