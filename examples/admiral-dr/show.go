package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
)

const leaseName = "prod"

func now() clock.Instant { return clock.System().Now() }

// show plays the scenes, and prints what happens to whom.
type show struct {
	backend *backend
	dir     string
	exe     string
	began   clock.Instant
	out     io.Writer

	mu                sync.Mutex
	procs             map[string]*process
	mark              fence.Mark    // of what both instances write to
	latest            clock.Instant // when the first write of the latest term was allowed
	accepted, refused int
	// Of the refused: those that were allowed after latest, so that both instances were active.
	both int
}

// process is one instance.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	state string
}

// scenes of the play. Each gets the name of the active instance and of the other one.
func (s *show) scenes() []struct {
	name string
	do   func(ctx context.Context, op admiral.Operator, active, other string) error
} {
	return []struct {
		name string
		do   func(ctx context.Context, op admiral.Operator, active, other string) error
	}{
		{"crash: the active instance is killed", s.crash},
		{"switchover: the lease is handed over", s.switchover},
		{"outage: the store stops answering", s.outage},
		{"SKIP-LEASE-POD: an operator holds everyone passive", s.hold},
	}
}

func (s *show) play(ctx context.Context) error {
	s.print("", "two instances start")
	for _, pod := range []string{"east", "west"} {
		if err := s.start(pod); err != nil {
			return err
		}
	}
	st, err := s.backend.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	cfg := admiral.Config{LeaseName: leaseName, WaitTime: time.Second, FailureThreshold: 3}
	op := admiral.Operator{Store: st, Config: cfg, By: "the example"}
	for _, scene := range s.scenes() {
		active, err := s.active(ctx)
		if err != nil {
			return err
		}
		if err := s.pause(ctx, 2*time.Second); err != nil { // so that it can be seen to last
			return err
		}
		other := map[string]string{"east": "west", "west": "east"}[active]
		s.print("", scene.name)
		if err := scene.do(ctx, op, active, other); err != nil {
			return err
		}
	}
	if _, err := s.active(ctx); err != nil {
		return err
	}
	s.print("", "the end: both are told to stop")
	s.end()
	fmt.Fprintf(s.out, "\n%d writes were accepted in the order of their terms, %d were refused for an old token.\n", s.accepted, s.refused)
	return nil
}

func (s *show) crash(ctx context.Context, _ admiral.Operator, active, other string) error {
	p := s.procs[active]
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.ended
	s.said(active, line{State: "killed"})
	if err := s.until(ctx, other, "active"); err != nil {
		return err
	}
	return s.start(active)
}

func (s *show) switchover(ctx context.Context, op admiral.Operator, _, other string) error {
	did, err := op.Switchover(ctx, other, 10*time.Second)
	if err != nil {
		return err
	}
	s.print("", fmt.Sprintf("it took %v, from the request to the successor's own write", did.Took.Round(time.Millisecond)))
	return s.until(ctx, other, "active")
}

func (s *show) outage(ctx context.Context, _ admiral.Operator, active, _ string) error {
	if s.backend.cut == nil {
		s.print("", "left out: the server is not this program's to stop")
		return nil
	}
	restore, err := s.backend.cut()
	if err != nil {
		return err
	}
	defer restore()
	if err := s.until(ctx, active, "passive"); err != nil {
		return err
	}
	if err := s.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	s.print("", "the store answers again")
	return nil
}

func (s *show) hold(ctx context.Context, op admiral.Operator, _, _ string) error {
	held, err := op.Hold(ctx, "the database is being moved")
	if err != nil {
		return err
	}
	if err := op.Settle(ctx, held); err != nil {
		return err
	}
	s.print("", "nobody is active, for certain; it stays so for as long as it takes")
	if err := s.pause(ctx, 2*time.Second); err != nil {
		return err
	}
	s.print("", "resume")
	_, _, err = op.Resume(ctx)
	return err
}

func (s *show) pause(ctx context.Context, d time.Duration) error {
	return clock.Sleep(ctx, clock.System(), d)
}

// start starts an instance with a configuration file of its own.
func (s *show) start(pod string) error {
	path := filepath.Join(s.dir, pod+".yaml")
	text := fmt.Sprintf("dynamoDB:\n  leaseName: %s\n  podIdentifier: %s\n  waitTimeInSeconds: 1\n  failureThreshold: 3\n  region: %s\n%s",
		leaseName, pod, region, s.backend.config)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(s.exe, "-instance", path) //nolint:noctx // ended by end
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	s.mu.Lock()
	if s.procs == nil {
		s.procs = map[string]*process{}
	}
	s.procs[pod] = p
	s.mu.Unlock()
	go func() {
		defer close(p.ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			var l line
			if json.Unmarshal(scan.Bytes(), &l) == nil {
				s.said(pod, l)
			}
		}
		_ = cmd.Wait()
	}()
	return nil
}

// said takes a line of an instance: a write is judged by its token, a change of state is printed.
func (s *show) said(pod string, l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Write {
		mark, err := s.mark.Admit(leaseName, l.Holder, l.Token)
		if err != nil {
			s.refused++ // it has come late, as any message may, unless it was sent late
			if l.Asked > s.latest {
				s.both++
			}
			return
		}
		if mark != s.mark {
			s.latest = l.Allowed
		}
		s.mark = mark
		s.accepted++
		return
	}
	s.procs[pod].state = l.State
	text := l.State
	switch {
	case l.State == "active":
		text = fmt.Sprintf("ACTIVE (term %d)", l.Token)
	case l.Reason != "":
		text += ": " + l.Reason
	}
	s.write(pod, text)
}

// print writes a line of the timeline.
func (s *show) print(pod, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(pod, text)
}

func (s *show) write(pod, text string) {
	const longest = 100
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	at := now().Sub(s.began).Seconds()
	if pod == "" {
		fmt.Fprintf(s.out, "%6.2f s  — %s\n", at, text)
		return
	}
	fmt.Fprintf(s.out, "%6.2f s      %-5s %s\n", at, pod, text)
}

// until waits until an instance says that it is in that state.
func (s *show) until(ctx context.Context, pod, state string) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), 30*time.Second)
	defer cancel()
	for {
		s.mu.Lock()
		is := s.procs[pod].state
		s.mu.Unlock()
		if is == state {
			return nil
		}
		if err := s.pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%s is %s and not %s: %w", pod, is, state, err)
		}
	}
}

// active waits until one of the instances is active, and returns its name. While both of them are
// by what they said last, one has not yet said that it no longer is: which, can't be told.
func (s *show) active(ctx context.Context) (string, error) {
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), 30*time.Second)
	defer cancel()
	for {
		if said := s.saidActive(); len(said) == 1 {
			return said[0], nil
		}
		if err := s.pause(ctx, 10*time.Millisecond); err != nil {
			return "", fmt.Errorf("%d instances are active by what they said last, where it must be 1: %w", len(s.saidActive()), err)
		}
	}
}

// saidActive returns the names of the instances that are active by what they said last.
func (s *show) saidActive() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for pod, p := range s.procs {
		if p.state == "active" {
			out = append(out, pod)
		}
	}
	return out
}

// end stops every instance and waits for it.
func (s *show) end() {
	s.mu.Lock()
	procs := s.procs
	s.mu.Unlock()
	for _, p := range procs {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range procs {
		timer := clock.NewTimer(clock.System(), 10*time.Second)
		select {
		case <-p.ended:
		case <-timer.C:
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
		timer.Stop()
	}
}
