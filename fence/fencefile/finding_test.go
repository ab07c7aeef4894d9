//go:build unix

package fencefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencefile"
)

// A file has one mark, by whatever link it is reached.
func TestFinding_G3_LinksHaveTheMarkOfTheFile(t *testing.T) {
	dir := t.TempDir()
	path, link, folder := filepath.Join(dir, "data", "ledger"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.Symlink(path, link), os.Symlink(filepath.Dir(path), folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := fencefile.New(link, "ledger").Append(t.Context(), seq("a", 5), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link to nothing: %v", err)
	}
	if err := fencefile.New(path, "ledger").Append(t.Context(), seq("b", 6), []byte("6\n")); err != nil {
		t.Fatal(err)
	}
	for _, spelling := range []string{link, filepath.Join(folder, "ledger"), filepath.Join(dir, "data", "..", "data", "ledger")} {
		f := fencefile.New(spelling, "ledger")
		for what, write := range map[string]error{"append": f.Append(t.Context(), seq("a", 5), []byte("5\n")), "replace": f.Replace(t.Context(), seq("a", 5), []byte("5\n"))} {
			if !errors.Is(write, fence.ErrStale) {
				t.Errorf("%s to %s: %v", what, spelling, write)
			}
		}
	}
	if err := fencefile.New(link, "ledger").Replace(t.Context(), seq("c", 7), []byte("7\n")); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link is one to %q: %v", to, err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "7\n" {
		t.Errorf("%q, %v", text, err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, other} {
		if err := fencefile.New(name, "ledger").Append(t.Context(), seq("d", 8), nil); err == nil || !strings.Contains(err.Error(), "2 hard links") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fencefile.New(filepath.Dir(path), "ledger").Append(t.Context(), seq("d", 8), nil); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a folder: %v", err)
	}
}

func TestFinding_G3_ReplaceKeepsModeAndOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o646); err != nil { // no umask has a say
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 1234, 2345
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if err := fencefile.New(path, "ledger").Replace(t.Context(), seq("a", 5), []byte("5\n")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode() != 0o646 || int(stat.Uid) != uid || int(stat.Gid) != gid || info.Size() != 2 {
		t.Errorf("%v, of %d:%d, want 0646, of %d:%d", info.Mode(), stat.Uid, stat.Gid, uid, gid)
	}
}
