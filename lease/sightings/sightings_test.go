//go:build linux

package sightings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

var dead = store.Record{
	Key: "job", Owner: "a", Token: 7, TTL: 15 * time.Second, Nonce: "n", Version: "3", Info: map[string]string{"host": "h"}, Past: []store.Term{{Owner: "b"}},
}

// book returns one in an empty folder, and the path of its only file once it is saved.
func book(t *testing.T) (b *Book, path string) {
	t.Helper()
	b = New(filepath.Join(t.TempDir(), "state", "sightings"), "etcd://h")
	return b, b.path("job")
}

func saved(t *testing.T) (b *Book, path string) {
	t.Helper()
	b, path = book(t)
	b.Note(dead, 100)
	if err := b.Save(); err != nil {
		t.Fatal(err)
	}
	return b, path
}

// next is the book of the next process.
func next(b *Book) *Book { return New(b.dir, "etcd://h") }

// The next process knows since when, and what tells the write; never a version, so that it has to read the record first.
func TestRecallByAnotherProcess(t *testing.T) {
	b, path := saved(t)
	rec, since, known := next(b).Recall("job", 200)
	want := store.Record{Key: "job", Owner: "a", Token: 7, TTL: 15 * time.Second, Nonce: "n"}
	if fmt.Sprint(rec) != fmt.Sprint(want) || since != 100 || !known {
		t.Errorf("%+v since %d, %t", rec, since, known)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v, want mode 0600", info.Mode(), err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "etcd") {
		t.Errorf("the URL, which may have a password, is in the file: %s, %v", text, err)
	}
	b = next(b)
	b.Forget("job")
	if err := b.Save(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a name that is held here has a file yet: %v", err)
	}
	if _, _, known := (*Book)(nil).Recall("job", 200); known || (*Book)(nil).Save() != nil {
		t.Error("no book knows something")
	}
	(*Book)(nil).Note(dead, 100)
}

// Whatever is not certain is forgotten.
func TestFinding_K1_AnUncertainSightingIsNone(t *testing.T) {
	edit := func(old, by string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			if err == nil && !strings.Contains(string(text), old) {
				t.Fatalf("no %s in %s", old, text)
			}
			if err == nil {
				err = os.WriteFile(path, []byte(strings.Replace(string(text), old, by, 1)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	does := func(f func(path string) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := f(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, harm := range map[string]func(*testing.T, string){
		"another boot":        edit(`"at":"`, `"at":"0`),
		"another store":       edit(`"store":"`, `"store":"0`),
		"another name":        edit(`"key":"job"`, `"key":"other"`),
		"another format":      edit(`"v":1`, `"v":2`),
		"a time to come":      edit(`"since_ns":100`, `"since_ns":201`),
		"a time before time":  edit(`"since_ns":100`, `"since_ns":-1`),
		"no TTL":              edit(`"ttl_ns":15000000000`, `"ttl_ns":0`),
		"no nonce":            edit(`"nonce":"n"`, `"nonce":""`),
		"nobody":              edit(`"owner":"a"`, `"owner":""`),
		"half a file":         does(func(path string) error { return os.Truncate(path, 40) }),
		"nothing":             does(func(path string) error { return os.Truncate(path, 0) }),
		"a token of no kind":  edit(`"token":`, `"token":{},"was":`),
		"too much":            edit(`{`, `{`+strings.Repeat(" ", maxBytes)),
		"too much after it":   edit(`}`, `}`+strings.Repeat(" ", maxBytes)),
		"others may read it":  does(func(path string) error { return os.Chmod(path, 0o640) }),
		"others may write":    does(func(path string) error { return os.Chmod(path, 0o602) }),
		"another user's":      does(func(path string) error { return os.Chown(path, 4242, 4242) }),
		"the folder is open":  does(func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) }),
		"the folder, another": does(func(path string) error { return os.Chown(filepath.Dir(path), 4242, 4242) }),
		"a link": does(func(path string) error {
			return errors.Join(os.Rename(path, path+"x"), os.Symlink(path+"x", path))
		}),
		"a pipe": does(func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }),
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "another user") || strings.Contains(name, "the folder, another") {
				if os.Geteuid() != 0 {
					t.Skip("only root can give a file away")
				}
			}
			b, path := saved(t)
			harm(t, path)
			if rec, since, known := next(b).Recall("job", 200); known {
				t.Errorf("%+v since %d", rec, since)
			}
		})
	}
}

