package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// span is a command to supervise: to the file that its argument names, and its token, it writes the reading of the clock when
// it began, and every millisecond the present one after that.
func span() {
	f, err := os.Create(os.Args[1] + "." + os.Getenv(hold.EnvToken))
	if err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%020d", clock.System().Now()), 0)
	}
	for err == nil {
		_, err = f.WriteAt(fmt.Appendf(nil, "%020d", clock.System().Now()), 20)
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// pods are instances of one deployment, and the folder they share.
type pods struct {
	place
	progs map[string]*program
}

// standbyTTL is waitTimeInSeconds × failureThreshold of the pods.
const (
	standbyWait = time.Second
	standbyTTL  = 3 * time.Second
)

func newPods(t testing.TB) *pods { return &pods{newPlace(t), map[string]*program{}} }

// conf writes the configuration file of a pod.
func (p *pods) conf(pod string) string {
	p.t.Helper()
	text := fmt.Sprintf("dynamoDB:\n  leaseName: prod\n  podIdentifier: %s\n  waitTimeInSeconds: 1\n  failureThreshold: 3\n  region: region-of-%[1]s\n  store: file:%s\n",
		pod, p.path("leases.db"))
	return p.put(pod+".yaml", text)
}

// put writes a file, and returns its name.
func (p *pods) put(name, text string) string {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return name
}

// run starts a pod. args are flags and CMD.
func (p *pods) run(pod string, args ...string) *program {
	p.t.Helper()
	all := append([]string{"standby", "--config", p.conf(pod), "--listen", "127.0.0.1:0"}, args...)
	p.progs[pod] = p.start(all...)
	return p.progs[pod]
}

var serving = regexp.MustCompile(`serving the state of prod on (http://\S+)`)

// get asks a pod over HTTP.
func (p *pods) get(pod, path string) (int, admiral.Report) {
	p.t.Helper()
	prog := p.progs[pod]
	eventually(p.t, pod+" serves its state", func() bool { return serving.MatchString(prog.stderr.String()) })
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, serving.FindStringSubmatch(prog.stderr.String())[1]+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	client := http.Client{Timeout: patienceOfTests, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, admiral.Report{} // it has been killed
	}
	defer func() { _ = resp.Body.Close() }()
	var r admiral.Report
	if path == "/state" {
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
			p.t.Fatal(err)
		}
	}
	return resp.StatusCode, r
}

// active waits until one of the pods is active, and returns its name.
func (p *pods) active() (pod string) {
	p.t.Helper()
	eventually(p.t, "a pod is active", func() bool {
		for name := range p.progs {
			if code, _ := p.get(name, "/active"); code == http.StatusOK {
				pod = name
			}
		}
		return pod != ""
	})
	return pod
}

// spans returns the times at which CMD ran, by token.
func (p *pods) spans(name string) map[fence.Token][2]clock.Instant {
	p.t.Helper()
	files, err := filepath.Glob(p.path(name + ".*"))
	if err != nil {
		p.t.Fatal(err)
	}
	all := map[fence.Token][2]clock.Instant{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil || len(b) < 40 {
			continue // it was killed before it had written anything
		}
		token, err := fence.ParseToken(strings.TrimPrefix(filepath.Ext(file), "."))
		first, err1 := strconv.ParseInt(string(b[:20]), 10, 64)
		last, err2 := strconv.ParseInt(string(b[20:40]), 10, 64)
		if err := errors.Join(err, err1, err2); err != nil {
			p.t.Fatal(err)
		}
		all[token] = [2]clock.Instant{clock.Instant(first), clock.Instant(last)}
	}
	return all
}

// TestStandbyUnderKillsAndStops: CMD of one term is gone before that of the next begins, however its supervisor ended.
func TestStandbyUnderKillsAndStops(t *testing.T) { stalltest.Run(t, standbyUnderKillsAndStops) }

