//go:build unix && !solaris && !aix

package file

import (
	"os"
	"testing"
	"time"
)

// Whoever meets what a killed process left in the wake folder removes it.
func TestDeadWaiter(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	rec := mustPut(t, s, held("k", 1))
	p := start(t, "echo", helperArgs{Path: path, Key: "k"})
	p.line(t)
	shard := s.waiters.bell.shard(shardOf(hash("k")))
	for len(names(shard)) == 0 { // until it waits
		time.Sleep(time.Millisecond)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	rec = mustPut(t, s, rec)
	mustPut(t, s, rec) // a write is answered before the bell is rung: this one is behind both
	for _, name := range names(path + wakeSuffix) {
		if name != "terms.gate" && name != "takings.gate" {
			t.Errorf("%s is left", name)
		}
	}
}

// A buffer full of hashes stands for any number of lost ones.
func TestFullBell(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var ones, alls int
	b := newBell("", "", nil, func(uint64) { ones++ }, func() { alls++ })
	if _, err := w.Write(make([]byte, bufferSize+messageSize)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b.hear(r)
	if alls != 1 || ones != 1 {
		t.Errorf("all %d times, one %d times; want once each", alls, ones)
	}
}

// Who waits for one change after the other keeps its name in the wake folder, which a look takes away when nobody waits any more.
func TestNameLingers(t *testing.T) {
	s := withoutNet(testOpen(t, testPath(t)))
	rec := mustPut(t, s, held("k", 1))
	shard := s.waiters.bell.shard(shardOf(hash("k")))
	for range 3 {
		result := waiting(t, s, rec)
		rec = mustPut(t, s, rec)
		within(t, result)
		if len(names(shard)) != 1 || !s.waiters.bell.lingers() {
			t.Error("the name is gone, and has to be made anew")
		}
	}
	s.waiters.bell.renew() // as every few seconds
	if found := names(shard); len(found) != 0 || s.waiters.bell.lingers() {
		t.Errorf("%q is left", found)
	}
}
