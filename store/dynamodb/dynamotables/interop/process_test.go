package interop

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// answerWithin is how long a neighbour may take to answer.
const answerWithin = 3 * time.Minute

// process is a neighbour that runs. It does what it is told, one line at a time.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	reader sync.WaitGroup
	dead   bool
}

// run starts a neighbour. It is killed at the end of the test.
func run(t testing.TB, p *program, args ...string) *process {
	t.Helper()
	command := p.ready(t)
	cmd := exec.Command(command[0], append(command[1:], args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &process{t: t, cmd: cmd, in: in, lines: make(chan string, 1)}
	n.reader.Go(func() {
		defer close(n.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			n.lines <- scanner.Text()
		}
	})
	t.Cleanup(func() {
		n.kill()
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("%s said: %s", p.name, stderr.String())
		}
	})
	if got := n.answer("start"); got != "ready" {
		t.Fatalf("%s began with %q", p.name, got)
	}
	return n
}

// tell has the neighbour do something and returns what it says.
func (n *process) tell(line string) string {
	n.t.Helper()
	if _, err := io.WriteString(n.in, line+"\n"); err != nil {
		n.t.Fatalf("%s: %v", line, err)
	}
	return n.answer(line)
}

func (n *process) answer(what string) string {
	n.t.Helper()
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case line, ok := <-n.lines:
		if ok {
			return line
		}
		n.t.Fatalf("%s: the neighbour ended", what)
	case <-timer.C:
		n.t.Fatalf("%s: no answer within %v", what, answerWithin)
	}
	return ""
}

// want has the neighbour do something that has that answer.
func (n *process) want(line, answer string) {
	n.t.Helper()
	if got := n.tell(line); got != answer {
		n.t.Fatalf("%s: the neighbour says %q, want %q", line, got, answer)
	}
}

// kill is a crash.
func (n *process) kill() {
	if n.dead {
		return
	}
	n.dead = true
	n.cmd.Process.Kill() //nolint:errcheck // it has ended then
	for range n.lines {  // so that the reader ends
	}
	n.reader.Wait()
	n.cmd.Wait() //nolint:errcheck // killed
}

// signal stops the neighbour, or has it go on.
func (n *process) signal(sig syscall.Signal) {
	n.t.Helper()
	if err := n.cmd.Process.Signal(sig); err != nil {
		n.t.Fatal(err)
	}
}
