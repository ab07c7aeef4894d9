package file

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// queued blocks until the lane has that many writes in its queue.
func queued(t testing.TB, s *Store, l *lane, n int) {
	t.Helper()
	for {
		s.mu.Lock()
		length := l.queue.Len()
		s.mu.Unlock()
		if length == n {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d writes are queued, want %d", length, n)
		}
		time.Sleep(time.Millisecond)
	}
}

// A write whose context ends in the queue is not done, and says so.
func TestCancelledInQueue(t *testing.T) {
	s := testOpen(t, testPath(t))
	lock := lockOf(t, s.path)
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error)
	go func() {
		_, err := s.Put(ctx, held("k", 1))
		result <- err
	}()
	queued(t, s, &s.takings, 1)
	why := errors.New("changed my mind")
	cancel(why)
	if err := <-result; !errors.Is(err, why) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Put: %v", err)
	}
	if err := lock.unlock(); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, held("other", 1)) // after what was queued
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
}

// A renewal is done before takings that came before it.
func TestRenewalGoesFirst(t *testing.T) {
	s := testOpen(t, testPath(t))
	mine := mustPut(t, s, held("mine", 1))
	lock := lockOf(t, s.path)
	const takings = 3 * maxBatch
	var group sync.WaitGroup
	var taken atomic.Int64
	for i := range takings {
		group.Go(func() {
			if _, err := s.Put(t.Context(), held(strconv.Itoa(i), 1)); err != nil {
				t.Error(err)
			}
			taken.Add(1)
		})
	}
	queued(t, s, &s.takings, takings)
	group.Go(func() {
		if _, err := s.Put(t.Context(), mine); err != nil {
			t.Error(err)
		}
	})
	queued(t, s, &s.terms, 1)
	first := s.take()
	if len(first) != maxBatch || first[0].key != "mine" {
		t.Errorf("a batch of %d begins with %q", len(first), first[0].key)
	}
	s.mu.Lock()
	for _, r := range first { // put them back: they are to be done
		r.place = r.lane.queue.PushFront(r)
	}
	s.mu.Unlock()
	if err := lock.unlock(); err != nil {
		t.Fatal(err)
	}
	group.Wait()
}

func TestKeepsTerm(t *testing.T) {
	for _, c := range []struct {
		version string
		rec     store.Record
		want    bool
	}{
		{"", held("k", 1), false},                 // creates
		{"7.ABC.1", held("k", 7), true},           // renews
		{"7.ABC.1", store.Record{Token: 7}, true}, // releases
		{"7.ABC.1", held("k", 8), false},          // takes
		{"77.ABC.1", held("k", 7), false},
		{"7", held("k", 7), false},
	} {
		c.rec.Version = c.version
		if got := keepsTerm(c.rec); got != c.want {
			t.Errorf("keepsTerm(%q, token %d) = %v", c.version, c.rec.Token, got)
		}
	}
}

// Reads go on while another process holds the lock, writes wait, and Close says what it waits for.
func TestStoppedLockHolder(t *testing.T) {
	s, err := Open(t.Context(), testPath(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := mustPut(t, s, held("k", 1))
	lock := lockOf(t, s.path)
	result := make(chan error)
	go func() {
		_, err := s.Put(t.Context(), rec)
		result <- err
	}()
	queued(t, s, &s.terms, 1)
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("Get: %+v, %v", got, err)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "another process holds its lock") {
		t.Errorf("Close: %v", err)
	}
	if err := <-result; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Put: %v", err)
	}
	if err := lock.unlock(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if got, err := testOpen(t, s.path).Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("after: %+v, %v", got, err)
	}
}

