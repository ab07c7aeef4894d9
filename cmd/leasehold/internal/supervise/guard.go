package supervise

import (
	"bufio"
	"fmt"
	"io"

	"github.com/leasehold/leasehold/clock"
)

// GuardArg is the only argument of a process that is a guard; see [Guard].
const GuardArg = "__leasehold-guard"

// guardDone is the supervisor's last line, when nothing is left to guard.
const guardDone = "done"

// guardLine tells the guard which group to kill at t, in place of what it was told before.
func guardLine(group int, t clock.Instant) string { return fmt.Sprintf("%d %d\n", group, int64(t)) }

// Guard kills a process group in the supervisor's stead: at the time that it was told last, when the supervisor hangs or is
// stopped; and at once when the supervisor dies, which ends in. It blocks until in ends. The readings of clk have to be those
// of the supervisor's clock, as they are of [clock.System] on one machine.
func Guard(in io.Reader, clk clock.Clock, kill func(group int)) {
	lines := make(chan string)
	go func() { // ends with in, which is read to its end below
		defer close(lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	var group int
	var timer *clock.Timer
	var due <-chan struct{}
	defer func() { timer.Stop() }()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				killGroup(group, kill)
				return
			}
			var t int64
			if line == guardDone {
				group = 0
			} else if _, err := fmt.Sscan(line, &group, &t); err != nil {
				continue // not a line of the supervisor's
			}
			timer.Stop()
			timer = clock.NewTimer(clk, clock.Instant(t).Sub(clk.Now()))
			due = timer.C
		case <-due:
			due = nil
			killGroup(group, kill)
		}
	}
}

// killGroup never passes on 0 or 1: to kill(2) those are one's own group, and everybody.
func killGroup(group int, kill func(int)) {
	if group > 1 {
		kill(group)
	}
}
