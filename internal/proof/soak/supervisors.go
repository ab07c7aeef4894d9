//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// family is what `leasehold run` supervises here: a child in a session of its own, an orphan in
// another one, and one that stays, all deaf to SIGTERM. The term ends with the one that stays, up
// to $1 after it began.
const family = `
setsid "$0" a &
(setsid sh -c '"$0" b & wait' "$0" &)
"$0" c "$1"`

// supervisors are processes of `leasehold run`, and what those supervise. They are safe for
// concurrent use.
type supervisors struct {
	config
	ticks  string // the folder of the files in which families tell that they live
	tools  string // the folder with the programs leasehold and member
	target string // --store
	clk    clock.Clock
	wrong  func(error)

	running sync.WaitGroup // a goroutine for each slot, for which finish waits

	mu     sync.Mutex
	slots  []*supervisor // that run now
	ending bool
	codes  map[int]int // how often one ended by itself with an exit code
	counts map[faultOf]int
}

// supervisor is one process of `leasehold run`.
type supervisor struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex // held while a fault strikes
	killed bool
}

// job returns the name that the supervisor of a slot wants.
func job(slot int) string { return fmt.Sprintf("job-%d", slot/perJob) }

// buildTools builds the programs of supervisors and families.
func buildTools(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir, "github.com/leasehold/leasehold/cmd/leasehold", "github.com/leasehold/leasehold/internal/proof/soak/member")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w: %s", err, out)
	}
	return nil
}

// supervise starts the supervisors of a run, if it wants any.
func supervise(ctx context.Context, c config, dir, target string, clk clock.Clock, wrong func(error)) (*supervisors, error) {
	s := &supervisors{
		config: c, ticks: filepath.Join(dir, "ticks"), tools: c.Tools, target: target, clk: clk, wrong: wrong,
		slots: make([]*supervisor, c.Commands), codes: map[int]int{}, counts: map[faultOf]int{},
	}
	if c.Commands == 0 {
		return s, nil
	}
	if err := os.Mkdir(s.ticks, 0o700); err != nil {
		return nil, err
	}
	if s.tools == "" {
		s.tools = filepath.Join(dir, "tools")
		if err := errors.Join(os.Mkdir(s.tools, 0o700), buildTools(ctx, s.tools)); err != nil {
			return nil, err
		}
	}
	for slot := range s.slots {
		s.running.Go(func() { s.follow(slot) })
	}
	return s, nil
}

// follow has a supervisor run in a slot until the end.
func (s *supervisors) follow(slot int) {
	for {
		p, err := s.start(slot)
		if errors.Is(err, errEnding) {
			return
		}
		if err != nil {
			s.wrong(err)
			return
		}
		_ = p.cmd.Wait()
		p.mu.Lock()
		killed := p.killed
		p.mu.Unlock()
		s.mu.Lock()
		if !killed {
			s.codes[p.cmd.ProcessState.ExitCode()]++
		}
		s.mu.Unlock()
		close(p.ended)
		_ = clock.Sleep(context.Background(), s.clk, s.TTL/20) // the others' turn
	}
}

// errEnding is the error of start when the run is ending.
var errEnding = errors.New("the run is ending")

// start starts a supervisor.
func (s *supervisors) start(slot int) (*supervisor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, errEnding
	}
	how := "auto"
	switch {
	case s.Bug == bugGroup:
		how = "group"
	case slot%perJob > 0:
		how = "descendants"
	}
	log, err := os.OpenFile(filepath.Join(s.ticks, fmt.Sprintf("log-%d", slot)), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p := &supervisor{ended: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(s.tools, "leasehold"), "run", job(slot), "--store", s.target, "--ttl", s.familyTTL().String(), "--contain", how,
		"--", "sh", "-c", family, filepath.Join(s.tools, "member"), s.familyTTL().String())
	p.cmd.Env = append(os.Environ(), s.mark())
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a supervisor: %w", err)
	}
	s.slots[slot] = p
	return p, nil
}

// mark is what the environment of all that supervisors start has, and nothing else.
func (s *supervisors) mark() string { return "LEASEHOLD_SOAK_TICKS=" + s.ticks }

