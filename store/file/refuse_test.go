package file

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shell runs statements on the file as another program would.
func shell(t testing.TB, path string, statements ...string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	c, err := dialWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, stmt := range statements {
		if _, err := c.exec(stmt); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// filled is a closed store with a few records, and no log left.
func filled(t testing.TB, path string) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("a b c d e f g h i j k l m n o p") {
		mustPut(t, s, full(key))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	shell(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		want []string // all in the error
	}{
		{"folder", func(t *testing.T, path string) { _ = os.Mkdir(path, 0o700) }, []string{"store.db: a folder", "name a file in it"}},
		{"device", func(t *testing.T, path string) { _ = os.Symlink(os.DevNull, path) }, []string{"/dev/null: not a regular file"}},
		{"dangling link", func(t *testing.T, path string) { _ = os.Symlink("nowhere", path) }, []string{"symbolic link leads nowhere"}},
		{"text", func(t *testing.T, path string) { write(t, path, bytes.Repeat([]byte("hello world\n"), 1000)) },
			[]string{"not an SQLite database", "name another file"}},
		{"header only", func(t *testing.T, path string) {
			filled(t, path)
			content, _ := os.ReadFile(path)
			write(t, path, content[:100])
		}, []string{"damaged", "put back a copy"}},
		{"truncated", func(t *testing.T, path string) {
			filled(t, path)
			content, _ := os.ReadFile(path)
			write(t, path, content[:len(content)-4096])
		}, []string{"damaged", "put back a copy"}},
		{"overwritten page", func(t *testing.T, path string) {
			filled(t, path)
			content, _ := os.ReadFile(path)
			copy(content[len(content)-4096:], bytes.Repeat([]byte{0xff, 0x00, 0x55}, 1300))
			write(t, path, content)
		}, []string{"damaged", "put back a copy"}},
		{"another program's", func(t *testing.T, path string) {
			shell(t, path, "PRAGMA application_id = 77", "CREATE TABLE songs (a)")
		},
			[]string{"another program", "77", "name another file"}},
		{"another program's without id", func(t *testing.T, path string) { shell(t, path, "CREATE TABLE songs (a)") },
			[]string{"another program", "name another file"}},
		{"newer schema", func(t *testing.T, path string) {
			filled(t, path)
			shell(t, path, "PRAGMA user_version = 9")
		}, []string{"newer Leasehold", "version is 9", "up to 1", "upgrade"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := testPath(t)
			c.make(t, path)
			before, _ := os.ReadFile(path)
			s, err := Open(t.Context(), path, Options{})
			if err == nil {
				t.Fatal("opened; Close:", s.Close())
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestMissingFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "store.db")
	_, err := Open(t.Context(), path, Options{})
	if err == nil || !strings.Contains(err.Error(), "CreateDir") || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("Open: %v", err)
	}
	s, err := Open(t.Context(), path, Options{CreateDir: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What is in the file is for its owner.
func TestModes(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	mustPut(t, s, held("k", 1))
	for name, want := range map[string]os.FileMode{"": 0o600, "-wal": 0o600, "-shm": 0o600, ".lock": 0o600, ".wake": 0o700 | os.ModeDir} {
		info, err := os.Stat(path + name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", info.Name(), info.Mode(), want)
		}
	}
}

// Names that mean something in a URI are names.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"a?b=c", "100%", "%41", "a#b", "with space", "späť", "file:x", "a&_pragma=user_version(9)"} {
		path := filepath.Join(t.TempDir(), name)
		s := testOpen(t, path)
		mustPut(t, s, held("k", 1))
		if _, err := os.Stat(path + "-wal"); err != nil {
			t.Error(err)
		}
	}
}

// All names of a file lead to one lock.
func TestSymbolicLinks(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if other := testOpen(t, link); other.main.f.Name() != s.main.f.Name() {
		t.Errorf("locks %s and %s", s.main.f.Name(), other.main.f.Name())
	}
}

func TestOpenWaitsForTheLock(t *testing.T) {
	path := testPath(t)
	lock := lockOf(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, path, Options{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process holds") {
		t.Errorf("Open: %v", err)
	}
	if err := lock.unlock(); err != nil {
		t.Fatal(err)
	}
	testOpen(t, path)
}

// lockOf takes the file's lock, as a process does that is then stopped.
func lockOf(t testing.TB, path string) *lockFile {
	t.Helper()
	lock, err := openLock(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.close() })
	if err := lock.lock(); err != nil {
		t.Fatal(err)
	}
	return lock
}