func standbyUnderKillsAndStops(t testing.TB) {
	p := newPods(t)
	for _, pod := range []string{"a", "b", "c"} {
		p.run(pod, "--", "span", "span")
	}
	var slowest time.Duration
	for n := range 6 {
		victim := p.active()
		eventually(t, "its command runs", func() bool { return len(p.spans("span")) > n })
		prog := p.progs[victim]
		start := time.Now()
		switch n % 2 {
		case 0:
			prog.signal(syscall.SIGKILL)
			<-prog.ended
			delete(p.progs, victim)
		case 1:
			p.pause(prog)
			delete(p.progs, victim) // it doesn't answer
		}
		p.active()
		slowest = max(slowest, time.Since(start))
		if n%2 == 1 {
			time.Sleep(time.Second)
			prog.signal(syscall.SIGCONT)
			p.progs[victim] = prog
			continue
		}
		p.run(victim, "--", "span", "span")
	}
	t.Logf("taken over within %v at the slowest, of %v", slowest, standbyTTL+standbyWait)
	for _, prog := range p.progs {
		prog.signal(syscall.SIGTERM)
		if code := prog.code(); code != cli.ExitSignal+int(syscall.SIGTERM) {
			t.Errorf("exit code %d after SIGTERM: %s", code, prog.stderr)
		}
	}
	spans := p.spans("span")
	var tokens []fence.Token
	for token := range spans {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for n := 1; n < len(tokens); n++ {
		before, after := spans[tokens[n-1]], spans[tokens[n]]
		if before[1] >= after[0] {
			t.Errorf("CMD of term %d ran until %v after that of term %d had begun", tokens[n-1], before[1].Sub(after[0]), tokens[n])
		}
	}
	if len(tokens) < 6 {
		t.Errorf("%d terms", len(tokens))
	}
}

// TestStandbyOperator is the operator's side, with real instances.
func TestStandbyOperator(t *testing.T) { stalltest.Run(t, standbyOperator) }

func standbyOperator(t testing.TB) {
	p := newPods(t)
	conf := p.conf("any")
	op := func(want int, args ...string) string {
		t.Helper()
		cmd := p.command(append(append([]string{"standby"}, args...), "--config", conf)...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("standby %v: %v, want exit code %d\n%s", args, err, want, out)
		}
		return string(out)
	}
	op(cli.ExitNo, "status", "--wait", "500ms")
	op(cli.ExitNo, "switchover", "--to", "b")
	op(cli.ExitNo, "resume")
	p.run("a", "--", "span", "span")
	if p.active() != "a" {
		t.Fatal("a is not active")
	}
	p.run("b", "--", "span", "span")
	eventually(t, "b knows who is active", func() bool { _, st := p.get("b", "/state"); return st.Initialized })
	out := op(0, "status", "--wait", "5s")
	for _, want := range []string{"active", "region-of-a", "region-of-b", "passive"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in:\n%s", want, out)
		}
	}
	if out := op(cli.ExitOwn, "switchover", "--to", "nobody", "--wait", "5s"); !strings.Contains(out, "a (active)") {
		t.Errorf("to nobody: %s", out)
	}
	if out := op(0, "switchover", "--to", "b"); !strings.Contains(out, "a has handed over to b") {
		t.Errorf("to b: %s", out)
	}
	eventually(t, "b is active", func() bool { code, _ := p.get("b", "/active"); return code == http.StatusOK })
	if code, _ := p.get("a", "/health/ready?checkifreadonly=true"); code != http.StatusServiceUnavailable {
		t.Errorf("a: %d", code)
	}
	op(0, "hold", "--reason", "moving house")
	for _, pod := range []string{"a", "b"} {
		code, _ := p.get(pod, "/standby")
		_, st := p.get(pod, "/state")
		if code != http.StatusOK || !strings.Contains(st.Reason, "moving house") || st.Owner != admiral.SkipOwner {
			t.Errorf("%s: %d, %+v", pod, code, st)
		}
	}
	if out := op(cli.ExitNo, "status", "--wait", "500ms"); !strings.Contains(out, "held passive") || !strings.Contains(out, "moving house") {
		t.Errorf("status:\n%s", out)
	}
	op(0, "resume")
	p.active()
}

// TestStandbyNotify: CMD runs all the time, and is told by file, signal and hook, in that order.
func TestStandbyNotify(t *testing.T) { stalltest.Run(t, standbyNotify) }

func standbyNotify(t testing.TB) {
	p := newPods(t)
	script := "trap 'echo usr1 >>log' USR1; trap 'echo usr2 >>log' USR2; trap 'exit 0' TERM; echo up $LEASEHOLD_ROLE_FILE >ready; while :; do sleep 0.02; done"
	hook := "#!/bin/sh\necho hook $1 $LEASEHOLD_ROLE $(head -1 role) token=$LEASEHOLD_TOKEN >>hooks\n"
	if err := os.WriteFile(p.path("hook"), []byte(hook), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	conf := p.conf("a")
	p.must("standby", "hold", "--config", conf)
	prog := p.run("a", "--mode", "notify", "--notify-file", "role", "--notify-signal", "USR1,USR2", "--notify-command", p.path("hook"), "--", "sh", "-c", script)
	if ready := p.content("ready"); ready != "up "+p.path("role") {
		t.Errorf("%q", ready)
	}
	p.must("standby", "resume", "--config", conf)
	eventually(t, "it is told that it is active", func() bool { b, _ := os.ReadFile(p.path("log")); return string(b) == "usr1\n" })
	if role := strings.Fields(p.read("role")); len(role) != 2 || role[0] != "active" {
		t.Errorf("the file: %v", role)
	}
	p.must("standby", "hold", "--config", conf)
	eventually(t, "it is told that it is passive", func() bool { b, _ := os.ReadFile(p.path("log")); return string(b) == "usr1\nusr2\n" })
	if role := p.read("role"); role != "passive\n" {
		t.Errorf("the file: %q", role)
	}
	hooks := regexp.MustCompile(`^hook passive passive passive token=\nhook active active active token=\d+\nhook passive passive passive token=\d+\n$`)
	eventually(t, "the hooks are called", func() bool { b, _ := os.ReadFile(p.path("hooks")); return hooks.Match(b) })
	prog.signal(syscall.SIGTERM)
	if code := prog.code(); code != cli.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit code %d\n%s", code, prog.stderr)
	}
}