// What the store itself still does, on a disk that takes its time, is no other process's fault, and is waited for.
func TestCloseWaitsForTheDisk(t *testing.T) {
	s, err := Open(t.Context(), testPath(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	clk := clocktest.New(1)
	s.clock = clk
	s.running.Add(1) // as a sync does that takes long
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	<-s.closing
	for range 20 {
		clk.Jump(closeWait)
		select {
		case err := <-closed:
			t.Fatalf("Close: %v, and not all was done", err)
		case <-time.After(5 * time.Millisecond): // in which nothing must happen
		}
	}
	s.running.Done()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// The lock file keeps order. Where it is removed, and two processes have one each, SQLite's locks still keep them apart.
func TestRemovedLockFile(t *testing.T) {
	path := testPath(t)
	var stores []*Store
	for range 2 {
		stores = append(stores, testOpen(t, path))
		if err := os.Remove(path + ".lock"); err != nil {
			t.Fatal(err)
		}
	}
	const each = 200
	var group sync.WaitGroup
	for _, s := range stores {
		group.Go(func() {
			for raised := 0; raised < each && !t.Failed(); {
				_, err := raise(s, "k")
				switch {
				case err == nil:
					raised++
				case !strings.Contains(err.Error(), "another program") || errors.Is(err, store.ErrUnknownOutcome): // SQLite's locks keep no order
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if rec, err := stores[0].Get(t.Context(), "k"); err != nil || rec.Token != 2*each {
		t.Errorf("token %d, %v; want %d", rec.Token, err, 2*each)
	}
}

// Two holders would each have a file of their own.
func TestRemovedFile(t *testing.T) {
	path := testPath(t)
	old := testOpen(t, path)
	rec := mustPut(t, old, held("k", 1))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	removed := func() {
		t.Helper()
		_, err := old.Put(t.Context(), rec)
		if err == nil || !strings.Contains(err.Error(), "removed or replaced") || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("Put: %v", err)
		}
	}
	removed()
	fresh := testOpen(t, path)
	mustPut(t, fresh, held("k", 2))
	removed()
}

// Another program that keeps the database locked is waited for a while, then named.
func TestLockedByAnotherProgram(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	other, err := dialWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if _, err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Put(t.Context(), held("k", 1))
	if err == nil || !strings.Contains(err.Error(), "another program") || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Put: %v", err)
	}
	if _, err := other.exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, held("k", 1))
}

// A write that was taken when its context ends is waited for a moment. What that tells is told on; after it, the outcome is unknown.
func TestAnswerAfterTheContext(t *testing.T) {
	errEnough, errRefused := errors.New("enough"), errors.New("refused")
	for what, c := range map[string]struct {
		answer  func(*request)
		want    error
		unknown bool
	}{
		"refused": {func(r *request) { r.answer(errRefused) }, errRefused, false},
		"done":    {func(r *request) { r.answer(nil) }, nil, false},
		"none":    {func(*request) {}, errEnough, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := idle()
			ctx, cancel := context.WithCancelCause(t.Context())
			r := &request{key: "k", body: "{}", lane: &s.takings}
			result := make(chan error, 1)
			go func() { result <- s.submit(ctx, r) }()
			synctest.Wait()
			if batch := s.take(); !slices.Equal(batch, []*request{r}) {
				t.Fatalf("taken: %v", batch)
			}
			cancel(errEnough)
			time.Sleep(patience - time.Nanosecond)
			c.answer(r)
			if err := <-result; !errors.Is(err, c.want) || errors.Is(err, store.ErrUnknownOutcome) != c.unknown {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// A write that is in the queue when the store ends is told so, at once.
func TestQueuedWhenTheStoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := idle()
		results := make(chan error, 2)
		for _, l := range []*lane{&s.terms, &s.takings} {
			go func() { results <- s.submit(t.Context(), &request{key: "k", lane: l}) }()
		}
		synctest.Wait()
		_ = s.end(errors.New("the file is gone"))
		synctest.Wait()
		if len(results) != 2 {
			t.Fatalf("%d of 2 writes are answered", len(results))
		}
		for range 2 {
			if err := <-results; !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		}
	})
}

// A lane whose writes were done in the turn of the other one doesn't wait for the file lock, which another process may keep.
func TestTurnWithNothingToWrite(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	mustPut(t, s, held("k", 1))
	other, err := openLock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	if err := other.lock(); err != nil {
		t.Fatal(err)
	}
	s.serveBatch(&s.terms)
	if since := s.terms.since.Load(); since != 0 {
		t.Errorf("the lane still waits, since %d", since)
	}
}

// idle is a store of which nobody serves the lanes.
func idle() *Store {
	return &Store{clock: clocktest.New(1), closing: make(chan struct{})}
}

// A row that can't be read is an error of its own, and doesn't hide the others.
func TestCorruptRow(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	for _, key := range []string{"a", "b", "c"} {
		mustPut(t, s, held(key, 1))
	}
	shell(t, path, `UPDATE records SET body = '{"v":99}' WHERE key = 'b'`)
	if _, err := s.Get(t.Context(), "b"); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "b") {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Put(t.Context(), held("b", 1)); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("Put: %v", err)
	}
	var keys []string
	for rec, err := range s.List(t.Context(), "") {
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Error(err)
		}
		keys = append(keys, rec.Key)
	}
	if strings.Join(keys, ",") != "a,,c" {
		t.Errorf("List: %q", keys)
	}
}
