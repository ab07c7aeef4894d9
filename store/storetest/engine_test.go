package storetest

import (
	"context"
	"errors"
	"iter"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// engine is the reference engine with something wrong: what is not nil here takes the place of what is right.
type engine struct {
	*memory.Store
	get    func(ctx context.Context, key string) (store.Record, error)
	put    func(ctx context.Context, rec store.Record) (store.Record, error)
	remove func(ctx context.Context, key, version string) error
	list   func(ctx context.Context, prefix string) iter.Seq2[store.Record, error]
	wait   func(ctx context.Context, key, version string) (store.Record, error)
	close  func() error

	read func(*store.Record) // spoils each record on its way out
}

// out spoils what a method returns.
func (e *engine) out(rec store.Record, err error) (store.Record, error) {
	if e.read == nil {
		return rec, err
	}
	var c *store.ConflictError
	if errors.As(err, &c) {
		e.read(&c.Current)
	}
	if err == nil && rec.Version != "" {
		e.read(&rec)
	}
	return rec, err
}

func (e *engine) Get(ctx context.Context, key string) (store.Record, error) {
	if e.get != nil {
		return e.get(ctx, key)
	}
	return e.out(e.Store.Get(ctx, key))
}

func (e *engine) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if e.put != nil {
		return e.put(ctx, rec)
	}
	return e.out(e.Store.Put(ctx, rec))
}

func (e *engine) Delete(ctx context.Context, key, version string) error {
	if e.remove != nil {
		return e.remove(ctx, key, version)
	}
	_, err := e.out(store.Record{}, e.Store.Delete(ctx, key, version))
	return err
}

func (e *engine) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	if e.list != nil {
		return e.list(ctx, prefix)
	}
	return func(yield func(store.Record, error) bool) {
		for rec, err := range e.Store.List(ctx, prefix) {
			if !yield(e.out(rec, err)) {
				return
			}
		}
	}
}

func (e *engine) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if e.wait != nil {
		return e.wait(ctx, key, version)
	}
	return e.out(e.Store.Wait(ctx, key, version))
}

func (e *engine) Close() error {
	if e.close != nil {
		return e.close()
	}
	return e.Store.Close()
}

// breakage is a way to be wrong, and the checks that have to notice.
type breakage struct {
	name   string
	caught []string
	build  func() Instance
}

// each returns a breakage of every handle.
func each(name string, spoil func(e *engine), caught ...string) breakage {
	return shared(name, func(*memory.DB) func(*engine) { return spoil }, caught...)
}

// shared returns a breakage whose handles have something in common, which setUp makes.
func shared(name string, setUp func(db *memory.DB) func(e *engine), caught ...string) breakage {
	return breakage{name, caught, func() Instance {
		db := memory.NewDB(memory.Options{})
		spoil := setUp(db)
		return instanceOf(func() store.Store {
			e := &engine{Store: db.Open()}
			spoil(e)
			return e
		})
	}}
}

// spoilt returns a breakage by what it does to the records that come out.
func spoilt(name string, read func(*store.Record), caught ...string) breakage {
	return each(name, func(e *engine) { e.read = read }, caught...)
}

// stored returns a breakage by what it does to the records that go in.
func stored(name string, write func(*store.Record), caught ...string) breakage {
	return each(name, func(e *engine) {
		e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
			rec = rec.Clone()
			write(&rec)
			return e.Store.Put(ctx, rec)
		}
	}, caught...)
}

// force returns rec with the version that makes a Put succeed.
func force(ctx context.Context, s store.Store, rec store.Record) (store.Record, error) {
	current, err := store.Load(ctx, s, rec.Key)
	rec.Version = current.Version
	return rec, err
}

// doubtful has e call the outcome of a write that was refused unknown when unclear says so.
func doubtful(e *engine, unclear func() bool) {
	e.put = func(ctx context.Context, rec store.Record) (store.Record, error) {
		got, err := e.Store.Put(ctx, rec)
		return got, doubted(rec.Key, err, unclear)
	}
	e.remove = func(ctx context.Context, key, version string) error {
		return doubted(key, e.Store.Delete(ctx, key, version), unclear)
	}
}

func doubted(key string, err error, unclear func() bool) error {
	if errors.Is(err, store.ErrConflict) && unclear() {
		return driver.Unknown(key, errors.New("a fault inside the server"))
	}
	return err
}
