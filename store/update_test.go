package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// bench is a store behind a network that misbehaves at the nth write, and a direct line to its data.
type bench struct {
	t      *testing.T
	net    *faulty.Store
	direct *memory.Store
	calls  int // of the change
}

func update(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		b := &bench{t: t, net: faulty.Wrap(db.Open(), nil), direct: db.Open()}
		defer func() {
			if err := b.net.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(t, b)
	})
}

// at has faults happen to the writes in their order, before which hook is called.
func (b *bench) at(hook func(), faults ...faulty.Fault) {
	b.net.SetPlan(func(op faulty.Op) faulty.Fault {
		if op.Kind != faulty.Put || op.Nth > max(len(faults), 1) {
			return faulty.Fault{}
		}
		if hook != nil {
			hook()
		}
		if len(faults) > 0 {
			return faults[op.Nth-1]
		}
		return faulty.Fault{}
	})
}

// add is a change that is not the same when it is made twice: it appends a letter.
func (b *bench) add(rec *store.Record) (bool, error) {
	b.calls++
	rec.Data = append(rec.Data, 'x')
	return true, nil
}

func (b *bench) put(data string) {
	b.t.Helper()
	rec, err := store.Load(b.t.Context(), b.direct, "k")
	if err == nil {
		rec.Data, rec.Nonce = []byte(data), "other"+data
		_, err = b.direct.Put(b.t.Context(), rec)
	}
	if err != nil {
		b.t.Error(err)
	}
}

