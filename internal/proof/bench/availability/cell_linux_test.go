package availability

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// contestant is a way to elect a leader on a server.
type contestant struct {
	server string // as servers.Launch calls it
	name   string
	kind   string // of the candidate
	lock   bool   // the candidate is the child of `consul lock`
}

var contestants = []contestant{
	{server: "etcd", name: ours, kind: "leasehold-etcd"},
	{server: "etcd", name: "etcd's Mutex", kind: "mutex"},
	{server: "kubernetes", name: ours, kind: "leasehold-kubernetes"},
	{server: "kubernetes", name: "client-go's elector", kind: "client-go"},
	{server: "consul", name: ours, kind: "leasehold-consul"},
	{server: "consul", name: "consul lock", kind: "child", lock: true},
}

const ours = "Leasehold"

// cell is a contestant in a scenario: two candidates behind a network of their own, for a name of their own.
type cell struct {
	contestant

	scenario  scenario
	candidacy candidacy
	network   *servers.Network
	began     time.Time
	words     *os.File // the pipe into which candidates write
	log       *os.File // what else they say
	text      string   // of the log, when that is gone
	running   sync.WaitGroup

	mu        sync.Mutex
	events    []event
	leads     map[string]bool
	processes map[string]*os.Process
}

// restart is how soon a candidate is started again at the earliest, as systemd does it by default.
const restart = 100 * time.Millisecond

// open starts both candidates. They are started again whenever they have ended, until ctx is done; the test waits for that.
func (c contestant) open(ctx context.Context, t testing.TB, srv *servers.Server, s scenario, n int) *cell {
	t.Helper()
	network := servers.Proxy(t, srv.Addr)
	l := &cell{
		contestant: c, scenario: s, network: network, began: time.Now(), leads: map[string]bool{}, processes: map[string]*os.Process{},
		candidacy: candidacy{
			Kind: c.kind, Name: fmt.Sprintf("cell-%d", n), Addr: network.Addr, Kubeconfig: srv.Extra["kubeconfig"],
		},
	}
	var err error
	if l.log, err = os.CreateTemp(t.TempDir(), "log"); err != nil {
		t.Fatal(err)
	}
	words, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.words = w
	var reading sync.WaitGroup
	reading.Go(func() { l.read(words) })
	ctx, stop := context.WithCancel(ctx)
	for _, id := range []string{"0", "1"} {
		l.running.Go(func() { l.keep(ctx, t, id) })
	}
	t.Cleanup(func() {
		stop()
		l.running.Wait()
		_ = w.Close()
		reading.Wait() // until the last process has closed it
		_ = words.Close()
		l.said()
		_ = l.log.Close()
	})
	return l
}

// command is the process of a candidate. It ends with this one.
func (l *cell) command(ctx context.Context, id string) (*exec.Cmd, error) {
	c := l.candidacy
	c.ID = id
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{self}
	if l.lock {
		program, err := servers.Program("consul", "consul")
		if err != nil {
			return nil, err
		}
		args = []string{program, "lock", "-shell=false", "-http-addr=" + c.Addr, "availability-lock/" + c.Name, self}
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), helper+"="+string(text))
	cmd.Stdout, cmd.Stderr = l.words, l.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, nil
}

// keep has a candidate run until ctx is done, as a supervisor does.
func (l *cell) keep(ctx context.Context, t testing.TB, id string) {
	for ctx.Err() == nil {
		again := time.After(restart)
		cmd, err := l.command(ctx, id)
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("a candidate of %s does not start: %v", l.contestant.name, err)
			}
			return
		}
		l.mu.Lock()
		l.processes[id] = cmd.Process
		l.mu.Unlock()
		_ = cmd.Wait() // a loss may be an error, and so is being killed
		_, _ = fmt.Fprintf(l.words, "%s %s\n", gone, id)
		select {
		case <-again:
		case <-ctx.Done():
		}
	}
}

// read notes what candidates say until the pipe ends.
func (l *cell) read(words *os.File) {
	for in := bufio.NewScanner(words); in.Scan(); {
		what, id, _ := strings.Cut(in.Text(), " ")
		if what != begins && what != ends && what != gone {
			continue // what `consul lock` says to people
		}
		l.mu.Lock()
		l.events = append(l.events, event{time.Since(l.began), id, what})
		l.leads[id] = what == begins
		l.mu.Unlock()
	}
}

// leader returns the process of who leads; nil if nobody does.
func (l *cell) leader() *os.Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, leads := range l.leads {
		if leads {
			return l.processes[id]
		}
	}
	return nil
}

// said is what its candidates have written for people.
func (l *cell) said() string {
	if text, err := os.ReadFile(l.log.Name()); err == nil {
		l.text = string(text)
	}
	return l.text
}

// outcome is what has happened between two times.
func (l *cell) outcome(from, to time.Time) outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	return measure(l.events, from.Sub(l.began), to.Sub(l.began))
}
