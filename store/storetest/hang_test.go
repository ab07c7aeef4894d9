package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// locked is a map behind one lock, as a first draft of an engine is: List keeps it while it yields, and Close ends nothing.
type locked struct {
	store.Store
	lock chan struct{} // a mutex that synctest sees
}

func (l *locked) Get(ctx context.Context, key string) (store.Record, error) {
	l.lock <- struct{}{}
	defer l.unlock()
	return l.Store.Get(ctx, key)
}

func (l *locked) unlock() {
	select {
	case <-l.lock:
	default: // the test has done it
	}
}

func (l *locked) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		l.lock <- struct{}{}
		defer l.unlock()
		l.Store.List(ctx, prefix)(yield)
	}
}

func (l *locked) Close() error { return nil }

func checkNamed(t *testing.T, name string) check {
	t.Helper()
	i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no check is called %s", name)
	}
	return checks[i]
}

// An engine that hangs is told of what it waits for, and what its check says later is dropped.
func TestAnEngineThatHangsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		lock := make(chan struct{}, 1)
		inst := instanceOf(func() store.Store { return &locked{Store: db.Open(), lock: lock} })
		begun := time.Now()
		err := checkNamed(t, "ListBodyUsesStore").try(t.Context(), inst, t.Logf)
		if !errors.Is(err, errHangs) || !strings.Contains(err.Error(), "storetest.(*locked).Get") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took != briefly+grace {
			t.Errorf("it took %v, want %v", took, briefly+grace)
		}
		<-lock // what hangs goes on
		synctest.Wait()
	})
}

func TestAHandleThatWorksOnAfterCloseIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		inst := instanceOf(func() store.Store { return &locked{Store: db.Open(), lock: make(chan struct{}, 1)} })
		err := checkNamed(t, "CloseUnderUse").try(t.Context(), inst, t.Logf)
		if err == nil || !strings.Contains(err.Error(), "want ErrClosed") {
			t.Errorf("%v", err)
		}
	})
}

// What a check logs once it has been given up reaches no test that is over.
func TestWhatIsLeftAloneLogsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		stuck, logged := make(chan struct{}), 0
		err := bounded(ctx, func(string, ...any) { logged++ }, func(logf func(string, ...any)) error {
			logf("before")
			<-stuck
			logf("after")
			return nil
		})
		close(stuck)
		synctest.Wait()
		if !errors.Is(err, errHangs) || logged != 1 {
			t.Errorf("%v, logged %d times, want once", err, logged)
		}
	})
}

// go test's own limit comes after that of each check, however many hang.
func TestChecksEndBeforeGoTestDoes(t *testing.T) {
	end, ok := t.Deadline()
	if !ok {
		t.Skip("go test has no -timeout")
	}
	ctx, cancel := limited(t)
	defer cancel()
	if at, ok := ctx.Deadline(); !ok || !at.Add(grace).Before(end) {
		t.Errorf("a check ends at %v, go test at %v", at, end)
	}
}