func (b *bench) remove() {
	b.t.Helper()
	rec, err := b.direct.Get(b.t.Context(), "k")
	if err == nil {
		err = b.direct.Delete(b.t.Context(), "k", rec.Version)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// holds fails unless that is stored, after that many calls of the change.
func (b *bench) holds(data string, calls int) {
	b.t.Helper()
	rec, err := store.Load(b.t.Context(), b.direct, "k")
	if err != nil || string(rec.Data) != data || b.calls != calls {
		b.t.Errorf("stored: %q (%v), after %d calls of the change; want %q after %d", rec.Data, err, b.calls, data, calls)
	}
}

func TestUpdateIsDoneOnce(t *testing.T) {
	once := func(f func()) func() {
		return func() {
			if f != nil {
				f()
			}
			f = nil
		}
	}
	for name, tt := range map[string]struct {
		stored string // at first; "" for nothing
		before func(b *bench)
		faults []faulty.Fault
		want   string
		calls  int
	}{
		"nothing is stored":              {want: "x", calls: 1},
		"something is":                   {stored: "a", want: "ax", calls: 1},
		"another write comes in between": {stored: "a", before: func(b *bench) { b.put("b") }, want: "bx", calls: 2},
		"created in between":             {before: func(b *bench) { b.put("b") }, want: "bx", calls: 2},
		"deleted in between":             {stored: "a", before: (*bench).remove, want: "x", calls: 2},
		"unknown, and it landed":         {stored: "a", faults: []faulty.Fault{{LoseReply: true}}, want: "ax", calls: 1},
		"unknown, and it didn't":         {stored: "a", faults: []faulty.Fault{{ApplyLate: time.Hour}}, want: "ax", calls: 2},
		"unknown, and it lands over the next try": {
			stored: "a", faults: []faulty.Fault{{ApplyLate: time.Second}, {Delay: time.Minute}}, want: "ax", calls: 2,
		},
		"unknown thrice, and it landed the third time": {
			faults: []faulty.Fault{{ApplyLate: time.Hour}, {ApplyLate: time.Hour}, {LoseReply: true}}, want: "x", calls: 3,
		},
		"unknown, and a conflict on top": {
			stored: "a", before: func(b *bench) { b.put("b") }, faults: []faulty.Fault{{ApplyLate: time.Hour}}, want: "bx", calls: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			update(t, func(t *testing.T, b *bench) {
				if tt.stored != "" {
					b.put(tt.stored)
				}
				var hook func()
				if tt.before != nil {
					hook = func() { tt.before(b) }
				}
				b.at(once(hook), tt.faults...)
				if err := store.Update(t.Context(), b.net, "k", b.add); err != nil {
					t.Error(err)
				}
				b.holds(tt.want, tt.calls)
				time.Sleep(2 * time.Hour) // what was on its way finds another version
				b.holds(tt.want, tt.calls)
			})
		})
	}
}

func TestUpdateGivesUp(t *testing.T) {
	errEnough, errRefused := errors.New("enough"), errors.New("refused")
	refused := faulty.Fault{Err: errRefused}
	late := faulty.Fault{ApplyLate: time.Hour}
	for name, tt := range map[string]struct {
		faults []faulty.Fault
		f      func(b *bench, rec *store.Record) (bool, error)
		want   error // nil: none
		doubt  bool
		calls  int
	}{
		"nothing to write":                     {f: func(*bench, *store.Record) (bool, error) { return false, nil }, calls: 1},
		"the change fails":                     {f: func(*bench, *store.Record) (bool, error) { return true, errEnough }, want: errEnough, calls: 1},
		"the store refuses":                    {faults: []faulty.Fault{refused}, want: errRefused, calls: 1},
		"the store refuses after a late write": {faults: []faulty.Fault{late, refused}, want: errRefused, doubt: true, calls: 2},
		"the change fails after a late write": {
			faults: []faulty.Fault{late}, want: errEnough, doubt: true, calls: 2,
			f: func(b *bench, _ *store.Record) (bool, error) {
				if b.calls == 2 {
					return false, errEnough
				}
				return true, nil
			},
		},
		"nothing to write any more, but a late write": {
			faults: []faulty.Fault{late}, want: store.ErrUnknownOutcome, doubt: true, calls: 2,
			f: func(b *bench, _ *store.Record) (bool, error) { return b.calls == 1, nil },
		},
		"nothing to write any more, and the late write can't land": {
			faults: []faulty.Fault{late}, calls: 2,
			f: func(b *bench, _ *store.Record) (bool, error) {
				if b.calls == 1 {
					time.AfterFunc(time.Nanosecond, func() { b.put("a") })
				}
				return b.calls == 1, nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			update(t, func(t *testing.T, b *bench) {
				b.put("a")
				b.at(nil, tt.faults...)
				err := store.Update(t.Context(), b.net, "k", func(rec *store.Record) (bool, error) {
					if tt.f == nil {
						return b.add(rec)
					}
					b.calls++
					rec.Data[0] = 'z' // nothing comes of it unless it is written
					return tt.f(b, rec)
				})
				if (tt.want == nil) != (err == nil) || !errors.Is(err, tt.want) || errors.Is(err, store.ErrUnknownOutcome) != tt.doubt {
					t.Errorf("%v; want %v, and in doubt: %t", err, tt.want, tt.doubt)
				}
				b.holds("a", tt.calls)
			})
		})
	}
}

// contrary is a store on which every write conflicts, and that looks at no context.
type contrary struct{ store.Store }

func (contrary) Get(context.Context, string) (store.Record, error) {
	return store.Record{Key: "k", Version: "1"}, nil
}

func (contrary) Put(context.Context, store.Record) (store.Record, error) {
	return store.Record{}, &store.ConflictError{Current: store.Record{Key: "k", Version: "1"}}
}

func TestUpdateHeedsItsContext(t *testing.T) {
	cause := errors.New("stop")
	t.Run("while every write conflicts", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		calls := 0
		err := store.Update(ctx, contrary{}, "k", func(*store.Record) (bool, error) {
			if calls++; calls == 100 {
				cancel(cause)
			}
			return true, nil
		})
		if !errors.Is(err, cause) || errors.Is(err, store.ErrUnknownOutcome) || calls != 100 {
			t.Errorf("after %d calls: %v", calls, err)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		update(t, func(t *testing.T, b *bench) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(cause)
			if err := store.Update(ctx, b.net, "k", b.add); !errors.Is(err, cause) {
				t.Error(err)
			}
			b.holds("", 0)
		})
	})
	t.Run("while every outcome is unknown", func(t *testing.T) {
		update(t, func(t *testing.T, b *bench) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
			defer cancel()
			b.net.SetPlan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Put {
					return faulty.Fault{ApplyLate: time.Hour}
				}
				return faulty.Fault{}
			})
			start := time.Now()
			err := store.Update(ctx, b.net, "k", b.add)
			if !errors.Is(err, cause) || !errors.Is(err, store.ErrUnknownOutcome) || time.Since(start) != time.Minute {
				t.Errorf("after %v: %v", time.Since(start), err)
			}
			if b.calls > 100 {
				t.Errorf("%d writes in a minute, and none was answered", b.calls)
			}
		})
	})
	t.Run("while a write is under way", func(t *testing.T) {
		update(t, func(t *testing.T, b *bench) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
			defer cancel()
			b.at(nil, faulty.Fault{Drop: true})
			if err := store.Update(ctx, b.net, "k", b.add); !errors.Is(err, cause) || !errors.Is(err, store.ErrUnknownOutcome) {
				t.Error(err)
			}
		})
	})
}

// What the change does to the key and the version doesn't count, and each write has a nonce of its own.
func TestUpdateKeepsKeyAndVersion(t *testing.T) {
	update(t, func(t *testing.T, b *bench) {
		nonces := map[string]bool{}
		for range 3 {
			err := store.Update(t.Context(), b.net, "k", func(rec *store.Record) (bool, error) {
				rec.Key, rec.Version, rec.Nonce = "other", "?", "mine"
				return true, nil
			})
			rec, getErr := b.direct.Get(t.Context(), "k")
			if err != nil || getErr != nil {
				t.Fatal(err, getErr)
			}
			nonces[rec.Nonce] = true
		}
		if len(nonces) != 3 || nonces["mine"] || nonces[""] {
			t.Errorf("nonces %v", nonces)
		}
	})
}

// retrying is a store whose client sends each write twice by itself, and reports what came of the second copy.
type retrying struct{ store.Store }

func (r retrying) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if _, err := r.Store.Put(ctx, rec); err != nil {
		return store.Record{}, err
	}
	return r.Store.Put(ctx, rec)
}

// A conflict with a write of one's own is success.
func TestUpdateMeetsItself(t *testing.T) {
	update(t, func(t *testing.T, b *bench) {
		b.put("a")
		if err := store.Update(t.Context(), retrying{b.net}, "k", b.add); err != nil {
			t.Error(err)
		}
		b.holds("ax", 1)
	})
}