// TestStandbyHookThatFails: an instance that can't be made active gives the lease to another one.
func TestStandbyHookThatFails(t *testing.T) { stalltest.Run(t, standbyHookThatFails) }

func standbyHookThatFails(t testing.TB) {
	p := newPods(t)
	hook := "#!/bin/sh\ntest $1 = passive\n"
	if err := os.WriteFile(p.path("hook"), []byte(hook), 0o700); err != nil { //nolint:gosec // it is to be executed
		t.Fatal(err)
	}
	a := p.run("a", "--mode", "notify", "--notify-command", p.path("hook"), "--notify-file", "role")
	if code := a.code(); code != cli.ExitOwn || !strings.Contains(a.stderr.String(), "hook active") {
		t.Errorf("exit code %d\n%s", code, a.stderr)
	}
	if role := p.read("role"); role != "passive\n" {
		t.Errorf("the file: %q", role)
	}
	if rec, _ := p.reader().record("prod"); rec.Owner != "" {
		t.Errorf("the lease is %s's", rec.Owner)
	}
}

// TestStandbyEndsWithCMD: with its exit code, and the lease is free.
func TestStandbyEndsWithCMD(t *testing.T) { stalltest.Run(t, standbyEndsWithCMD) }

func standbyEndsWithCMD(t testing.TB) {
	for _, args := range [][]string{
		{"--", "sh", "-c", "exit 7"},
		{"--mode", "notify", "--notify-file", "role", "--", "sh", "-c", "until grep -q ^active role; do sleep 0.02; done; exit 7"},
	} {
		p := newPods(t)
		prog := p.run("a", args...)
		if code := prog.code(); code != 7 {
			t.Errorf("%v: exit code %d\n%s", args, code, prog.stderr)
		}
		if rec, _ := p.reader().record("prod"); rec.Owner != "" || rec.Token == 0 {
			t.Errorf("%v: %+v", args, rec)
		}
		if b, err := os.ReadFile(p.path("role")); err == nil && string(b) != "passive\n" {
			t.Errorf("the file: %q", b)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

// TestNotifiedProgramDiesWithUs: nobody would tell it its role any more.
func TestNotifiedProgramDiesWithUs(t *testing.T) {
	p := newPods(t)
	prog := p.run("a", "--mode", "notify", "--notify-file", "role", "--", "sh", "-c", "echo $$ >pid; exec sleep 1000")
	pid := p.pid("pid")
	prog.signal(syscall.SIGKILL)
	<-prog.ended
	eventually(t, "it is gone", func() bool { return !runs(pid) })
}

// TestStandbyPrefix: a prefix of another deployment ends the program, and it says whose.
func TestStandbyPrefix(t *testing.T) { stalltest.Run(t, standbyPrefix) }

func standbyPrefix(t testing.TB) {
	p := newPods(t)
	a := p.run("a", "--se_ip_prefix", "auto", "--", "sh", "-c", "echo $LEASEHOLD_SE_IP_PREFIX >prefix; exec sleep 1000")
	if got := p.content("prefix"); got != "240.0" {
		t.Errorf("auto: %q", got)
	}
	other := strings.ReplaceAll(p.read(p.conf("b")), "leaseName: prod", "leaseName: stage")
	p.put("b.yaml", other)
	b := p.start("standby", "--config", "b.yaml", "--listen", "off", "--se_ip_prefix", "240.0")
	if code := b.code(); code != cli.ExitConflict || !strings.Contains(b.stderr.String(), `belongs to the deployment "prod"`) {
		t.Errorf("exit code %d\n%s", code, b.stderr)
	}
	a.signal(syscall.SIGINT)
	a.code()
}
