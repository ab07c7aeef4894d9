package file

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Other processes of a test are the test binary itself, with the name of a helper and its arguments in the environment. A
// helper reports on standard output, in lines, and is told things on standard input.
const (
	helperEnv = "LEASEHOLD_TEST_HELPER"
	argsEnv   = "LEASEHOLD_TEST_ARGS"
)

var helpers = map[string]func() error{
	"hammer": hammerHelper,
	"renew":  renewHelper,
	"count":  countHelper,
	"echo":   echoHelper,
}

// helperArgs are the arguments of every helper.
type helperArgs struct {
	Path string
	Key  string
	N    int
	Bare bool // without the safety net of those who wait
}

func args() (a helperArgs) {
	if err := json.Unmarshal([]byte(os.Getenv(argsEnv)), &a); err != nil {
		panic(err) // the test that started this process is wrong
	}
	return a
}

// process is a helper that was started.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err strings.Builder
}

// start starts a helper. It is killed at the end of the test, if it is still there. before is put in front of its command.
func start(t testing.TB, name string, a helperArgs, before ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := append(before, exe)
	p := &process{cmd: exec.Command(line[0], line[1:]...)}
	packed, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Env = append(os.Environ(), helperEnv+"="+name, argsEnv+"="+string(packed))
	p.cmd.Stderr = &p.err
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// line reads one line that the helper wrote.
func (p *process) line(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("helper: %v: %s%s", err, line, p.err.String())
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *process) tell(t testing.TB, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		t.Fatal(err)
	}
}

// stop ends the helper by closing its input, and waits for it.
func (p *process) stop(t testing.TB) {
	t.Helper()
	_ = p.in.Close()
	rest, _ := io.ReadAll(p.out)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("helper: %v: %s%s", err, rest, p.err.String())
	}
}

// told is the helper's side of tell: it delivers one line, and false at the end of input.
func told() func() (string, bool) {
	in := bufio.NewScanner(os.Stdin)
	return func() (string, bool) {
		ok := in.Scan()
		return in.Text(), ok
	}
}

// untilTold returns a context that ends with the helper's input.
func untilTold() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}
