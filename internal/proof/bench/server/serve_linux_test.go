package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs is where the command is built.
var programs string

// built is the command, built once for all tests.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "leasehold")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", path, "github.com/leasehold/leasehold/cmd/leasehold").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	for env, helper := range map[string]func(string) error{crowdHelper: crowdOf, floorHelper: serveNothing, watchHelper: watchersOf} {
		if text := os.Getenv(env); text != "" {
			if err := helper(text); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	var err error
	if programs, err = os.MkdirTemp("", "leasehold-served"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

// served is a server that runs as a process of its own.
type served struct {
	cmd  *exec.Cmd
	addr string
}

func (s *served) url() string { return "http://" + s.addr }

// serve starts a server on the file store in dir, or what else the flags say, and returns when it listens.
func serve(t testing.TB, dir, listen string, flags ...string) *served {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--listen", listen, "--store", "file:" + filepath.Join(dir, "leases.db")}, flags...)
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &served{cmd: cmd}
	t.Cleanup(func() { s.stop(syscall.SIGKILL) })
	in := bufio.NewReader(stderr)
	for s.addr == "" {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the server did not listen: %v %s", err, line)
		}
		if _, addr, ok := strings.Cut(strings.TrimSpace(line), " on http://"); ok {
			s.addr = addr
		}
	}
	go func() { _, _ = io.Copy(os.Stderr, in) }() // ends with the process
	return s
}

// stop sends a signal and waits until the server has ended.
func (s *served) stop(sig syscall.Signal) {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(sig)
		_ = s.cmd.Wait()
	}
}

// memory returns a field of the server's /proc/PID/status, in bytes.
func (s *served) memory(t testing.TB, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s", field)
	return 0
}

// processor returns how much processor time a process has used; 0 stands for none.
func processor(t testing.TB, pid int) time.Duration {
	t.Helper()
	if pid == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	user, err1 := strconv.Atoi(fields[12])
	system, err2 := strconv.Atoi(fields[13])
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
}

// newClient returns a client that keeps as many connections as it is used for at a time.
func newClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections, DisableCompression: true}}
}

// eventually waits until is is true.
func eventually(t testing.TB, what string, within time.Duration, is func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	for !is() {
		if time.Since(begun) > within {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(begun)
}
