package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// script returns a script that runs in the folder, on the store there.
func (p place) script(text string, args ...string) *exec.Cmd {
	cmd := p.command()
	cmd.Args = append([]string{"sh", "-c", text, "sh"}, args...)
	path, err := exec.LookPath("sh")
	if err != nil {
		p.t.Fatal(err)
	}
	cmd.Path = path
	cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+p.dir)
	return cmd
}

// keeper waits for the number of the keeper that the file of a hold names.
func (p place) keeper(pattern string) (pid int) {
	p.t.Helper()
	eventually(p.t, "the hold has a keeper", func() bool {
		out, err := exec.Command("sh", "-c", "sed -n 's/.*\"keeper\": \\([0-9]*\\).*/\\1/p' "+p.path(pattern)).Output()
		if err != nil {
			return false
		}
		for _, c := range strings.TrimSpace(string(out)) {
			pid = pid*10 + int(c-'0')
		}
		return pid > 0
	})
	return pid
}

// ended waits for a process that is nobody's child here.
func ended(t testing.TB, pid int) {
	t.Helper()
	eventually(t, "the process ends", func() bool { return !runs(pid) })
}

func (p place) write700() {
	if err := os.Chmod(p.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
}

// A shell that is killed takes its keeper with it. What it has started may be at work, so the name is taken after the TTL, and
// not before.
func TestKeeperEndsWithItsParent(t *testing.T) {
	p := newPlace(t)
	prog := p.launch(p.script(`leasehold acquire job --hold h2 --keep --ttl 3s --parent $$; touch ready2; sleep 100; true`))
	p.awaitFile("ready2")
	keeper := p.keeper("h2")
	rec, _ := p.reader().record("job")
	prog.signal(syscall.SIGKILL)
	ended(t, keeper)
	now, at := p.reader().record("job")
	if now.Owner != rec.Owner || now.Token != rec.Token {
		t.Errorf("released, though the shell was killed: %+v", now)
	}
	p.must("run", "-w", "1m", "job", "--", "stamp", p.path("taken"))
	if taken := p.lastTick("taken"); taken.Sub(at) < now.TTL {
		t.Errorf("taken %v after the last renewal, before the TTL", taken.Sub(at))
	}
}

// awaitFile waits for an empty file.
func (p place) awaitFile(name string) {
	p.t.Helper()
	eventually(p.t, name+" is there", func() bool {
		_, err := os.Stat(p.path(name))
		return err == nil
	})
}

// The process that renews is killed: others take the name after the TTL, and the shell learns of it by check.
func TestKeeperIsKilled(t *testing.T) {
	p := newPlace(t)
	p.write700()
	prog := p.launch(p.script(`exec 9>x; leasehold lock --fd 9 job --ttl 2s; touch ready; while leasehold check -q --fd 9; do sleep 0.1; done; leasehold check --fd 9; echo $? >checked; leasehold unlock --fd 9; echo $? >unlocked`))
	p.awaitFile("ready")
	keeper := p.keeper("leasehold/fd-*")
	before, _ := p.reader().record("job")
	if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := p.content("checked"); got != "1" {
		t.Errorf("check ends with %s", got)
	}
	p.must("run", "-w", "1m", "job", "--", "true")
	if code := prog.code(); code != 0 {
		t.Errorf("the shell ends with %d", code)
	}
	if after, _ := p.reader().record("job"); after.Token <= before.Token {
		t.Errorf("nobody has taken the name: %+v", after)
	}
}

// The shell is killed while what it started has the descriptor: the hold lasts until that has closed it, too, and is then released
// at once.
func TestLockLastsAsLongAsTheDescriptor(t *testing.T) {
	p := newPlace(t)
	p.write700()
	prog := p.launch(p.script(`exec 9>x; leasehold lock --fd 9 job --ttl 10m; sh -c 'echo $$ >child; exec sleep 100'; true`))
	child := p.pid("child")
	prog.signal(syscall.SIGKILL)
	_ = prog.code()
	rec, _ := p.reader().record("job")
	if rec.Owner == "" {
		t.Fatal("released while a child has the descriptor open")
	}
	if out, err := p.command("run", "-n", "job", "--", "true").CombinedOutput(); err == nil {
		t.Errorf("two at a time: %s", out)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the name is released", func() bool {
		rec, _ := p.reader().record("job")
		return rec.Owner == ""
	})
}

