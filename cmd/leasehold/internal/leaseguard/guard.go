// Package leaseguard is the process that ends a command of `leasehold run` in its supervisor's
// stead. It imports little: a guard starts as soon as what this package imports is initialised.
package leaseguard

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// Arg is the only argument of a process that is a guard. This package runs a guard while it is
// initialised, so that no main function sees the argument.
const Arg = "__guard"

// Name is what a guard is called in lists of processes: what ends supervisors by their name
// doesn't end it, too.
const Name = "lease-guard"

// Done is the supervisor's last line, when nothing is left to guard.
const Done = "done"

// Scope is what a guard has to end.
type Scope struct {
	Group  int    // the process group; 0 for none
	Cgroup string // the folder of the control group; "" for none
	Mark   string // that is in the environment; "" for none
}

// Line tells a guard about all but the group.
func (s Scope) Line() string { return fmt.Sprintf("scope %q %q\n", s.Cgroup, s.Mark) }

// KillLine tells the guard which group to kill at t, in place of what it was told before.
func KillLine(group int, t clock.Instant) string { return fmt.Sprintf("%d %d\n", group, int64(t)) }

// killAgain is the shortest of these pauses.
const killAgain = 20 * time.Millisecond

// slowest is the longest pause between two looks at what can't be killed.
const slowest = time.Second

// watchOver ends what a supervisor has started in the supervisor's stead: at the time that it was
// told last, when the supervisor hangs or is stopped; and at once when the supervisor dies, which
// ends in. end kills what there is of a scope, and reports whether anything may be left: then it is
// called again. watchOver blocks until in has ended and nothing is left. The readings of clk have
// to be those of the supervisor's clock, as they are of [clock.System] on one machine.
func watchOver(in io.Reader, clk clock.Clock, end func(*Scope) (left bool)) {
	lines := make(chan string)
	go func() { // ends with in, which is read to its end below
		defer close(lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	var s Scope
	var timer *clock.Timer
	var due <-chan struct{}
	pause := killAgain
	defer func() { timer.Stop() }()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				for pause := killAgain; end(&s); pause = min(2*pause, slowest) {
					_ = clock.Sleep(context.Background(), clk, pause)
				}
				return
			}
			t, timed := s.told(line)
			if timed || s == (Scope{}) {
				timer.Stop()
				due, pause = nil, killAgain
			}
			if timed {
				timer = clock.NewTimer(clk, t.Sub(clk.Now()))
				due = timer.C
			}
		case <-due:
			due = nil
			if end(&s) {
				timer = clock.NewTimer(clk, pause)
				due, pause = timer.C, min(2*pause, slowest)
			}
		}
	}
}

// told takes a line of the supervisor's. timed is whether it says when to end the scope.
func (s *Scope) told(line string) (t clock.Instant, timed bool) {
	var group int
	var at int64
	switch {
	case line == Done:
		*s = Scope{}
	case strings.HasPrefix(line, "scope "):
		var next Scope
		if _, err := fmt.Sscanf(line, "scope %q %q", &next.Cgroup, &next.Mark); err == nil {
			next.Group = s.Group
			*s = next
		}
	default:
		if _, err := fmt.Sscan(line, &group, &at); err == nil {
			s.Group = 0
			if group > 1 { // to kill(2), 0 and 1 are one's own group, and everybody
				s.Group = group
			}
			return clock.Instant(at), true
		}
	}
	return 0, false
}
