//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

func TestGuardRefusesLateTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n")
	g, err := openGuard(path, "n", false)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		holder string
		token  fence.Token
		ok     bool
	}{{"a", 5, true}, {"a", 5, true}, {"b", 5, false}, {"b", 4, false}, {"b", 6, true}, {"a", 5, false}, {"a", 0, false}} {
		if err := g.write(c.holder, c.token, i); (err == nil) != c.ok || !c.ok && !errors.Is(err, fence.ErrStale) {
			t.Errorf("write %d: %v", i, err)
		}
	}
	// A process was killed in the middle of a write.
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("9 b"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := readGuard(path); err != nil || len(all) != 3 {
		t.Errorf("got %v, %v, want the three that were accepted", all, err)
	}
	if err := g.write("c", 7, 1); err != nil { // above 6, the mark: 9 was never accepted
		t.Error(err)
	}
	if all, err := readGuard(path); err != nil || len(all) != 4 || all[3] != (write{7, "c", 1}) {
		t.Errorf("got %v, %v", all, err)
	}
}
