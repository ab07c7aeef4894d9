package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is the socket of a service manager.
type manager struct {
	t *testing.T
	*net.UnixConn
}

func newManager(t *testing.T, path string) manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return manager{t, c}
}

// told returns the next message. All that are sent in a test are there before it asks.
func (m manager) told() string {
	m.t.Helper()
	if err := m.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.Read(b)
	if err != nil {
		m.t.Fatalf("nothing was said: %v", err)
	}
	return string(b[:n])
}

func fromEnv(t *testing.T, vars ...string) *Manager {
	t.Helper()
	for i := 0; i < len(vars); i += 2 {
		t.Setenv(vars[i], vars[i+1])
	}
	m, err := FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{envSocket, envBeat, envBeatPID} {
		if v, ok := os.LookupEnv(name); ok {
			t.Errorf("%s=%s is passed on", name, v)
		}
	}
	return m
}

func TestMessages(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "notify"), "@leasehold-test-" + strconv.Itoa(os.Getpid())} {
		sock := newManager(t, path)
		m := fromEnv(t, envSocket, path)
		done := false
		before := monotonic()
		m.Reloading(func() { done = true })
		usec, ok := strings.CutPrefix(sock.told(), "RELOADING=1\nMONOTONIC_USEC=")
		at, err := strconv.ParseInt(usec, 10, 64)
		if !ok || err != nil || at < before || at > monotonic() || !done {
			t.Errorf("reloading at %s (%v), done: %v", usec, err, done)
		}
		if got := sock.told(); got != "READY=1" {
			t.Errorf("after a reload: %q", got)
		}
		m.Stopping("3 wait\nfor something")
		if got := sock.told(); got != "STOPPING=1\nSTATUS=3 wait; for something" {
			t.Errorf("stopping: %q", got)
		}
	}
}

// It is ready when it first is, lives from then on whatever it says of others, and says nothing when it hangs.
func TestReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	sock := newManager(t, path)
	m := fromEnv(t, envSocket, path, envBeat, "9000000", envBeatPID, strconv.Itoa(os.Getpid()))
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("the store\ndoes not answer")
		clk := clocktest.New(1)
		ctx, cancel := context.WithCancel(t.Context())
		looks := []error{down, down, nil, nil, down}
		var said []string
		begun := time.Now()
		m.Report(ctx, clk, func(limited context.Context) (string, error) {
			if d, ok := limited.Deadline(); ok && time.Until(d) > 3*time.Second {
				t.Errorf("it may take %v", time.Until(d))
			}
			said = append(said, time.Since(begun).Truncate(time.Millisecond).String())
			if len(looks) == 0 {
				<-limited.Done() // it hangs, until the end
				cancel()
				return "", nil
			}
			err := looks[0]
			looks = looks[1:]
			return "serving", err
		})
		if got := strings.Join(said, " "); got != "0s 1s 2s 5s 8s 11s" {
			t.Errorf("it looked after %s", got)
		}
	})
	for _, want := range []string{
		"STATUS=serving: the store; does not answer",
		"READY=1\nSTATUS=serving\nWATCHDOG=1",
		"WATCHDOG=1",
		"STATUS=serving: the store; does not answer\nWATCHDOG=1",
	} {
		if got := sock.told(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	m.Stopping("") // what was said of the hanging look would be before it
	if got := sock.told(); got != "STOPPING=1\nSTATUS=" {
		t.Errorf("%q", got)
	}
}

func TestNobodyIsTold(t *testing.T) {
	m := fromEnv(t, envSocket, "")
	if m != nil {
		t.Errorf("%+v", m)
	}
	called := false
	m.Reloading(func() { called = true })
	m.Stopping("")
	m.Report(t.Context(), clock.System(), nil)
	if !called {
		t.Error("nothing was reloaded")
	}
	fromEnv(t, envSocket, filepath.Join(t.TempDir(), "gone")).Stopping("") // and no error
	if m := fromEnv(t, envSocket, "@x", envBeat, "1", envBeatPID, "1"); m.beat != 0 {
		t.Errorf("another process's watchdog: %v", m.beat)
	}
}

func TestWrongVariables(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{envSocket, "vsock:2:1", `NOTIFY_SOCKET "vsock:2:1": want the path`},
		{envBeat, "soon", `WATCHDOG_USEC "soon": want a number`},
		{envBeat, "0", "above 0"},
	} {
		t.Setenv(envSocket, "/x")
		t.Setenv(c.name, c.value)
		if m, err := FromEnv(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%s: %v, %v", c.name, c.value, m, err)
		}
	}
}
