package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What the engines' own tests share.

// MustPut writes rec and returns it as the store keeps it. It fails the test when the write fails.
func MustPut(t testing.TB, s store.Store, rec store.Record) store.Record {
	t.Helper()
	got, err := s.Put(t.Context(), rec)
	if err != nil {
		t.Fatalf("Put(%s): %v", rec.Key, err)
	}
	return got
}

// Within returns a context that ends after d, and with the test.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Eventually retries until there is no error. It fails the test after 30 s.
func Eventually(t testing.TB, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// Waiting is a Wait that has been started.
type Waiting <-chan error

// StartWait starts a Wait for another version than that of rec. It doesn't block.
func StartWait(t testing.TB, s store.Store, rec store.Record) Waiting {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		got, err := store.Wait(t.Context(), s, rec.Key, rec.Version)
		if err == nil && got.Version == rec.Version {
			err = fmt.Errorf("%s: Wait returned version %q, which it was given", rec.Key, rec.Version)
		}
		ended <- err
	}()
	return ended
}

// Closed blocks until the Wait has ended because its store was closed. It fails the test after 30
// s, and when the Wait ended otherwise.
func (w Waiting) Closed(t testing.TB) {
	t.Helper()
	select {
	case err := <-w:
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("Wait: %v, want ErrClosed", err)
		}
	case <-time.After(patience):
		t.Fatal("a waiter continues though its store was closed")
	}
}

// End blocks until the Wait has been woken. It fails the test after 30 s, and when the Wait failed.
func (w Waiting) End(t testing.TB) {
	t.Helper()
	select {
	case err := <-w:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("a waiter was never woken")
	}
}
