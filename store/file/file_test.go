package file

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		path := filepath.Join(t.TempDir(), "store.db")
		return storetest.Instance{
			Open:   func(ctx context.Context) (store.Store, error) { return Open(ctx, path, Options{}) },
			Pushes: true,
			HasAge: bootID() != "",
		}
	})
}

// testPath returns the path of a file that isn't there, in a folder of the test's own.
func testPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store.db")
}

// testOpen opens the file, and closes it at the end of the test.
func testOpen(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute}
}

func mustPut(t testing.TB, s store.Store, rec store.Record) store.Record {
	t.Helper()
	got, err := s.Put(t.Context(), rec)
	if err != nil {
		t.Fatalf("Put(%s): %v", rec.Key, err)
	}
	return got
}