// A hold that is lost ends the shell and its children, if that is wanted, and not otherwise.
func TestOnLost(t *testing.T) {
	for how, killed := range map[string]bool{"term": true, "none": false} {
		t.Run(how, func(t *testing.T) {
			p := newPlace(t)
			p.write700()
			prog := p.launch(p.script(`exec 9>x; leasehold lock --fd 9 job --ttl 2s --on-lost "$1"; sh -c 'echo $$ >child; while ! [ -e over ]; do sleep 0.05; done'; true`, how))
			child := p.pid("child")
			keeper := p.keeper("leasehold/fd-*")
			rec, _ := p.reader().record("job")
			p.must("break", "job", "--token", rec.Token.String(), "--yes")
			ended(t, keeper)
			if killed {
				if code := prog.code(); code != -1 || prog.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
					t.Errorf("the shell ends with %v", prog.cmd.ProcessState)
				}
				ended(t, child)
				return
			}
			if !runs(child) {
				t.Error("the child was ended")
			}
			p.write("over")
			if code := prog.code(); code != 0 {
				t.Errorf("the shell ends with %d", code)
			}
		})
	}
}

// The store is out for longer than the hold is valid: the shell is told to end before another can have the name.
func TestOnLostInAnOutage(t *testing.T) { stalltest.Run(t, onLostInAnOutage) }

func onLostInAnOutage(t testing.TB) {
	p := newPlace(t)
	p.write700()
	prog := p.launch(p.script(`exec 9>x; leasehold lock --fd 9 job --ttl 3s --on-lost term; exec ticker ticks`))
	p.ticked("ticks")
	p.keeper("leasehold/fd-*")
	restore := p.cutOff()
	_ = prog.code()
	restore()
	rec, at := p.reader().record("job")
	if late := p.lastTick("ticks").Sub(at); late > validity(rec) {
		t.Errorf("ended %v after the last renewal, the hold is valid for %v", late, validity(rec))
	}
}

// An acquisition that is interrupted while it waits leaves nothing; one that is killed leaves a file that says so.
func TestAcquireIsInterrupted(t *testing.T) {
	p := newPlace(t)
	p.must("acquire", "job", "--hold", "h", "--ttl", "10m")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		prog := p.start("acquire", "job", "--hold", "h2", "--ttl", "10m")
		eventually(t, "it waits", func() bool { return strings.Contains(prog.stderr.String(), "waiting for job") })
		prog.signal(sig)
		want := 128 + int(sig)
		if sig == syscall.SIGKILL {
			want = -1
		}
		if code := prog.code(); code != want {
			t.Errorf("%v: ends with %d, want %d", sig, code, want)
		}
		if _, err := os.Stat(p.path("h2")); (err == nil) != (sig == syscall.SIGKILL) {
			t.Errorf("%v: %v", sig, err)
		}
	}
	if out, err := p.command("renew", "--hold", "h2").CombinedOutput(); err == nil || !strings.Contains(string(out), "run leasehold release --hold h2") {
		t.Errorf("%v: %s", err, out)
	}
	p.must("release", "--hold", "h2")
	p.must("renew", "--hold", "h")
	p.must("release", "--hold", "h")
	p.must("run", "-n", "job", "--", "true")
}

// A disk that is full shows before anything is acquired.
func TestAcquireOnAFullDisk(t *testing.T) {
	p := newPlace(t)
	p.must("run", "job", "--", "true")
	full := p.path("full")
	if err := os.Mkdir(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", full, "tmpfs", 0, "size=4k"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(full, 0) })
	if err := os.WriteFile(p.path("full/x"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := p.command("acquire", "job", "--hold", "full/h", "--ttl", "10m")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "full/h: the file of the hold can't be written: ") || !strings.Contains(string(out), "no space left") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(p.path("full/h")); err == nil {
		t.Error("the file is left")
	}
	p.must("run", "-n", "job", "--", "true")
}

// The steps work over HTTP, on two servers of one store, and with a copy of the file.
func TestStepsOverHTTP(t *testing.T) {
	p := newPlace(t)
	s := p.serve()
	step := func(args ...string) string {
		cmd := p.command(append(args, "--store", s.url)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	step("acquire", "job", "--hold", "h", "--ttl", "10m")
	step("renew", "--hold", "h")
	if err := os.WriteFile(p.path("copy"), []byte(p.read("h")), 0o600); err != nil {
		t.Fatal(err)
	}
	step("renew", "--hold", "copy")
	step("check", "--hold", "h")
	step("release", "--hold", "copy")
	if said := step("release", "--hold", "h"); !strings.Contains(said, "job is free") {
		t.Error(said)
	}
	step("acquire", "job", "--hold", "h", "--keep", "--ttl", "10s") // a stall of the keeper doesn't end it
	p.keeper("h")
	reader := p.reader()
	rec, _ := reader.record("job")
	eventually(t, "the keeper renews", func() bool {
		now, _ := reader.record("job")
		return now.Version != rec.Version && now.Token == rec.Token
	})
	step("release", "--hold", "h")
}