// strike has a fault strike a supervisor or its guards: the one of the fault's slot, or of the same
// job, that has a family, for which it waits for a TTL at most. Of guards and supervisor one is
// left at least, as docs/command.md wants it. It reports whether there was one.
func (s *supervisors) strike(ctx context.Context, f fault) bool {
	limit := s.clk.Now().Add(s.familyTTL())
	p, guards := s.supervising(f.slot)
	for p == nil {
		if s.clk.Now() >= limit || clock.Sleep(ctx, s.clk, 10*time.Millisecond) != nil {
			return false
		}
		p, guards = s.supervising(f.slot)
	}
	defer p.mu.Unlock() // supervising has locked it
	pid := p.cmd.Process.Pid
	switch f.kind {
	case faultSupervisor:
		p.kill()
	case faultGuard:
		hit(syscall.SIGKILL, guards[0])
		// Else the next fault takes it for one that lives.
		for runs(guards[0]) && clock.Sleep(ctx, s.clk, time.Millisecond) == nil {
		}
	case faultBoth:
		hit(syscall.SIGKILL, guards[1])
		p.kill()
	case faultGuards:
		hit(syscall.SIGKILL, guards...)
		if !s.replaced(ctx, pid, guards) {
			return false
		}
		p.kill()
	case faultStopGuard:
		hit(syscall.SIGSTOP, guards[0])
		_ = clock.Sleep(ctx, s.clk, f.stopped)
		hit(syscall.SIGCONT, guards[0])
	case faultStopSupervisor, faultStopBoth:
		hit(syscall.SIGSTOP, pid)
		if f.kind == faultStopBoth {
			hit(syscall.SIGKILL, guards[0])
		}
		_ = clock.Sleep(ctx, s.clk, f.stopped)
		hit(syscall.SIGCONT, pid)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[f.kind]++
	return true
}

// supervising returns a supervisor of the slot's job that has a family and both guards, and locks
// it.
func (s *supervisors) supervising(slot int) (*supervisor, []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := slot - slot%perJob
	for i := range perJob {
		at := first + (slot+i)%perJob
		// Another fault strikes it.
		if at >= len(s.slots) || s.slots[at] == nil || !s.slots[at].mu.TryLock() {
			continue
		}
		p := s.slots[at]
		if guards := guardsOf(p.cmd.Process.Pid); len(guards) == 2 && !p.killed {
			return p, guards
		}
		p.mu.Unlock()
	}
	return nil, nil
}

// replaced waits until a supervisor has new guards, for a TTL at most.
func (s *supervisors) replaced(ctx context.Context, pid int, old []int) bool {
	ctx, cancel := clock.WithTimeout(ctx, s.clk, s.familyTTL())
	defer cancel()
	for clock.Sleep(ctx, s.clk, time.Millisecond) == nil {
		if guards := guardsOf(pid); len(guards) == 2 && !slices.Contains(old, guards[0]) && !slices.Contains(old, guards[1]) {
			return true
		}
	}
	return false
}

// kill kills the supervisor. Its lock is held.
func (p *supervisor) kill() { p.killed = p.cmd.Process.Signal(syscall.SIGKILL) == nil }

func hit(sig syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
}

// finish has all supervisors end. It returns how many had to be killed because they did not in
// time, and what lives on without one; that is then killed.
func (s *supervisors) finish(within time.Duration) (stuck int, orphans []string) {
	s.mu.Lock()
	s.ending = true
	slots := s.slots
	s.mu.Unlock()
	for _, p := range slots {
		if p != nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // or it has ended
		}
	}
	deadline, cancel := clock.WithTimeout(context.Background(), s.clk, within)
	defer cancel()
	for _, p := range slots {
		if p == nil {
			continue
		}
		select {
		case <-p.ended:
		case <-deadline.Done():
			stuck++
			p.mu.Lock()
			p.kill()
			p.mu.Unlock()
		}
	}
	s.running.Wait()
	if s.Commands == 0 {
		return 0, nil
	}
	// For the guards of those that were killed.
	deadline, cancel = clock.WithTimeout(context.Background(), s.clk, s.familyTTL()+10*time.Second)
	defer cancel()
	left := marked(s.mark())
	for len(left) > 0 && clock.Sleep(deadline, s.clk, 10*time.Millisecond) == nil {
		left = marked(s.mark())
	}
	for pid, what := range left {
		hit(syscall.SIGKILL, pid)
		orphans = append(orphans, fmt.Sprintf("process %d (%s)", pid, what))
	}
	return stuck, orphans
}

// ends returns how often a supervisor ended by itself, with which exit code.
func (s *supervisors) ends() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]int{}
	for code, n := range s.codes {
		all[fmt.Sprint("code ", code)] = n
	}
	return all
}

// struck returns how often faults of each kind have struck.
func (s *supervisors) struck() map[faultOf]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}
