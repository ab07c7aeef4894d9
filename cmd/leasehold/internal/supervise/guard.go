package supervise

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// GuardArg is the only argument of a process that is a guard. This package runs a guard while it is
// initialised, so that no main function sees the argument.
const GuardArg = "__guard"

// GuardName is what a guard is called in lists of processes: what ends supervisors by their name
// doesn't end it, too.
const GuardName = "lease-guard"

// guardDone is the supervisor's last line, when nothing is left to guard.
const guardDone = "done"

// scope is what a guard has to end.
type scope struct {
	group  int    // the process group; 0 for none
	cgroup string // the folder of the control group; "" for none
	mark   string // that is in the environment; "" for none
}

// line tells a guard about all but the group.
func (s scope) line() string { return fmt.Sprintf("scope %q %q\n", s.cgroup, s.mark) }

// guardLine tells the guard which group to kill at t, in place of what it was told before.
func guardLine(group int, t clock.Instant) string { return fmt.Sprintf("%d %d\n", group, int64(t)) }

// slowest is the longest pause between two looks at what can't be killed.
const slowest = time.Second

// watchOver ends what a supervisor has started in the supervisor's stead: at the time that it was
// told last, when the supervisor hangs or is stopped; and at once when the supervisor dies, which
// ends in. end kills what there is of a scope, and reports whether anything may be left: then it is
// called again. watchOver blocks until in has ended and nothing is left. The readings of clk have
// to be those of the supervisor's clock, as they are of [clock.System] on one machine.
func watchOver(in io.Reader, clk clock.Clock, end func(*scope) (left bool)) {
	lines := make(chan string)
	go func() { // ends with in, which is read to its end below
		defer close(lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	var s scope
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
			if timed || s == (scope{}) {
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
func (s *scope) told(line string) (t clock.Instant, timed bool) {
	var group int
	var at int64
	switch {
	case line == guardDone:
		*s = scope{}
	case strings.HasPrefix(line, "scope "):
		var next scope
		if _, err := fmt.Sscanf(line, "scope %q %q", &next.cgroup, &next.mark); err == nil {
			next.group = s.group
			*s = next
		}
	default:
		if _, err := fmt.Sscan(line, &group, &at); err == nil {
			s.group = 0
			if group > 1 { // to kill(2), 0 and 1 are one's own group, and everybody
				s.group = group
			}
			return clock.Instant(at), true
		}
	}
	return 0, false
}
