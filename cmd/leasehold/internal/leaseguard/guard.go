// Package leaseguard is the process that ends a command of `leasehold run` in its supervisor's
// stead.
//
// A guard starts as soon as what this package imports is initialised, so on Linux it imports a few
// small packages of the standard library: with fmt, strings or package clock a guard would take a
// third more time and memory. A test bounds that. It also waits without a second goroutine, which
// would be a second thread.
package leaseguard

import (
	"strconv"
	"time"
)

// Arg is the first argument of a process that is a guard. This package runs a guard while it is
// initialised, so that no main function sees the argument.
const Arg = "__guard"

// Argv returns what a guard is started with. In a program that is linked to start at
// _leasehold_entry, as released ones are, it waits for a moment before the runtime of Go starts,
// which costs ten times as much: so the guards of a command that ends soon cost little.
func Argv() []string { return []string{Name, Arg} }

// ArgvAtOnce is Argv for a guard that doesn't wait.
func ArgvAtOnce() []string { return append(Argv(), "at-once") }

// Name is what a guard is called in lists of processes: what ends supervisors by their name
// doesn't end it, too.
const Name = "lease-guard"

// Environ is the environment of a guard. It has nothing to do on a second processor.
func Environ() []string { return []string{"GOMAXPROCS=1"} }

// Done is the supervisor's last line, when nothing is left to guard.
const Done = "done"

// Scope is what a guard has to end.
type Scope struct {
	Group  int    // the process group; 0 for none
	Cgroup string // the folder of the control group; "" for none
	Mark   string // that is in the environment; "" for none
}

const scopeWord = "scope "

// Line tells a guard about all but the group.
func (s Scope) Line() string {
	return scopeWord + strconv.Quote(s.Cgroup) + " " + strconv.Quote(s.Mark) + "\n"
}

// KillLine tells the guard which group to kill at t, in place of what it was told before. t is a
// reading of the system's clock: see package clock.
func KillLine(group int, t int64) string {
	return strconv.Itoa(group) + " " + strconv.FormatInt(t, 10) + "\n"
}

// killAgain is the shortest of these pauses.
const killAgain = 20 * time.Millisecond

// slowest is the longest pause between two looks at what can't be killed.
const slowest = time.Second

// never is after every other reading of the clock.
const never = 1<<63 - 1

// event is what a guard waits for.
type event uint8

const (
	told  event = iota // there is a line
	late               // the time has come
	ended              // there will be no more lines
)

// watchOver ends what a supervisor has started in the supervisor's stead: at the time that it was
// told last, when the supervisor hangs or is stopped; and at once when the supervisor dies, which
// ends the lines. end kills what there is of a scope, and reports whether anything may be left:
// then it is called again. next blocks until something happens; a line comes before the time. now
// reads the clock of the supervisor. watchOver blocks until the lines have ended and nothing is
// left.
func watchOver(next func(until int64) (event, string), now func() int64, end func(*Scope) (left bool)) {
	var s Scope
	var due int64 = never
	pause := killAgain
	for {
		switch what, line := next(due); what {
		case ended:
			for pause := killAgain; end(&s); pause = min(2*pause, slowest) {
				time.Sleep(pause) //nolint:forbidigo // package clock is too large for a guard; nothing hangs on this pause
			}
			return
		case told:
			t, timed := s.told(line)
			if timed || s == (Scope{}) {
				due, pause = never, killAgain
			}
			if timed {
				due = t
			}
		case late:
			due = never
			if end(&s) {
				due, pause = now()+int64(pause), min(2*pause, slowest)
			}
		}
	}
}

// told takes a line of the supervisor's. timed is whether it says when to end the scope.
func (s *Scope) told(line string) (t int64, timed bool) {
	if line == Done {
		*s = Scope{}
		return 0, false
	}
	if len(line) > len(scopeWord) && line[:len(scopeWord)] == scopeWord {
		rest := line[len(scopeWord):]
		next := Scope{Group: s.Group}
		if unquote(&rest, &next.Cgroup) && len(rest) > 0 && rest[0] == ' ' {
			if rest = rest[1:]; unquote(&rest, &next.Mark) && rest == "" {
				*s = next
			}
		}
		return 0, false
	}
	for i := range len(line) {
		if line[i] != ' ' {
			continue
		}
		group, err := strconv.Atoi(line[:i])
		t, bad := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil || bad != nil {
			break
		}
		s.Group = 0
		if group > 1 { // to kill(2), 0 and 1 are one's own group, and everybody
			s.Group = group
		}
		return t, true
	}
	return 0, false
}

// unquote takes a quoted text from the front of a line.
func unquote(line, text *string) bool {
	quoted, err := strconv.QuotedPrefix(*line)
	if err != nil {
		return false
	}
	*line = (*line)[len(quoted):]
	*text, err = strconv.Unquote(quoted)
	return err == nil
}

// lines are those of a supervisor.
type lines struct {
	read  func([]byte) (int, error) // blocks; 0 or an error at the end
	await func(until int64) bool    // blocks until there is something to read; false when it's late
	rest  []byte                    // has come, and wasn't returned
	over  bool
}

// next implements what [watchOver] waits by.
func (l *lines) next(until int64) (event, string) {
	for {
		for i, c := range l.rest {
			if c == '\n' {
				line := string(l.rest[:i])
				l.rest = append(l.rest[:0], l.rest[i+1:]...)
				return told, line
			}
		}
		if l.over {
			return ended, ""
		}
		if !l.await(until) {
			return late, ""
		}
		var buf [512]byte
		n, err := l.read(buf[:])
		l.over = n <= 0 || err != nil
		l.rest = append(l.rest, buf[:max(n, 0)]...)
	}
}
