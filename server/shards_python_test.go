package server_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/server"
)

// pythonWorkers are processes of examples/shard-python, which share a log.
type pythonWorkers struct {
	t   *testing.T
	s   *site
	log string
}

func (p pythonWorkers) start(name, shards string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command("python3", "../examples/shard-python/worker.py", "jobs", shards)
	cmd.Env = append(os.Environ(), "LEASEHOLD_SERVER="+p.s.URL, "WORKER="+name, "TTL=10s", "SHARD_LOG="+p.log, "PYTHONDONTWRITEBYTECODE=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if p.t.Failed() {
			p.t.Logf("%s: %s", name, said.String())
		}
	})
	return cmd
}

// has blocks until the worker runs so many slices, by the log, and checks all of the log. Slices of the dead count as ended.
func (p pythonWorkers) has(name string, n int, dead ...string) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(p.log)
		if err != nil && !os.IsNotExist(err) {
			p.t.Fatal(err)
		}
		runs, last := map[string]string{}, map[string]uint64{}
		for line := range strings.Lines(string(text)) {
			var what, slice, who string
			var token uint64
			if _, err := fmt.Sscanf(line, "%s %s %d %s", &what, &slice, &token, &who); err != nil {
				p.t.Fatalf("%q: %v", line, err)
			}
			if what == "end" {
				delete(runs, slice)
				continue
			}
			if other := runs[slice]; other != "" && (len(dead) == 0 || other != dead[0]) {
				p.t.Fatalf("%s runs slice %s beside %s:\n%s", who, slice, other, text)
			}
			if token <= last[slice] {
				p.t.Fatalf("slice %s: token %d after %d:\n%s", slice, token, last[slice], text)
			}
			runs[slice], last[slice] = who, token
		}
		has := 0
		for _, who := range runs {
			if who == name {
				has++
			}
		}
		if has == n {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s runs %d slices, want %d:\n%s", name, has, n, text)
		}
	}
}

// The example in Python: workers come, leave and are killed. No slice has two at a time, and tokens rise.
func TestPythonShardWorker(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip("there is no python3")
	}
	p := pythonWorkers{t, newSite(t, server.Options{}), filepath.Join(t.TempDir(), "log")}
	a := p.start("a", "0,1,2,3,4,5")
	p.has("a", 6)
	b := p.start("b", "")
	p.has("b", 3)
	p.has("a", 3)
	if err := a.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := a.Wait(); err != nil {
		t.Errorf("a has left with %v", err)
	}
	p.has("b", 6)
	p.start("c", "")
	p.has("c", 3)
	if err := b.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	p.has("c", 6, "b")
	if took := time.Since(killed); took < 3*time.Second {
		t.Errorf("the slices of a worker that was killed were another's after %v, within its TTL of 10 s", took)
	}
}
