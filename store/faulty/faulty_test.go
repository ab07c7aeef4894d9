package faulty_test

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

// network is one client behind a bad network, and a direct line to the same data.
type network struct {
	*faulty.Store
	direct *memory.Store
}

func newNetwork(plan faulty.Plan) network {
	db := memory.NewDB(memory.Options{})
	return network{faulty.Wrap(db.Open(), plan), db.Open()}
}

// on returns a plan with that fault for every operation of that kind.
func on(kind faulty.Kind, f faulty.Fault) faulty.Plan {
	return func(op faulty.Op) faulty.Fault {
		if op.Kind == kind {
			return f
		}
		return faulty.Fault{}
	}
}

func record(key string) store.Record {
	return store.Record{Key: key, Owner: "a", Token: 1, TTL: time.Second}
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// A write that meets a fault has the outcome and takes the time that the fault says, and reaches the store when it says.
func TestPut(t *testing.T) {
	const patience = 10 * time.Second // of the caller
	errRefused := errors.New("refused")
	for _, tt := range []struct {
		name  string
		fault faulty.Fault
		want  error         // what the caller's error matches
		after time.Duration // how long the caller waited
		lands time.Duration // when the write reaches the store; -1: never
	}{
		{"no fault", faulty.Fault{}, nil, 0, 0},
		{"delay", faulty.Fault{Delay: time.Second}, nil, time.Second, time.Second},
		{"delay beyond patience", faulty.Fault{Delay: 12 * time.Second}, store.ErrUnknownOutcome, patience, 12 * time.Second},
		{"reply delay", faulty.Fault{ReplyDelay: time.Second}, nil, time.Second, 0},
		{"reply delay beyond patience", faulty.Fault{ReplyDelay: time.Minute}, store.ErrUnknownOutcome, patience, 0},
		{"drop", faulty.Fault{Drop: true}, store.ErrUnknownOutcome, patience, -1},
		{"refuse", faulty.Fault{Err: errRefused}, errRefused, 0, -1},
		{"refuse after delay", faulty.Fault{Delay: time.Second, Err: errRefused}, errRefused, time.Second, -1},
		{"refuse beyond patience", faulty.Fault{Delay: time.Minute, Err: errRefused}, store.ErrUnknownOutcome, patience, -1},
		{"lose reply", faulty.Fault{LoseReply: true}, store.ErrUnknownOutcome, 0, 0},
		{"lose reply after delay", faulty.Fault{Delay: time.Second, LoseReply: true}, store.ErrUnknownOutcome, time.Second, time.Second},
		{"lose reply silently", faulty.Fault{LoseReply: true, Silent: true}, store.ErrUnknownOutcome, patience, 0},
		{"apply late", faulty.Fault{ApplyLate: time.Minute}, store.ErrUnknownOutcome, 0, time.Minute},
		{"apply late silently", faulty.Fault{ApplyLate: time.Second, Silent: true}, store.ErrUnknownOutcome, patience, time.Second},
		{"apply twice", faulty.Fault{ApplyTwice: true}, nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(on(faulty.Put, tt.fault))
				start := time.Now()
				landed := make(chan time.Duration, 1)
				go func() {
					ctx, cancel := within(time.Hour)
					defer cancel()
					if _, err := n.direct.Wait(ctx, "k", ""); err != nil {
						landed <- -1
						return
					}
					landed <- time.Since(start)
				}()
				synctest.Wait()

				ctx, cancel := within(patience)
				defer cancel()
				rec, err := n.Put(ctx, record("k"))
				if !errors.Is(err, tt.want) {
					t.Errorf("Put: %v, want %v", err, tt.want)
				}
				if (err == nil) != (rec.Version != "") {
					t.Errorf("Put returned version %q with error %v", rec.Version, err)
				}
				if tt.want == errRefused && errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("a refused write has a known outcome: %v", err)
				}
				if got := time.Since(start); got != tt.after {
					t.Errorf("the caller waited for %v, want %v", got, tt.after)
				}
				if got := <-landed; got != tt.lands {
					t.Errorf("the write arrived after %v, want %v", got, tt.lands)
				}
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// The second copy of a request really reaches the store, when it should: here it deletes what was made anew.
func TestApplyTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		db := memory.NewDB(memory.Options{})
		inner := &unconditional{Store: db.Open()}
		s := faulty.Wrap(inner, on(faulty.Delete, faulty.Fault{ApplyTwice: true, ApplyLate: time.Minute}))
		rec, err := s.Put(ctx, record("k"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "k", rec.Version); err != nil {
			t.Fatalf("the first copy's answer: %v", err)
		}
		if _, err := s.Put(ctx, record("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		if _, err := s.Get(ctx, "k"); err != nil {
			t.Errorf("the second copy came too early: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.Get(ctx, "k"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the second copy did not come: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// unconditional deletes whatever is there, so that a second copy leaves a trace.
type unconditional struct{ *memory.Store }

func (u *unconditional) Delete(ctx context.Context, key, _ string) error {
	rec, err := u.Get(ctx, key)
	if err != nil {
		return err
	}
	return u.Store.Delete(ctx, key, rec.Version)
}

// What a caller does to its record after it gave up doesn't reach the store.
func TestLateWriteIsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(on(faulty.Put, faulty.Fault{ApplyLate: time.Second}))
		rec := record("k")
		rec.Data = []byte("old")
		if _, err := n.Put(t.Context(), rec); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		copy(rec.Data, "new")
		if err := n.Close(); err != nil { // waits for the late write
			t.Fatal(err)
		}
		got, err := n.direct.Get(t.Context(), "k")
		if err != nil || string(got.Data) != "old" {
			t.Errorf("stored %q, %v", got.Data, err)
		}
	})
}

// Reads end with an error, and by the end of their context.
func TestReads(t *testing.T) {
	const patience = 10 * time.Second
	errRefused := errors.New("refused")
	get := func(ctx context.Context, s store.Store) error { _, err := s.Get(ctx, "k"); return err }
	list := func(ctx context.Context, s store.Store) error {
		for _, err := range s.List(ctx, "") {
			return err
		}
		return errors.New("nothing listed")
	}
	wait := func(ctx context.Context, s store.Store) error { _, err := store.Wait(ctx, s, "k", ""); return err }
	for _, read := range []struct {
		kind faulty.Kind
		call func(context.Context, store.Store) error
	}{{faulty.Get, get}, {faulty.List, list}, {faulty.Wait, wait}, {faulty.Push, wait}} {
		for _, tt := range []struct {
			fault faulty.Fault
			want  error
			after time.Duration
		}{
			{faulty.Fault{}, nil, 0},
			{faulty.Fault{Delay: time.Second}, nil, time.Second},
			{faulty.Fault{ReplyDelay: time.Second}, nil, time.Second},
			{faulty.Fault{Delay: time.Minute}, context.DeadlineExceeded, patience},
			{faulty.Fault{Drop: true}, context.DeadlineExceeded, patience},
			{faulty.Fault{Err: errRefused}, errRefused, 0},
			{faulty.Fault{LoseReply: true}, faulty.ErrLost, 0},
			{faulty.Fault{LoseReply: true, Silent: true}, context.DeadlineExceeded, patience},
		} {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(on(read.kind, tt.fault))
				if _, err := n.direct.Put(t.Context(), record("k")); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := within(patience)
				defer cancel()
				start := time.Now()
				if err := read.call(ctx, n); !errors.Is(err, tt.want) {
					t.Errorf("%s with %+v: %v, want %v", read.kind, tt.fault, err, tt.want)
				}
				if got := time.Since(start); got != tt.after {
					t.Errorf("%s with %+v: took %v, want %v", read.kind, tt.fault, got, tt.after)
				}
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
