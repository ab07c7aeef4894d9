package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
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
			HasAge: runtime.GOOS == "linux",
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

// A file of before the table had row ids, whose rows are in the tree of the keys, is used as it is.
func TestTableWithoutRowIDs(t *testing.T) {
	path := testPath(t)
	write(t, path, nil)
	c, err := dialWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, stmt := range []string{
		schema + ", WITHOUT ROWID", fmt.Sprintf("PRAGMA application_id = %d", applicationID), "PRAGMA user_version = 1",
	} {
		if _, err := c.exec(stmt); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s := testOpen(t, path)
	for _, key := range []string{"b", "a"} {
		rec := mustPut(t, s, full(key))
		rec.Token++
		if rec = mustPut(t, s, rec); rec.Version == "" {
			t.Errorf("%+v", rec)
		}
		_, err := s.Put(t.Context(), full(key))
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || conflict.Current.Version != rec.Version {
			t.Errorf("a second record under one key: %v", err)
		}
	}
	var keys []string
	for rec, err := range s.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, rec.Key)
		if err := s.Delete(t.Context(), rec.Key, rec.Version); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("listed %q", keys)
	}
}
