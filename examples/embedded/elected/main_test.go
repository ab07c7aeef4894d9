package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Two copies of the program: the second one leads when the first one is killed, under a higher
// token, and ends in order at SIGTERM.
func TestTheSecondTakesOver(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "elected")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := func() (*exec.Cmd, *bufio.Reader) {
		cmd := exec.CommandContext(t.Context(), program, filepath.Join(dir, "leader.db"))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewReader(out)
	}
	// works reads on until a copy works, and returns its token.
	works := func(out *bufio.Reader) (token uint64) {
		for {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := fmt.Sscanf(line, "working under token %d", &token); n == 1 {
				return token
			}
		}
	}
	first, out := start()
	before := works(out)
	second, out2 := start()
	if line, err := out2.ReadString('\n'); err != nil || !strings.HasSuffix(line, " leads\n") {
		t.Errorf("the second copy says %q, %v", line, err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	if after := works(out2); after <= before {
		t.Errorf("token %d after %d", after, before)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out2); err != nil {
		t.Error(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("told to end, it ends with %v", err)
	}
}

// The page for users of Go shows this program's run as it is.
func TestThePageShowsIt(t *testing.T) {
	page, err := os.ReadFile("../../../docs/election.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "## Stand for election")
	_, after, _ = strings.Cut(after, "```go\n")
	quoted, _, ended := strings.Cut(after, "```")
	if !ended || !strings.Contains(string(program), quoted) {
		t.Errorf("not in the program as it stands there:\n%s", quoted)
	}
}
