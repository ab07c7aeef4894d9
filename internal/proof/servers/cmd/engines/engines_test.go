//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// program builds the command, and returns what runs it, with a state folder of the test's own.
func program(t *testing.T) (run func(args ...string) (stdout, stderr string, err error), state string) {
	t.Helper()
	servers.Redis(t) // which skips the test where it is missing
	binary := filepath.Join(t.TempDir(), "engines")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cache := t.TempDir()
	run = func(args ...string) (string, string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Env = append(os.Environ(), "LEASEHOLD_CACHE="+cache)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		return stdout.String(), stderr.String(), err
	}
	t.Cleanup(func() { _, _, _ = run("down") })
	return run, filepath.Join(cache, "engines")
}

func TestUpAndDown(t *testing.T) {
	run, dir := program(t)
	if _, text, err := run("down"); err == nil || !strings.Contains(text, "nothing is up") {
		t.Errorf("down before up: %q, %v", text, err)
	}
	if _, text, err := run("urls"); err == nil || !strings.Contains(text, "nothing is up") {
		t.Errorf("urls before up: %q, %v", text, err)
	}
	first, text, err := run("up", "redis")
	if err != nil {
		t.Fatalf("up: %v: %s", err, text)
	}
	addr, ok := strings.CutPrefix(strings.TrimSuffix(first, "'\n"), "export LEASEHOLD_TEST_REDIS_URL='redis://")
	if !ok || !strings.Contains(text, "leasehold --store 'redis://"+addr+"'") {
		t.Fatalf("up printed %q and %q", first, text)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("what up printed does not serve: %v", err)
	}
	conn.Close()
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Error(err)
	}
	second, text, err := run("up", "redis")
	if err != nil || second != first || !strings.Contains(text, "already") {
		t.Errorf("up again: %q, %q, %v", second, text, err)
	}
	if again, _, err := run("urls"); err != nil || again != first {
		t.Errorf("urls: %q, %v", again, err)
	}
	if _, text, err := run("down"); err != nil {
		t.Errorf("down: %v: %s", err, text)
	}
	gone(t, addr)
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data are still there: %v", err)
	}
}

func TestServersGoWithTheProcessInTheBackground(t *testing.T) {
	run, dir := program(t)
	out, text, err := run("up", "redis")
	if err != nil {
		t.Fatalf("up: %v: %s", err, text)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(pid))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, addr, _ := strings.Cut(strings.TrimSuffix(out, "'\n"), "redis://")
	gone(t, addr)
	for end := time.Now().Add(2 * time.Minute); ; { // its files are closed after its servers have died
		if _, text, err := run("urls"); err != nil {
			break
		} else if time.Now().After(end) {
			t.Fatalf("urls of what was killed: %q", text)
		}
	}
	if _, text, err := run("up", "redis"); err != nil {
		t.Errorf("up after a kill: %v: %s", err, text)
	}
}

func TestWhatCantComeUp(t *testing.T) {
	run, _ := program(t)
	if _, text, err := run("up", "oracle"); err == nil || !strings.Contains(text, "postgres") {
		t.Errorf("an unknown name: %q, %v, want the names", text, err)
	}
	if _, text, err := run("up", "redis", "etcd"); err == nil || !strings.Contains(text, "scripts/engines install etcd") {
		t.Errorf("a name that is not installed: %q, %v", text, err)
	}
	if _, text, err := run("urls"); err == nil {
		t.Errorf("urls after an up that failed: %q", text)
	}
	if _, text, err := run(); err == nil {
		t.Errorf("no command: %q", text)
	}
}

// gone waits until nobody listens there.
func gone(t *testing.T, addr string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(end) {
			t.Fatalf("somebody still listens at %s", addr)
		}
	}
}
