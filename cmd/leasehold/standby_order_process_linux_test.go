package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// notified starts a pod in notify mode, which is told by all means, and returns the process id of its CMD.
func (p *pods) notified(pod, other string) int {
	p.t.Helper()
	script := fmt.Sprintf("trap 'echo $(head -1 role-%[1]s) >>told-%[1]s' USR1; trap 'exit 0' TERM; echo $$ >pid-%[1]s; while :; do sleep 0.02; done", pod)
	// When it is called, the hook notes the time, and how the other instance is seen.
	hook := fmt.Sprintf("#!/bin/sh\necho $(date +%%s%%N) $1 $(head -1 role-%[2]s 2>/dev/null || echo none) $( (tail -1 hooks-%[2]s 2>/dev/null || echo 0 none) | cut -d' ' -f2) >>hooks-%[1]s\n", pod, other)
	if err := os.WriteFile(p.path("hook-"+pod), []byte(hook), 0o700); err != nil { //nolint:gosec // it is to be executed
		p.t.Fatal(err)
	}
	p.run(pod, "--mode", "notify", "--notify-file", "role-"+pod, "--notify-signal", "USR1", "--notify-command", p.path("hook-"+pod), "--", "sh", "-c", script)
	pid, err := strconv.Atoi(strings.TrimSpace(p.content("pid-" + pod)))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// hooked is the last call of a pod's hook with that role: its time, and what it saw of the other one: the file, and its hook's last role.
func (p *pods) hooked(pod, role string) (at time.Time, file, hook string) {
	b, err := os.ReadFile(p.path("hooks-" + pod))
	if err != nil {
		return at, "", ""
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		const whole = 4
		if len(f) < whole || f[1] != role {
			continue
		}
		if n, err := strconv.ParseInt(f[0], 10, 64); err == nil {
			at, file, hook = time.Unix(0, n), f[2], f[3]
		}
	}
	return at, file, hook
}

// asked notes when the last request was sent that a pod answered as the active one.
func (p *pods) asked(pod string) (last func() time.Time, stop func()) {
	p.get(pod, "/active")
	url := serving.FindStringSubmatch(p.progs[pod].stderr.String())[1] + "/active"
	client := http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	var mu sync.Mutex
	var at time.Time
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			sent := time.Now()
			if resp, err := client.Get(url); err == nil { //nolint:noctx // it has a timeout
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					mu.Lock()
					at = sent
					mu.Unlock()
				}
			}
		}
	}()
	last = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}
	return last, sync.OnceFunc(func() { close(end); <-ended })
}

// TestStandbyOrderOfRoles: at a switchover, the passive one's role is told by file, hook and HTTP before the other one is active, though its
// CMD is stopped and hears no signal. An instance that was itself stopped for longer than its lease says by its first answer that it is
// passive, and its CMD reads so in the file.
func TestStandbyOrderOfRoles(t *testing.T) { stalltest.Run(t, standbyOrderOfRoles) }

func standbyOrderOfRoles(t testing.TB) {
	p := newPods(t)
	pidA := p.notified("a", "b")
	p.notifiedIsActive("a")
	p.notified("b", "a")
	last, stop := p.asked("a")
	defer stop()

	if err := syscall.Kill(pidA, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.must("standby", "switchover", "--to", "b", "--config", "b.yaml")
	p.notifiedIsActive("b")
	stop()
	at, file, hook := p.hooked("b", "active")
	if file != "passive" || hook != "passive" {
		t.Errorf("when b became active, a's file said %q and a's hook had been told %q", file, hook)
	}
	if !last().Before(at) {
		t.Errorf("a was asked at %v, and said that it is active; b was at %v", last(), at)
	}
	if err := syscall.Kill(pidA, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a's CMD reads passive", func() bool {
		b, _ := os.ReadFile(p.path("told-a"))
		return strings.HasSuffix(string(b), "passive\n")
	})

	p.progs["b"].signal(syscall.SIGSTOP)
	eventually(t, "a is active again", func() bool {
		again, _, _ := p.hooked("a", "active")
		return again.After(at)
	})
	p.progs["b"].signal(syscall.SIGCONT)
	if code, st := p.get("b", "/active"); code == http.StatusOK {
		t.Errorf("b woke up, and says that it is active: %+v", st)
	}
	eventually(t, "b's CMD reads passive", func() bool {
		b, _ := os.ReadFile(p.path("told-b"))
		return strings.HasSuffix(string(b), "passive\n")
	})
	if role := p.read("role-b"); role != "passive\n" {
		t.Errorf("the file of b: %q", role)
	}
}

