package watcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errPassing = errors.New("passes")

// world is a server with one key, whose watch the test speaks for.
type world struct {
	w    *Watch
	life context.Context
	end  context.CancelFunc

	rec      store.Record
	revision uint64
	err      error
	mute     bool       // it answers no read
	counting sync.Mutex // several may read at once
	reads    int
	during   func() // what happens during a read
}

type outcome struct {
	rec store.Record
	err error
}

func version(v string) store.Record { return store.Record{Key: "k", Version: v} }

func newWorld(v string, revision uint64) *world {
	wd := &world{w: New("k"), rec: version(v), revision: revision}
	wd.life, wd.end = context.WithCancel(context.Background())
	return wd
}

func (wd *world) set(v string, revision uint64) { wd.rec, wd.revision = version(v), revision }

func (wd *world) read(ctx context.Context, _ string, _ uint64) (store.Record, uint64, error) {
	wd.counting.Lock()
	wd.reads++
	wd.counting.Unlock()
	if wd.mute {
		<-ctx.Done()
		return store.Record{}, 0, fmt.Errorf("a read: %w", context.Cause(ctx))
	}
	rec, revision := wd.rec, wd.revision
	if wd.during != nil {
		wd.during()
	}
	return rec, revision, wd.err
}

// wait begins a Wait for another version than v.
func (wd *world) wait(ctx context.Context, v string, confirm bool) <-chan outcome {
	result := make(chan outcome, 1)
	go func() {
		rec, err := wd.w.Wait(ctx, wd.life, v, Reader{
			Read:    wd.read,
			Passing: func(err error) bool { return errors.Is(err, errPassing) },
			Confirm: confirm,
		})
		result <- outcome{rec, err}
	}()
	synctest.Wait()
	return result
}

// returned checks what a Wait has returned by now: the version and the error, or nothing.
func returned(t *testing.T, what string, result <-chan outcome, v string, err error) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-result:
		if got.rec.Version != v || !errors.Is(got.err, err) || (err == nil && got.rec.Key != "k") {
			t.Errorf("%s: %+v, want version %q and %v", what, got, v, err)
		}
	default:
		t.Errorf("%s: nothing was returned", what)
	}
}

func nothing(t *testing.T, what string, result <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-result:
		t.Errorf("%s: %+v", what, got)
	default:
	}
}

func TestWait(t *testing.T) {
	for name, test := range map[string]func(t *testing.T, wd *world, result <-chan outcome){
		"what changed before the watch began is read": func(t *testing.T, wd *world, result <-chan outcome) {
			nothing(t, "before the watch began", result)
			wd.set("2", 12)
			wd.w.Again()
			returned(t, "after it", result, "2", nil)
		},
		"what is told is returned without a read": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			nothing(t, "without a change", result)
			wd.w.Tell(12, version("2"), nil)
			returned(t, "told", result, "2", nil)
			if wd.reads != 1 {
				t.Errorf("%d reads, want 1", wd.reads)
			}
		},
		"what is older than the read is no news": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.w.Tell(9, version("0"), nil)
			nothing(t, "told of the past", result)
			wd.w.Tell(10, version("1"), nil)
			nothing(t, "told of the past", result)
			wd.w.Tell(12, version("2"), nil)
			wd.w.Tell(11, version("1"), nil)
			returned(t, "told", result, "2", nil)
		},
		"a deletion is a change": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.w.Tell(11, version(""), nil)
			returned(t, "told", result, "", nil)
		},
		"a row that can't be read is an error": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.w.Tell(11, store.Record{}, store.ErrCorrupt)
			returned(t, "told", result, "", store.ErrCorrupt)
		},
		"what changed while there was no watch is read": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.w.Again()
			nothing(t, "without a change", result)
			wd.set("2", 12)
			wd.w.Again()
			returned(t, "with one", result, "2", nil)
		},
		"the first read's error is returned": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.err = errPassing
			wd.w.Again()
			returned(t, "a read that failed", result, "1", errPassing)
		},
		"a later read's error passes": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.err = errPassing
			wd.w.Again()
			nothing(t, "a read that failed", result)
			wd.set("2", 12)
			wd.err = nil
			if got := <-result; got.rec.Version != "2" || got.err != nil {
				t.Errorf("%+v", got)
			}
		},
		"a later read's error that doesn't pass": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.err = store.ErrCorrupt
			wd.w.Again()
			returned(t, "a read that failed", result, "1", store.ErrCorrupt)
		},
		"closing": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.end()
			returned(t, "closed", result, "", store.ErrClosed)
		},
		"closing during the first read": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.mute = true
			wd.w.Again()
			nothing(t, "before", result)
			wd.end()
			returned(t, "closed", result, "", store.ErrClosed)
		},
		"closing during a later read": func(t *testing.T, wd *world, result <-chan outcome) {
			wd.w.Again()
			synctest.Wait()
			wd.mute = true
			wd.w.Again()
			nothing(t, "before", result)
			wd.end()
			returned(t, "closed", result, "", store.ErrClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wd := newWorld("1", 10)
				test(t, wd, wd.wait(t.Context(), "1", false))
			})
		})
	}
}

func TestWaitCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancelled, other := wd.wait(ctx, "1", false), wd.wait(t.Context(), "1", false)
		wd.w.Again()
		synctest.Wait()
		cancel(errEnough)
		returned(t, "cancelled", cancelled, "", errEnough)
		nothing(t, "the other one", other)
		wd.w.Tell(11, version("2"), nil)
		returned(t, "the other one, told", other, "2", nil)
	})
}

// Where a server may tell a change before it shows it, what was told is read; but what was told is the truth, too.
func TestWaitConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		shown, lags := wd.wait(t.Context(), "1", true), newWorld("1", 10)
		lagging := lags.wait(t.Context(), "1", true)
		wd.w.Again()
		lags.w.Again()
		synctest.Wait()
		wd.set("3", 13)
		wd.w.Tell(12, version("2"), nil)
		returned(t, "a server that shows more", shown, "3", nil)
		lags.w.Tell(12, version("2"), nil)
		returned(t, "a server that goes on lagging", lagging, "2", nil)
		if wd.reads != 2 || lags.reads != 2 {
			t.Errorf("%d and %d reads, want 2 each", wd.reads, lags.reads)
		}
	})
}