// A boot, a machine or a time namespace of another kind is another clock; and where it can't be told there is none.
func TestFinding_K1_AnotherClockIsNone(t *testing.T) {
	b, _ := saved(t)
	for name, at := range map[string]func() (string, error){
		"another": func() (string, error) { return "elsewhere", nil },
		"unknown": func() (string, error) { return "", errors.New("no boot id") },
	} {
		other := next(b)
		other.at = at
		if _, _, known := other.Recall("job", 200); known {
			t.Errorf("%s: it counts", name)
		}
	}
	other := next(b)
	other.at = func() (string, error) { return "", errors.New("no boot id") }
	other.Note(dead, 100)
	if err := other.Save(); err == nil || !strings.Contains(err.Error(), "no boot id") {
		t.Errorf("saved: %v", err)
	}
	if id, err := boot(); err != nil || len(id) != 32 {
		t.Errorf("boot: %q, %v", id, err)
	}
}

// A folder that another machine may write to keeps nothing, nor one that another user may.
func TestFinding_K1_FoldersOfOthers(t *testing.T) {
	if err := checkDir("/proc/self/fd"); err == nil || !strings.Contains(err.Error(), "other machines may share") {
		t.Errorf("a file system that isn't known to be local: %v", err)
	}
	b, _ := book(t)
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.dir, 0o770); err != nil {
		t.Fatal(err)
	}
	b.Note(dead, 100)
	if err := b.Save(); err == nil || !strings.Contains(err.Error(), "nobody else may write to") {
		t.Errorf("saved: %v", err)
	}
	none := New("", "s")
	none.Note(dead, 100)
	if err := none.Save(); err == nil || !strings.Contains(err.Error(), "no folder") {
		t.Errorf("saved: %v", err)
	}
}

// What can't be told from another store's record, what nobody holds, and what an engine says is over, isn't kept.
func TestWhatIsNotNoted(t *testing.T) {
	b, path := saved(t)
	for name, change := range map[string]func(*store.Record, *clock.Instant){
		"without a nonce": func(r *store.Record, _ *clock.Instant) { r.Nonce = "" },
		"free":            func(r *store.Record, _ *clock.Instant) { r.Owner = "" },
		"gone for ever":   func(_ *store.Record, since *clock.Instant) { *since = clock.Ended },
	} {
		rec, since := dead, clock.Instant(100)
		change(&rec, &since)
		b.Note(dead, 100)
		if err := b.Save(); err != nil {
			t.Fatal(err)
		}
		b.Note(rec, since)
		if err := b.Save(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: kept: %v", name, err)
		}
	}
}

// The folder, and a book, are bounded: the oldest files give way, also those that a killed process left half written.
func TestFinding_K1_TheFolderIsBounded(t *testing.T) {
	b, _ := saved(t)
	old := time.Now().Add(-time.Hour)
	for i := range MaxKept + 10 {
		path := filepath.Join(b.dir, fmt.Sprintf("new-%d", i))
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	more := next(b)
	for i := range MaxKept + 5 {
		if i == 5 {
			if err := more.Save(); err != nil {
				t.Fatal(err)
			}
		}
		rec := dead
		rec.Key = fmt.Sprint("name", i)
		more.Note(rec, 100)
	}
	entries, err := os.ReadDir(b.dir)
	if err != nil || len(entries) > MaxKept {
		t.Errorf("%d files, %v, want %d at most", len(entries), err, MaxKept)
	}
	if len(more.seen) > MaxKept {
		t.Errorf("%d in a book", len(more.seen))
	}
}

// Processes that read and write the same sightings at once never see half of one, and none fails.
func TestBooksAtOnce(t *testing.T) {
	b, _ := saved(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				one := next(b)
				rec, since, known := one.Recall("job", 1000)
				if !known || rec.Owner != "a" || since < 100 || since > 900 {
					t.Errorf("%+v since %d, %t", rec, since, known)
				}
				one.Note(dead, clock.Instant(100+i*100))
				rec = dead
				rec.Key = fmt.Sprint("other", n%10)
				one.Note(rec, 100)
				if err := one.Save(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
