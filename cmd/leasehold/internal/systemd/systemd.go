// Package systemd tells the service manager that started this program how it fares, by the protocol
// of sd_notify(3). Other service managers speak it, too.
package systemd

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// The variables by which a service manager says that it wants to be told.
const (
	envSocket  = "NOTIFY_SOCKET"
	envBeat    = "WATCHDOG_USEC"
	envBeatPID = "WATCHDOG_PID"
)

// Manager is a service manager. A nil one is there for programs that were started otherwise: its
// methods do nothing.
type Manager struct {
	addr *net.UnixAddr
	beat time.Duration
	said string // the last status
}

// FromEnv returns the manager that wants to be told, or nil. It takes the variables out of the
// environment, so that no program that this one starts speaks in its name. Errors name the
// variable.
func FromEnv() (*Manager, error) {
	path, usec, pid := os.Getenv(envSocket), os.Getenv(envBeat), os.Getenv(envBeatPID)
	for _, name := range []string{envSocket, envBeat, envBeatPID} {
		_ = os.Unsetenv(name) // it fails for names that can't be
	}
	if path == "" {
		return nil, nil //nolint:nilnil // a manager that isn't there is a nil one
	}
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("%s %q: want the path of a socket, or @ and the name of an abstract one", envSocket, path)
	}
	m := &Manager{addr: &net.UnixAddr{Name: path, Net: "unixgram"}}
	if usec != "" && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n, err := strconv.ParseInt(usec, 10, 64)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("%s %q: want a number of microseconds above 0", envBeat, usec)
		}
		m.beat = time.Duration(n) * time.Microsecond
	}
	return m, nil
}

// tell sends one message. An error is that of a manager that has gone: there is nobody to be told
// of it.
func (m *Manager) tell(lines ...string) {
	if m == nil {
		return
	}
	c, err := net.DialUnix(m.addr.Net, nil, m.addr)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = c.Write([]byte(strings.Join(lines, "\n")))
}

// Reloading has f called, which reads the program's configuration again, and says so before and
// after it.
func (m *Manager) Reloading(f func()) {
	m.tell("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic(), 10))
	f()
	m.tell("READY=1")
}

// Stopping says that the program is about to end, and what it still waits for.
func (m *Manager) Stopping(status string) { m.tell("STOPPING=1", "STATUS="+line(status)) }

// The pauses between two looks.
const (
	lookOften  = time.Second      // while it isn't ready
	lookSeldom = 10 * time.Second // with a watchdog: at most a third of its patience
)

// Report looks at how the program fares until ctx is done. It says that it is ready when look first
// returns no error, and from then on that it lives whenever look has returned: what look says of
// others, such as a store that doesn't answer, is shown as the status, since a restart of this
// program would not mend it. So look must return in time, as long as anything works: the context
// that it is given ends after a third of the watchdog's patience.
func (m *Manager) Report(ctx context.Context, clk clock.Clock, look func(context.Context) (status string, err error)) {
	if m == nil {
		return
	}
	pause, ready := lookOften, false
	every := lookSeldom
	if m.beat > 0 {
		every = min(every, m.beat/3)
	}
	for ctx.Err() == nil {
		limited, cancel := clock.WithTimeout(ctx, clk, every)
		status, err := look(limited)
		cancel()
		if ctx.Err() != nil {
			return
		}
		var lines []string
		if err == nil && !ready {
			ready, pause = true, every
			lines = append(lines, "READY=1")
		}
		if err != nil {
			status += ": " + err.Error()
		}
		if status = line(status); status != m.said {
			m.said = status
			lines = append(lines, "STATUS="+status)
		}
		if ready && m.beat > 0 {
			lines = append(lines, "WATCHDOG=1")
		}
		if len(lines) > 0 {
			m.tell(lines...)
		}
		if clock.Sleep(ctx, clk, min(pause, every)) != nil {
			return
		}
	}
}

// line makes one line of a status.
func line(text string) string { return strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ") }
