package file

import (
	"context"
	"errors"
	"hash/fnv"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// withoutNet takes the safety net away from a store that nobody has waited on yet: who is woken was woken by the bell.
func withoutNet(s *Store) *Store {
	s.waiters.net = 24 * time.Hour
	return s
}

// soon is how long a test waits for what should come at once.
const soon = time.Minute

// waiting starts a Wait for a change of rec, and returns when it is registered.
func waiting(t testing.TB, s *Store, rec store.Record) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	s.waiters.mu.Lock()
	before := s.waiters.count
	s.waiters.mu.Unlock()
	go func() {
		got, err := s.Wait(t.Context(), rec.Key, rec.Version)
		if err == nil && got.Version == rec.Version {
			err = errors.New("Wait returned the same version")
		}
		result <- err
	}()
	for {
		s.waiters.mu.Lock()
		count := s.waiters.count
		s.waiters.mu.Unlock()
		if count > before {
			return result
		}
		time.Sleep(time.Millisecond)
	}
}

// within reports an error unless result comes soon.
func within(t testing.TB, result <-chan error) {
	t.Helper()
	select {
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Error("not woken")
	}
}

// Where the wake folder can't be made, waiters poll.
func TestWaitWithoutBell(t *testing.T) {
	path := testPath(t)
	write(t, path+wakeSuffix, nil)
	s, other := testOpen(t, path), testOpen(t, path)
	rec := mustPut(t, s, held("k", 1))
	for range 3 {
		result := waiting(t, other, rec)
		if other.waiters.bell.works() {
			t.Fatal("the bell works")
		}
		time.Sleep(50 * time.Millisecond) // the poll has a reading of before the write
		rec = mustPut(t, s, rec)
		within(t, result)
	}
}

// The wake folder holds nothing that isn't made anew.
func TestWakeFolderRemoved(t *testing.T) {
	path := testPath(t)
	s, other := testOpen(t, path), withoutNet(testOpen(t, path))
	rec := mustPut(t, s, held("k", 1))
	result := waiting(t, other, rec)
	if err := os.RemoveAll(path + wakeSuffix); err != nil {
		t.Fatal(err)
	}
	other.waiters.bell.renew() // as every few seconds
	rec = mustPut(t, s, rec)
	within(t, result)

	if err := os.RemoveAll(path + wakeSuffix); err != nil {
		t.Fatal(err)
	}
	result = waiting(t, other, rec)
	mustPut(t, s, rec)
	within(t, result)
}

// Waiters for many keys share one FIFO, and leave nothing behind.
func TestManyWaiters(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	other, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	withoutNet(other)
	var recs []store.Record
	var results []<-chan error
	for i := range 300 {
		rec := mustPut(t, s, held(strconv.Itoa(i), 1))
		recs, results = append(recs, rec), append(results, waiting(t, other, rec))
	}
	var group sync.WaitGroup
	for _, rec := range recs {
		group.Go(func() { mustPut(t, s, rec) })
	}
	group.Wait()
	for _, result := range results {
		within(t, result)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(path + wakeSuffix)
	if err != nil || len(entries) != 2 { // the gates
		t.Errorf("%v, %v", entries, err)
	}
}

func TestWaitEndsWithClose(t *testing.T) {
	s, err := Open(t.Context(), testPath(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	result := waiting(t, s, mustPut(t, s, held("k", 1)))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-result; !errors.Is(err, store.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
	if _, err := s.Wait(context.Background(), "k", ""); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Wait: %v", err)
	}
}

// Two processes pass a record to and fro without the safety net.
func TestWaitAcrossProcesses(t *testing.T) {
	path := testPath(t)
	s := withoutNet(testOpen(t, path))
	rec := mustPut(t, s, held("k", 1))
	p := start(t, "echo", helperArgs{Path: path, Key: "k", Bare: true})
	p.line(t)
	const rounds = 50
	for range rounds {
		rec.Token++
		mine := mustPut(t, s, rec)
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		var err error
		rec, err = s.Wait(ctx, "k", mine.Version)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	if rec.Token != 1+2*rounds {
		t.Errorf("token %d, want %d", rec.Token, 1+2*rounds)
	}
	p.stop(t)
}

// Other processes, of other versions too, look for the same.
func TestHash(t *testing.T) {
	for _, key := range []string{"", "a", "nightly-report", "Ü\x00\xff"} {
		h := fnv.New64a()
		_, _ = h.Write([]byte(key))
		if got := hash(key); got != h.Sum64() || hash([]byte(key)) != got {
			t.Errorf("%q: %d, want %d", key, got, h.Sum64())
		}
	}
	if got, want := termOf(store.Record{Owner: "o", Token: 7}), strconv.FormatUint(hash("o 7"), 36); got != want {
		t.Errorf("term %s, want %s", got, want)
	}
}
