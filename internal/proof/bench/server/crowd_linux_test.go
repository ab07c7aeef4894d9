package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// A process may not have as many files open as a crowd of 50,000 needs: such a limit is often 20,000. So the crowd waits at three
// servers on one store, in three processes of clients.
const (
	sites        = 3
	filesOfSite  = 18_000 // most connections of one of those processes
	crowdHelper  = "LEASEHOLD_BENCH_CROWD"
	crowdOfSites = 3000 // unless LEASEHOLD_CROWD says otherwise
)

// site is one server and the process of those who wait at it.
type site struct {
	*audience
	number int
	people *exec.Cmd
	many   int
}

// TestCrowdOfServers has a crowd wait at several servers on one store: all wait, in bounded memory; a name goes from one to the next
// among them, and whoever leaves is dropped within a second.
func TestCrowdOfServers(t *testing.T) {
	n := crowdOfSites
	if text := os.Getenv("LEASEHOLD_CROWD"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n > sites*filesOfSite {
			t.Fatalf("LEASEHOLD_CROWD=%s: want a number up to %d", text, sites*filesOfSite)
		}
	}
	allowFiles(t, uint64(n/sites)+1000)
	dir := t.TempDir()
	var all []*site
	var before int64
	for i := range sites {
		s := serve(t, dir, "127.0.0.1:0")
		all = append(all, &site{audience: &audience{t: t, s: s, client: newClient(4)}, number: i, many: n / sites})
		before += s.memory(t, "VmRSS")
	}
	begun := time.Now()
	for _, s := range all {
		for k := range namesOfCrowd {
			s.hold(t, crowdName(s.number, k))
		}
		s.gather()
	}
	for _, s := range all {
		s.allWait(t)
	}
	took := time.Since(begun)
	time.Sleep(2 * time.Second) // what was needed to get in line is given back, or not
	var resident, most int64
	for _, s := range all {
		resident += s.s.memory(t, "VmRSS")
		most += s.s.memory(t, "VmHWM")
	}
	n = sites * (n / sites)
	t.Logf("%d waiters at %d servers on one file in %v: %d MiB resident together, %d at most; %d KiB a waiter",
		n, sites, took.Round(time.Millisecond), resident>>20, most>>20, (resident-before)/int64(n)>>10)
	if limit := mostFor(sites, n, before); resident > limit {
		t.Errorf("%d MiB for %d waiters: want at most %d", resident>>20, n, limit>>20)
	}
	passed := all[0].pass(t)
	t.Logf("hand-over among %d waiters: p50 %v, p99 %v", n, passed[len(passed)/2], passed[len(passed)*99/100])
	stalltest.Run(t, func(t testing.TB) {
		dropped := all[0].leave(t)
		t.Logf("one of %d waiters closes its connection, %d times: dropped within %v at the most", n, len(dropped), dropped[len(dropped)-1])
		if dropped[len(dropped)-1] > time.Second {
			t.Error("a waiter that has gone is not dropped within a second")
		}
	})
	stalltest.Run(t, all[1].vanish)
}

// gather starts the process of those who wait at a server, for names of its own. It ends with the whole test.
func (s *site) gather() {
	s.t.Helper()
	self, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	people := exec.CommandContext(context.Background(), self)
	people.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", crowdHelper, s.s.addr, s.number, s.many))
	people.Stderr = os.Stderr
	people.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stay, err := people.StdinPipe()
	if err == nil {
		err = people.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = stay.Close()
		_ = people.Wait()
	})
	s.people = people
}

func (s *site) allWait(t testing.TB) {
	t.Helper()
	eventually(t, "all wait", 5*time.Minute, func() bool { return s.waiting() == s.many })
}

// crowdOf is the process of those who wait at one server. It ends when its standard input does.
func crowdOf(what string) error {
	var addr string
	var site, many int
	if _, err := fmt.Sscan(what, &addr, &site, &many); err != nil {
		return err
	}
	var all []net.Conn
	for i := range many {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(2+site), byte(2+i/10_000))}, Timeout: time.Minute}
		conn, err := d.DialContext(context.Background(), "tcp", addr)
		if err != nil {
			return err
		}
		all = append(all, conn)
		body := fmt.Sprintf(`{"holder": "%d", "ttl": 3600, "wait": 3600}`, i)
		if _, err := fmt.Fprintf(conn, "POST /v1/leases/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", crowdName(site, i), len(body), body); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	for _, conn := range all {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// pass has a name go from one client to the next many times.
func (s *site) pass(t *testing.T) (took []time.Duration) {
	t.Helper()
	const many = 300
	holder := s.hold(t, "passed")
	for range many {
		next := s.take(t, 1, "passed", time.Hour)
		eventually(t, "it waits", 10*time.Second, func() bool { return s.queued("passed") == 1 })
		begun, err := holder.release("passed")
		if err == nil {
			err = next.answer()
		}
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, next.done.Sub(begun))
		_ = holder.conn.Close()
		holder = next
	}
	slices.Sort(took)
	return took
}

// leave has a waiter close its connection, several times, and sees how long it stays in the queue.
func (s *site) leave(t testing.TB) (took []time.Duration) {
	t.Helper()
	name := s.name("left")
	s.hold(t, name)
	for range 20 {
		p := s.take(t, 1, name, time.Hour)
		eventually(t, "it waits", 10*time.Second, func() bool { return s.queued(name) == 1 })
		_ = p.conn.Close()
		took = append(took, eventually(t, "it is dropped", 10*time.Second, func() bool { return s.queued(name) == 0 }))
	}
	slices.Sort(took)
	return took
}

// vanish kills all who wait at one server.
func (s *site) vanish(t testing.TB) {
	t.Helper()
	if s.people.ProcessState != nil { // after an attempt that says nothing
		s.gather()
		s.allWait(t)
	}
	if err := s.people.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.people.Wait()
	took := eventually(t, "they are dropped", time.Minute, func() bool { return s.waiting() == 0 })
	t.Logf("%d of the waiters are killed at once: dropped within %v", s.many, took.Round(time.Millisecond))
	if s.many <= crowd && took > time.Second { // to notice tens of thousands at a time takes what it takes
		t.Errorf("dropped after %v: want 1s", took)
	}
}