// notifiedIsActive waits until a pod's hook was told so, which is last.
func (p *pods) notifiedIsActive(pod string) {
	p.t.Helper()
	eventually(p.t, pod+" is active", func() bool {
		at, _, _ := p.hooked(pod, "active")
		return !at.IsZero() && strings.HasPrefix(p.read("role-"+pod), "active")
	})
}

// TestFinding_D9_ConfigMapSwap: a ConfigMap that is mounted changes by a swap of the link ..data. pollSeconds takes effect; what would make
// two leases of one does not, and is told with the restart that it needs.
func TestFinding_D9_ConfigMapSwap(t *testing.T) { stalltest.Run(t, configMapSwap) }

func configMapSwap(t testing.TB) {
	srv := servers.DynamoDB(t)
	p := newPods(t)
	command := func(args ...string) *exec.Cmd {
		cmd := p.command(args...)
		for k, v := range srv.Env {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
		return cmd
	}
	table := command("init", "dynamodb", "--store", "dynamodb://admiral-lease?schema=admiral&wait=1s&threshold=3&region=us-east-2&endpoint="+srv.URL)
	if out, err := table.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const text = "dynamoDB:\n  leaseName: prod\n  podIdentifier: a\n  waitTimeInSeconds: 1\n  failureThreshold: 3\n  region: us-east-2\n  endpoint: "
	mounted := p.path("mounted")
	swap := func(version, text string) {
		t.Helper()
		dir := filepath.Join(mounted, version)
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "dr.yaml"), []byte(text), 0o600)
		}
		if err == nil {
			err = os.Symlink(version, filepath.Join(mounted, "..tmp"))
		}
		if err == nil {
			err = os.Rename(filepath.Join(mounted, "..tmp"), filepath.Join(mounted, "..data"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	swap("..v1", text+srv.URL+"\n")
	if err := os.Symlink("..data/dr.yaml", filepath.Join(mounted, "dr.yaml")); err != nil {
		t.Fatal(err)
	}
	prog := p.launch(command("standby", "--config", filepath.Join(mounted, "dr.yaml"), "--listen", "127.0.0.1:0"))
	p.progs["a"] = prog
	p.active()
	swap("..v2", strings.Replace(text, "Threshold: 3", "Threshold: 4", 1)+srv.URL+"\n  pollSeconds: 5\n")
	for _, want := range []string{"pollSeconds 0 → 5 from now on", "until this instance is restarted: failureThreshold 3 → 4"} {
		eventually(t, want, func() bool { return strings.Contains(prog.stderr.String(), want) })
	}
	if code, _ := p.get("a", "/active"); code != http.StatusOK {
		t.Errorf("after that: %d\n%s", code, prog.stderr)
	}
	prog.signal(syscall.SIGHUP)
	eventually(t, "it is told again", func() bool { return strings.Count(prog.stderr.String(), "failureThreshold 3 → 4") > 1 })
}

// TestStandbyWatch: a line for each change where no terminal is, in text and in JSON, until it is interrupted.
func TestStandbyWatch(t *testing.T) { stalltest.Run(t, standbyWatch) }

func standbyWatch(t testing.TB) {
	p := newPods(t)
	p.run("a", "--", "sleep", "1000")
	p.active()
	p.run("b", "--", "sleep", "1000")
	eventually(t, "b stands by", func() bool { _, st := p.get("b", "/state"); return st.Initialized })
	var text, lines lockedBuffer
	watch := func(out *lockedBuffer, args ...string) *program {
		cmd := p.command(append([]string{"standby", "status", "--watch", "--config", p.conf("a")}, args...)...)
		cmd.Stdout = out
		return p.launch(cmd)
	}
	watches := []*program{watch(&text), watch(&lines, "-o", "jsonl")}
	for _, out := range []*lockedBuffer{&text, &lines} {
		eventually(t, "both are seen", func() bool {
			return strings.Contains(out.String(), "region-of-a") && strings.Contains(out.String(), "another instance holds the lease")
		})
	}
	p.must("standby", "switchover", "--to", "b", "--config", p.conf("a"))
	eventually(t, "the switchover is seen", func() bool { return strings.Contains(text.String(), "prod active b region-of-b") })
	eventually(t, "its gap is told", func() bool {
		return strings.Contains(lines.String(), `"from":"a","to":"b"`) && strings.Contains(lines.String(), `"gap_seconds":`)
	})
	for _, prog := range watches {
		prog.signal(syscall.SIGINT)
		prog.code()
	}
}
