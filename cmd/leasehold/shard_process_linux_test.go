package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// shardling is a command of `leasehold shard run`. It holds the lock of its shard's file for as long as it lives, and has a descendant hold
// it too that leaves its group and session. If another one has the lock, or a later token was there, that is a violation, and is written
// down. With an argument "stubborn" it ignores SIGTERM, with "short" it ends at once.
func shardling() {
	shard, token := os.Getenv("LEASEHOLD_SHARD"), os.Getenv("LEASEHOLD_TOKEN")
	note := func(file, format string, args ...any) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, _ = fmt.Fprintf(f, format+"\n", args...)
			_ = f.Close()
		}
	}
	lock, err := os.OpenFile("lock-"+shard, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		note("violations", "%v", err)
		os.Exit(1)
	}
	if err := unix.FcntlFlock(lock.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		note("violations", "shard %s has two commands at a time: token %s: %v", shard, token, err)
		os.Exit(1)
	}
	mark, _ := os.ReadFile("mark-" + shard)
	last, _ := strconv.ParseUint(string(mark), 10, 64) // 0: it is the first
	if own, err := strconv.ParseUint(token, 10, 64); err != nil || own < last {
		note("violations", "shard %s: token %s runs after token %d: %v", shard, token, last, err)
	}
	if err := os.WriteFile("mark-"+shard, []byte(token), 0o600); err != nil {
		note("violations", "%v", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	note("ran", "%s %s %s", shard, token, os.Getenv("LEASEHOLD_HOLDER"))
	if slices.Contains(os.Args, "short") {
		os.Exit(7)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.ExtraFiles, cmd.SysProcAttr = []*os.File{lock}, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		note("violations", "%v", err)
	}
	for {
		<-ended
		if !slices.Contains(os.Args, "stubborn") {
			os.Exit(0) // what it has left behind is the supervisor's
		}
	}
}

// shardWorker starts a worker with a short TTL. Its standard error comes to the test's log if it fails.
func (p place) shardWorker(env []string, name string, more ...string) *program {
	p.t.Helper()
	args := []string{"shard", "run", "jobs", "--as", name, "--ttl", "4s", "--drain", "1s"}
	dash := slices.Index(more, "--")
	flags, argv := more, []string{"shardling"}
	if dash >= 0 {
		flags, argv = more[:dash], more[dash+1:]
	}
	cmd := p.command(append(append(append(args, flags...), "--"), argv...)...)
	cmd.Env = append(cmd.Env, env...)
	return p.launch(cmd)
}

// held reports whether a command of the shard runs. It only asks for the lock: one that is taken to see
// whether it is free is in the way of a command that begins just then.
func (p place) held(shard int) bool {
	f, err := os.OpenFile(p.path(fmt.Sprintf("lock-%d", shard)), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

func (p place) allHeld(shards int) func() bool {
	return func() bool {
		for i := range shards {
			if !p.held(i) {
				return false
			}
		}
		return true
	}
}

func (p place) noneHeld(shards int) func() bool {
	return func() bool {
		for i := range shards {
			if p.held(i) {
				return false
			}
		}
		return true
	}
}

// ran returns what shardlings wrote down when they began: a line each, with shard, token and holder.
func (p place) ran() string {
	b, _ := os.ReadFile(p.path("ran")) // there is none at first
	return string(b)
}

// runsAfter reports whether shard 0's command runs after so many earlier ones, and has written that
// down: it has its lock before, and may be killed in between.
func (p place) runsAfter(earlier int) func() bool {
	return func() bool { return strings.Count(p.ran(), "\n") > earlier && p.held(0) }
}

// unviolated fails the test for what shardlings wrote down.
func (p place) unviolated() {
	p.t.Helper()
	if b, err := os.ReadFile(p.path("violations")); !errors.Is(err, fs.ErrNotExist) {
		p.t.Errorf("%s%v", b, err)
	}
}

// hosts returns the processes that supervise the commands of a worker.
func hosts(t testing.TB, worker int) (all []int) {
	t.Helper()
	for _, child := range childrenOf(t, worker) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
		if err == nil && strings.TrimSpace(string(comm)) == "lease-shard" {
			all = append(all, child)
		}
	}
	return all
}

// A worker gets SIGTERM: the other has all its shards when it has ended, and no command of it is left.
func TestShardWorkersComeAndGo(t *testing.T) {
	const shards = 6
	p := newPlace(t)
	first := p.shardWorker(nil, "first", "--shards", "0-5")
	eventually(t, "all run", p.allHeld(shards))
	second := p.shardWorker(nil, "second")
	eventually(t, "the second has its share", func() bool { return strings.Count(p.ran(), "second/") >= 3 })
	first.signal(syscall.SIGTERM)
	if code := first.code(); code != cli.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit code %d; standard error:\n%s", code, first.stderr)
	}
	if left := hosts(t, first.cmd.Process.Pid); left != nil {
		t.Errorf("left behind: %v", left)
	}
	eventually(t, "the second runs all", func() bool {
		out, err := p.command("shard", "status", "jobs", "--worker", "second", "--slices").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return bytes.Count(out, []byte("\n")) == shards+1 && p.allHeld(shards)()
	})
	second.signal(syscall.SIGTERM)
	second.code()
	eventually(t, "no command is left", p.noneHeld(shards))
	p.unviolated()
}

// Each way in which a worker, or what supervises its commands, can be hindered: before a shard is another's, all that its command has
// started is gone.
func TestShardIsGoneBeforeItIsAnothers(t *testing.T) {
	const shards = 4
	for what, attack := range map[string]func(t testing.TB, p place, w *program){
		"the worker is killed": func(_ testing.TB, _ place, w *program) { w.signal(syscall.SIGKILL) },
		"the worker is stopped": func(_ testing.TB, p place, w *program) {
			p.pause(w)
		},
		"worker and hosts are stopped": func(t testing.TB, p place, w *program) {
			p.pause(w)
			for _, host := range hosts(t, w.cmd.Process.Pid) {
				_ = syscall.Kill(host, syscall.SIGSTOP)
			}
		},
		"worker and hosts are killed": func(t testing.TB, p place, w *program) {
			p.pause(w) // so that it starts no others
			for _, host := range hosts(t, w.cmd.Process.Pid) {
				_ = syscall.Kill(host, syscall.SIGKILL)
			}
			w.signal(syscall.SIGKILL)
		},
	} {
		t.Run(what, func(t *testing.T) {
			stalltest.Run(t, func(t testing.TB) {
				p := newPlace(t)
				w := p.shardWorker(nil, "victim", "--shards", "0-3", "--", "shardling", "stubborn")
				eventually(t, "all run", p.allHeld(shards))
				other := p.shardWorker(nil, "other")
				eventually(t, "the other has joined", func() bool { return strings.Contains(other.stderr.String(), "joined") })
				attack(t, p, w)
				eventually(t, "the other has all", func() bool {
					n := 0
					for i := range shards {
						mark, _ := os.ReadFile(p.path(fmt.Sprintf("mark-%d", i)))
						if strings.Contains(p.ran(), fmt.Sprintf("%d %s other/", i, mark)) {
							n++
						}
					}
					return n == shards
				})
				p.unviolated()
				for _, host := range hosts(t, w.cmd.Process.Pid) {
					_ = syscall.Kill(host, syscall.SIGCONT)
				}
			})
		})
	}
}

// A host is killed: its guards end the command, and the worker starts another one.
func TestShardHostKilled(t *testing.T) {
	p := newPlace(t)
	w := p.shardWorker(nil, "w", "--shards", "0", "--ttl", "20s", "--", "shardling", "stubborn") // a stall of the worker ends no host
	eventually(t, "it runs", p.runsAfter(0))
	all := hosts(t, w.cmd.Process.Pid)
	if len(all) != 1 {
		t.Fatalf("hosts: %v", all)
	}
	if err := syscall.Kill(all[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs again", p.runsAfter(1))
	p.unviolated()
	w.signal(syscall.SIGTERM)
	w.code()
	eventually(t, "it is gone", p.noneHeld(1))
}

// Hosts are stopped before they have started their commands: the worker lets them continue. Else it would own slices that nobody serves,
// and never leave.
func TestShardHostIsStoppedWhileItStarts(t *testing.T) {
	const shards = 8
	for what, leaves := range map[string]bool{"all run": false, "the worker leaves": true} {
		t.Run(what, func(t *testing.T) {
			early := 0
			var p place
			var w *program
			for early == 0 { // a machine that is busy may stop them all too late
				p = newPlace(t)
				w = p.shardWorker(nil, "w", "--shards", fmt.Sprintf("0-%d", shards-1), "--ttl", "20s", "--", "shardling", "stubborn")
				seen := map[int]bool{}
				eventually(t, "all are stopped", func() bool {
					for _, host := range hosts(t, w.cmd.Process.Pid) {
						if !seen[host] {
							_ = syscall.Kill(host, syscall.SIGSTOP)
							seen[host] = true
							if !hasCommand(t, host) {
								early++
							}
						}
					}
					return len(seen) >= shards
				})
			}
			t.Logf("%d of %d hosts were stopped before they had a command", early, shards)
			if !leaves {
				eventually(t, "all run", p.allHeld(shards))
				w.says(fmt.Sprintf("jobs %d: running", shards-1))
			}
			w.signal(syscall.SIGTERM)
			w.code()
			if left := hosts(t, w.cmd.Process.Pid); left != nil {
				t.Errorf("left behind: %v", left)
			}
			eventually(t, "no command is left", p.noneHeld(shards))
			p.unviolated()
		})
	}
}

// hasCommand reports whether a host has a process beside its guards.
func hasCommand(t testing.TB, host int) bool {
	t.Helper()
	return slices.ContainsFunc(childrenOf(t, host), func(pid int) bool {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return err == nil && !strings.HasPrefix(string(comm), "lease-")
	})
}

// A second signal ends all at once, whatever the commands do about the first one.
func TestShardSecondSignal(t *testing.T) {
	p := newPlace(t)
	cmd := p.command("shard", "run", "jobs", "--shards", "0-2", "--drain", "10m", "--", "shardling", "stubborn")
	w := p.launch(cmd)
	eventually(t, "all run", p.allHeld(3))
	w.signal(syscall.SIGTERM)
	eventually(t, "it drains", func() bool { return strings.Count(w.stderr.String(), "draining") >= 3 })
	if !p.allHeld(3)() {
		t.Error("a command that drains was ended")
	}
	eventually(t, "it ends", func() bool {
		_ = w.cmd.Process.Signal(syscall.SIGTERM)
		return strings.Contains(w.stderr.String(), "another signal")
	})
	if code := w.code(); code != cli.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit code %d; standard error:\n%s", code, w.stderr)
	}
	if !p.noneHeld(3)() {
		t.Error("a command is left")
	}
}

// timeout(1) signals the process and then its whole group: that is one order, and all is drained.
func TestShardOneOrderOfTwoSignals(t *testing.T) { stalltest.Run(t, shardOneOrderOfTwoSignals) }

func shardOneOrderOfTwoSignals(t testing.TB) {
	p := newPlace(t)
	w := p.shardWorker(nil, "w", "--shards", "0-2", "--drain", "1s", "--", "shardling", "stubborn")
	eventually(t, "all run", p.allHeld(3))
	w.signal(syscall.SIGTERM)
	w.signal(syscall.SIGINT) // a second SIGTERM may be one with the first
	w.code()
	if text := w.stderr.String(); strings.Contains(text, "another signal") || !strings.Contains(text, "jobs: left\n") {
		t.Errorf("standard error:\n%s", text)
	}
	p.unviolated()
}

// A store that hangs: the commands are gone before the validity ends, and run again when the store answers.
func TestShardStoreHangs(t *testing.T) {
	stalltest.Run(t, func(t testing.TB) {
		p := newPlace(t)
		w := p.shardWorker(nil, "w", "--shards", "0-1", "--", "shardling", "stubborn")
		eventually(t, "all run", p.allHeld(2))
		restore := p.cutOff()
		cut := time.Now()
		eventually(t, "all are gone", p.noneHeld(2))
		if took := time.Since(cut); took > 4*time.Second {
			t.Errorf("the commands ran for %v beside a store that hangs, with a TTL of 4 s", took)
		}
		restore()
		eventually(t, "all run again", p.allHeld(2))
		w.signal(syscall.SIGTERM)
		w.code()
		p.unviolated()
	})
}

// A command that ends by itself is started again, or has the worker leave with its code.
func TestShardCommandEnds(t *testing.T) {
	p := newPlace(t)
	w := p.shardWorker(nil, "w", "--shards", "0", "--", "shardling", "short")
	eventually(t, "it runs again", func() bool {
		return strings.Count(p.ran(), "\n") >= 2
	})
	w.says("has ended with code 7") // its pipe may be read later than the file
	w.signal(syscall.SIGTERM)
	w.code()
	w = p.shardWorker(nil, "w", "--on-exit", "leave", "--", "shardling", "short")
	if code := w.code(); code != 7 {
		t.Errorf("exit code %d; standard error:\n%s", code, w.stderr)
	}
	p.unviolated()
}

// Workers are killed, stopped, ended and started on real stores. No shard ever has two commands, or one under an older token. With
// LEASEHOLD_SHARDS_FOR (scripts/shards) it takes longer.
func TestShardChaos(t *testing.T) {
	lasts := 10 * time.Second
	if text := os.Getenv("LEASEHOLD_SHARDS_FOR"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]func(*testing.T){}
	for _, engine := range []string{"file", "etcd", "postgres"} {
		tests[engine] = func(t *testing.T) {
			url, env := realStores[engine](t)
			shardChaos(t, append(env, "LEASEHOLD_STORE="+url), lasts)
		}
	}
	together(t, 3, tests)
}

func shardChaos(t *testing.T, env []string, lasts time.Duration) {
	const shards, workers = 9, 3
	p := newPlace(t)
	running := map[*program]bool{}
	started := 0
	start := func() {
		running[p.shardWorker(env, fmt.Sprintf("w%d", started), "--shards", fmt.Sprintf("0-%d", shards-1), "--", "shardling", "stubborn")] = true
		started++
	}
	var resumed sync.WaitGroup
	defer resumed.Wait()
	for range workers {
		start()
	}
	eventually(t, "all run", p.allHeld(shards))
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(rand.N(time.Second)) {
		var all []*program
		for w := range running {
			all = append(all, w)
		}
		w := all[rand.IntN(len(all))]
		switch rand.IntN(5) {
		case 0:
			w.signal(syscall.SIGKILL)
			delete(running, w)
		case 1:
			_ = w.cmd.Process.Signal(syscall.SIGTERM)
			delete(running, w)
		case 2:
			w.signal(syscall.SIGSTOP)
			resumed.Go(func() {
				time.Sleep(rand.N(6 * time.Second))
				_ = w.cmd.Process.Signal(syscall.SIGCONT)
			})
		case 3:
			if hosts := hosts(t, w.cmd.Process.Pid); len(hosts) > 0 {
				_ = syscall.Kill(hosts[rand.IntN(len(hosts))], []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}[rand.IntN(2)])
			}
		}
		for len(running) < workers {
			start()
		}
	}
	resumed.Wait()
	eventually(t, "all run again", p.allHeld(shards))
	for w := range running {
		w.signal(syscall.SIGTERM)
	}
	for w := range running {
		w.code()
	}
	eventually(t, "no command is left", p.noneHeld(shards))
	p.unviolated()
	t.Logf("%d workers, %d commands for %d shards", started, strings.Count(p.ran(), "\n"), shards)
}

// What one shard costs beside its command: a host and two guards, each with little memory of its own.
func TestShardHostIsSmall(t *testing.T) {
	const most = 8 << 20
	p := newPlace(t)
	w := p.shardWorker(nil, "w", "--shards", "0", "--ttl", "20s") // a stall of the worker ends no host
	eventually(t, "it runs", p.allHeld(1))
	host := hosts(t, w.cmd.Process.Pid)
	if len(host) != 1 {
		t.Fatalf("hosts: %v", host)
	}
	own := 0
	for _, pid := range append(childrenOf(t, host[0]), host[0]) {
		comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "lease-") {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(rollup)) {
			var kib int
			if _, err := fmt.Sscanf(line, "Anonymous: %d kB", &kib); err == nil {
				own += kib << 10
				t.Logf("%s has %d KiB of its own", strings.TrimSpace(string(comm)), kib)
			}
		}
	}
	if own == 0 || own > 3*most {
		t.Errorf("host and guards have %d bytes of their own: want at most %d", own, 3*most)
	}
	w.signal(syscall.SIGTERM)
	w.code()
}
