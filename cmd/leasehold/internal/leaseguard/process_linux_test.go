package leaseguard

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

func TestStandingOfAProcess(t *testing.T) {
	for text, want := range map[string][2]string{
		"12 (a) b) Z 1 345 6": {"Z", "345"}, "12 (a) S 1": {"S", ""}, "12 (a) S 1 2 3\n": {"S", "2"}, "": {"", ""}, ")": {"", ""},
	} {
		if state, group := standing([]byte(text)); state != want[0] || group != want[1] {
			t.Errorf("%q: state %q, group %q; want %q", text, state, group, want)
		}
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if _, group := standing(stat); group != strconv.Itoa(syscall.Getpgrp()) {
		t.Errorf("%q: group %q, want %d", stat, group, syscall.Getpgrp())
	}
	if !groupLives(syscall.Getpgrp()) {
		t.Error("this process's own group doesn't live")
	}
}

// The wait ends with the time, with what there is to read, and with the end of the supervisor.
func TestAwaitInput(t *testing.T) {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	keep, err := syscall.Dup(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Dup3(p[0], 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Dup3(keep, 0, 0)
		_, _ = syscall.Close(keep), syscall.Close(p[0])
	})
	for _, d := range []time.Duration{-time.Second, 0, 30 * time.Millisecond, slice + 30*time.Millisecond} {
		begun := now()
		if awaitInput(begun + int64(d)) {
			t.Fatal("there is nothing to read")
		}
		if took := time.Duration(now() - begun); took < d {
			t.Errorf("waited %v, not %v", took, d)
		}
	}
	if _, err := syscall.Write(p[1], []byte("x")); err != nil {
		t.Fatal(err)
	}
	if !awaitInput(now()) {
		t.Error("what there is to read comes before the time")
	}
	var b [8]byte
	if n, err := readAgain(0, b[:]); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if err := syscall.Close(p[1]); err != nil {
		t.Fatal(err)
	}
	if !awaitInput(never) {
		t.Error("the supervisor has ended")
	}
}
