//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What was found in a folder is kept once the folder has rested, and until a name in it comes, goes or is replaced.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "name"), filepath.Join(dir, "other")
	write := func(path string) {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	looks := 0
	f := folder[int]{path: dir}
	look := func() int {
		n, err := f.get(func() (int, error) { looks++; return looks, nil })
		if err != nil {
			t.Error(err)
		}
		return n
	}
	rested := func() {
		for f.last.Load() == nil {
			look()
			time.Sleep(time.Millisecond)
		}
		if first := look(); look() != first {
			t.Error("looked twice at what didn't change")
		}
	}
	rested()
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"a new name", func() error { write(name); return nil }},
		{"another one", func() error { write(other); return nil }},
		{"a replacement", func() error { return os.Rename(other, name) }},
		{"a name less", func() error { return os.Remove(name) }},
	} {
		before := look()
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if look() == before {
			t.Errorf("%s wasn't noticed", change.what)
		}
		f.last.Store(nil)
		rested()
	}
	f.last.Store(nil)
	failed := errors.New("failed")
	if _, err := f.get(func() (int, error) { return 0, failed }); err != failed || f.last.Load() != nil {
		t.Errorf("%v; kept: %v", err, f.last.Load() != nil)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if a, b := look(), look(); a == b || f.last.Load() != nil {
		t.Error("what was found in a folder that isn't there was kept")
	}
}

// A change in the moment of the look may leave the folder the same date, so what was found then isn't kept.
func TestStampSettles(t *testing.T) {
	at := time.Unix(1000, 500)
	whole := time.Unix(1000, 0)
	of := func(names, all time.Time) stamp {
		return stamp{sec: names.Unix(), nsec: int64(names.Nanosecond()), csec: all.Unix(), cnsec: int64(all.Nanosecond())}
	}
	for _, tt := range []struct {
		stamp stamp
		wall  time.Time
		want  bool
	}{
		{of(at, at), at.Add(fineTimes), false},
		{of(at, at), at.Add(fineTimes + 1), true},
		{of(at, at.Add(1)), at.Add(fineTimes + 1), false},
		{of(at.Add(1), at), at.Add(fineTimes + 1), false},
		{of(whole, at), whole.Add(wholeTimes), false},
		{of(at, whole), at.Add(wholeTimes), false},
		{of(whole, whole), whole.Add(wholeTimes + 1), true},
		{of(at, at), at.Add(-time.Hour), false}, // the wall clock was set back
	} {
		if got := tt.stamp.settled(tt.wall); got != tt.want {
			t.Errorf("%+v at %v: %v", tt.stamp, tt.wall, got)
		}
	}
}

// What was once in its place, and has rested since, is missed all the same at the first commit after it has gone.
func TestFinding_S4_RemovedAfterAWhile(t *testing.T) {
	for _, suffix := range suffixes {
		path := testPath(t)
		s := testOpen(t, path)
		rec := mustPut(t, s, held("k", 1))
		for s.place.folder.last.Load() == nil {
			rec = mustPut(t, s, rec)
		}
		if err := os.Rename(path+suffix, path+suffix+".old"); err != nil {
			t.Fatal(err)
		}
		_, err := s.Put(t.Context(), rec)
		if !errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "removed or replaced") {
			t.Errorf("%q: Put: %v", suffix, err)
		}
	}
}

// A process that begins to wait is told of the next commit, however long nobody has waited before.
func TestFirstWaiterAfterAWhile(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	rec := mustPut(t, s, held("k", 1))
	for s.waiters.bell.folder.last.Load() == nil {
		rec = mustPut(t, s, rec)
	}
	result := waiting(t, withoutNet(testOpen(t, path)), rec)
	mustPut(t, s, rec)
	within(t, result)
}
