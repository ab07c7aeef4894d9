package filemarks

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// opened opens a file of marks, and closes it after the test.
func opened(t *testing.T, path string) *Marks {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// A mark is there however often the file was opened and closed since, and beside marks that were saved later.
func TestMarksOutliveOpenings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	for i, resource := range []string{"a", "b", ""} {
		m := opened(t, path)
		if resource != "" {
			if err := m.Save(t.Context(), resource, fence.Mark{Token: fence.Token(i + 5), Holder: "me"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	m := opened(t, path)
	for resource, want := range map[string]fence.Mark{"a": {Token: 5, Holder: "me"}, "b": {Token: 6, Holder: "me"}} {
		if got, err := m.Load(t.Context(), resource); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", resource, got, err, want)
		}
	}
}

// Only its owner may read or write the file, also after it was rewritten; and what was rewritten is locked like what it replaced.
func TestMarksAreTheirOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	mode := func() {
		t.Helper()
		if i, err := os.Stat(path); err != nil || compacts && i.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", i.Mode(), err)
		}
	}
	m := opened(t, path)
	mode()
	for i := range 300 {
		if err := m.Save(t.Context(), "n", fence.Mark{Token: fence.Token(i + 1), Holder: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = opened(t, path)
	mode()
	if i, err := os.Stat(path); err != nil || compacts && i.Size() > 1000 {
		t.Fatalf("it wasn't rewritten: %d bytes, %v", i.Size(), err)
	}
	if other, err := Open(path); compacts && err == nil {
		t.Errorf("a second process opens it, too: %v", other.Close())
	}
	if mark, err := m.Load(t.Context(), "n"); err != nil || mark.Token != 300 {
		t.Errorf("%+v, %v", mark, err)
	}
}

// Lines that are no marks, though they are JSON, are errors: the file was damaged.
func TestLinesThatAreNoMarks(t *testing.T) {
	for _, text := range []string{
		`{"resource":"n","token":0,"holder":"a"}`, `{"resource":"n","holder":"a"}`, `{"resource":"n","token":9223372036854775808,"holder":"a"}`,
		`{"resource":"n","token":"9223372036854775808","holder":"a"}`, `{"resource":"n","token":18446744073709551615,"holder":"a"}`, `{}`, `[]`,
	} {
		path := filepath.Join(t.TempDir(), "marks")
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := Open(path); err == nil {
			t.Errorf("%s is taken for a mark: %v", text, m.Close())
		}
	}
}

// What goes wrong at the file is an error, and no guard without its marks comes of it.
func TestFailuresOfTheFile(t *testing.T) {
	if m, err := Open(filepath.Join(t.TempDir(), "none", "marks")); m != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that isn't there: %v, %v", m, err)
	}

	path := filepath.Join(t.TempDir(), "marks")
	m := opened(t, path)
	moved := path + ".old"
	if err := os.Rename(path, moved); err == nil { // Windows doesn't rename a file that is open
		if err := m.open(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("moved away: %v", err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := m.open(); err == nil {
			t.Error("another file has its place, and there is no error")
		}
	}

	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (&Marks{f: closed, marks: map[string]fence.Mark{}}).read(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a file that can't be read: %v", err)
	}
	if err := syncDir(filepath.Join(t.TempDir(), "none")); compacts && err == nil {
		t.Error("the names in a folder that isn't there are durable")
	}
}

// A file that can't be replaced is an error: nothing is saved into one that has lost its name.
func TestARewriteThatFails(t *testing.T) {
	if !compacts {
		t.Skip("a file that is open can't be replaced on this system")
	}
	dir := t.TempDir()
	for name, prepare := range map[string]func(path string) error{
		"the new one can't be made":  func(path string) error { return os.MkdirAll(path+".new", 0o700) },
		"the old one can't be moved": func(path string) error { return os.MkdirAll(filepath.Join(path, "not empty"), 0o700) },
	} {
		path := filepath.Join(dir, name)
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		if err := (&Marks{path: path, marks: map[string]fence.Mark{"n": {Token: 5, Holder: "a"}}}).rewrite(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// After Close nothing is saved, and to close once more is no error.
func TestCloseTwice(t *testing.T) {
	m := opened(t, filepath.Join(t.TempDir(), "marks"))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(t.Context(), "n", fence.Mark{Token: 5, Holder: "a"}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("saved after Close: %v", err)
	}
}

// After a write that failed, and after Close, nothing is saved, however often it is asked again.
func TestNothingIsSavedAfterAFailure(t *testing.T) {
	m, err := Open(filepath.Join(t.TempDir(), "marks"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Save(t.Context(), "n", fence.Mark{Token: 5, Holder: "a"}); err == nil {
			t.Error("saved into a file that is closed")
		}
	}
}
