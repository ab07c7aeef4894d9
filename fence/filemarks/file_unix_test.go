//go:build unix && !solaris && !illumos && !aix

package filemarks

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A child that is being started has all files of its parent open, until its program runs: it keeps nobody from a file that was closed.
func TestFileClosedWhileAChildIsForked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(m.f.Fd())) // as fork does
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(child) }()
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
