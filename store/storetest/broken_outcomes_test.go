package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// brokenOutcomes say something else of a write than what happened.
var brokenOutcomes = []breakage{
	each("doesn't look at the context", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			return e.Store.Put(context.WithoutCancel(ctx), rec)
		}
	}, "DoneContext"),
	each("forgets the cause", func(e *engine) {
		e.get = func(ctx context.Context, key string) (store.Record, error) {
			if ctx.Err() != nil {
				return store.Record{}, ctx.Err()
			}
			return e.Store.Get(ctx, key)
		}
	}, "DoneContext"),
	each("calls what it never sent unknown", func(e *engine) {
		e.remove = func(ctx context.Context, key, version string) error {
			if ctx.Err() != nil {
				return driver.Unknown(key, context.Cause(ctx))
			}
			return e.Store.Delete(ctx, key, version)
		}
	}, "DoneContext"),
	each("never knows that it refused a write", func(e *engine) { doubtful(e, func() bool { return true }) }, "LargestRecords", "ConflictCarriesCurrent"),
	far("calls a Put that was cut off not done", func(f *faulty.Store) store.Store { return notDone{f, false} }, "CancelledWrites"),
	far("calls a Delete that was cut off not done", func(f *faulty.Store) store.Store { return notDone{f, true} }, "CancelledWrites"),
	each("calls a write done that it will do", func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			time.Sleep(time.Millisecond)
			if ctx.Err() != nil { // and then doesn't
				rec.Version += "?"
				return rec, nil
			}
			return e.Store.Put(ctx, rec)
		}
	}, "CancelledWrites"),
	hooked("calls a Put that a cut took not done", func(f *faulty.Store) store.Store { return notDone{f, false} },
		func(_ *faulty.Outage, op faulty.Op) faulty.Fault {
			return faulty.Fault{LoseReply: op.Kind == faulty.Put, Drop: op.Kind != faulty.Put, Silent: true}
		}),
	hooked("does not notice a cut", nil, func(*faulty.Outage, faulty.Op) faulty.Fault { return faulty.Fault{} }),
	hooked("loses a wait in a cut", nil, func(_ *faulty.Outage, op faulty.Op) faulty.Fault {
		return faulty.Fault{Drop: true} // a push as well, and for good
	}),
}

// notDone reports the unknown outcome of a Put, or of a Delete, as something else.
type notDone struct {
	*faulty.Store
	deletes bool
}

func (n notDone) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	got, err := n.Store.Put(ctx, rec)
	if !n.deletes && errors.Is(err, store.ErrUnknownOutcome) {
		err = context.Cause(ctx)
	}
	return got, err
}

func (n notDone) Delete(ctx context.Context, key, version string) error {
	err := n.Store.Delete(ctx, key, version)
	if n.deletes && errors.Is(err, store.ErrUnknownOutcome) {
		err = context.Cause(ctx)
	}
	return err
}

// far returns an engine at the end of a slow connection.
func far(name string, wrap func(*faulty.Store) store.Store, caught ...string) breakage {
	return breakage{name, caught, func() Instance {
		db := memory.NewDB(memory.Options{})
		return instanceOf(func() store.Store {
			return wrap(faulty.Wrap(db.Open(), func(faulty.Op) faulty.Fault {
				return faulty.Fault{Delay: time.Millisecond, ReplyDelay: time.Millisecond}
			}))
		})
	}}
}

// hooked returns an engine with a connection that can be cut, and with what then happens to requests. It happens to a push
// that comes right after the cut, too.
func hooked(name string, wrap func(*faulty.Store) store.Store, during func(*faulty.Outage, faulty.Op) faulty.Fault) breakage {
	return breakage{name, []string{"CutAndHeal"}, func() Instance {
		db := memory.NewDB(memory.Options{})
		var outage faulty.Outage
		var mu sync.Mutex
		var cut, wasCut bool
		plan := func(op faulty.Op) faulty.Fault {
			mu.Lock()
			defer mu.Unlock()
			if cut || wasCut && op.Kind == faulty.Push {
				return during(&outage, op)
			}
			return faulty.Fault{}
		}
		inst := instanceOf(func() store.Store {
			f := faulty.Wrap(db.Open(), plan)
			if wrap == nil {
				return f
			}
			return wrap(f)
		})
		set := func(now bool) func() error {
			return func() error {
				mu.Lock()
				defer mu.Unlock()
				cut, wasCut = now, true
				return nil
			}
		}
		inst.Cut, inst.Heal = set(true), set(false)
		return inst
	}}
}
