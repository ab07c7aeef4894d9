package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

func init() {
	helpers["own"] = ownHelper
	helpers["mourn"] = mournHelper
	helpers["idle"] = idleHelper
}

// ownHelper holds the key and renews it on each line that it is told.
func ownHelper() error {
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return err
	}
	rec, err := store.Load(context.Background(), s, args().Key)
	if err != nil {
		return err
	}
	rec.Owner, rec.Token, rec.TTL = fmt.Sprint("holder ", args().N), rec.Token+1, time.Minute
	for next := told(); err == nil; {
		if rec, err = s.PutOwn(context.Background(), rec); err != nil {
			break
		}
		fmt.Println("renewed")
		if _, ok := next(); !ok {
			return s.Close()
		}
	}
	return err
}

// mournHelper tells the age of the key at once, and again on each change and when its holder has ended.
func mournHelper() error {
	ctx := untilTold()
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	for version := ""; ; {
		rec, err := s.WaitHolder(ctx, args().Key, version)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case rec.Age == store.AgeGone:
			fmt.Println("gone", clock.System().Now())
			return nil
		}
		fmt.Println("alive")
		version = rec.Version
	}
}

// idleHelper waits for the end of a holder that lives on.
func idleHelper() error {
	ctx := untilTold()
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	rec, err := s.Get(ctx, args().Key)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = s.WaitHolder(ctx, rec.Key, rec.Version)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// container is the front of a command that runs as LXC, Incus and systemd-nspawn have it run: with a boot id, processes, mounts and a
// clock of its own.
func container(t testing.TB, n int) []string {
	t.Helper()
	id := filepath.Join(t.TempDir(), "boot_id")
	write(t, id, []byte(fmt.Sprintf("00000000-0000-4000-8000-%012d\n", n)))
	front := []string{"unshare", "--mount", "--pid", "--mount-proc", "--time", "--boottime", fmt.Sprint(100_000 * n), "--fork", "--kill-child",
		"sh", "-c", `mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"`, id}
	if out, err := exec.Command(front[0], append(front[1:], "true")...).CombinedOutput(); err != nil {
		lacking(t, "namespaces: "+string(out))
	}
	return front
}

// leaf returns the last of a chain of processes that begins with pid: the one in the container.
func leaf(t testing.TB, pid int) int {
	t.Helper()
	for {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(children))
		if len(fields) == 0 {
			return pid
		}
		if _, err := fmt.Sscan(fields[len(fields)-1], &pid); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *process) want(t testing.TB, want string) string {
	t.Helper()
	line := p.line(t)
	if !strings.HasPrefix(line, want) {
		t.Fatalf("the helper said %q, want %q", line, want)
	}
	return line
}

// A boot id of its own makes no container's process a dead one's: the holder is alive to all until the kernel says that it is gone, and
// then gone to all at once, also to those who wait already.
func TestFinding_S2_ContainersWithBootIDsOfTheirOwn(t *testing.T) {
	path := testPath(t)
	exclude(t, path, path, func(n int) []string { return container(t, n) })
}

// nspawn is the front of a command in a container of systemd-nspawn, which has the machine's programs and mount: "/from:/to". It makes the
// container's boot id, processes, mounts and control group; its clock is set off inside. Where it can't run, [container] makes its mounts.
func nspawn(t testing.TB, n int, mount string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	front := []string{"systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--console=pipe", "--as-pid2", "--capability=CAP_SYS_TIME",
		"--directory=" + root,
		"--bind=" + mount, "--bind-ro=" + exe, "--setenv=" + helperEnv, "--setenv=" + argsEnv}
	for _, path := range []string{"/usr", "/bin", "/lib", "/lib64", "/lib32", "/libx32", "/sbin"} {
		if link, err := os.Readlink(path); err == nil {
			if err := os.Symlink(link, root+path); err != nil {
				t.Fatal(err)
			}
		} else if _, err := os.Stat(path); err == nil {
			front = append(front, "--bind-ro="+path)
		}
	}
	for _, dir := range []string{"/etc", "/usr"} {
		if err := os.Mkdir(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root+"/etc/os-release", []byte("ID=test\n"))
	front = append(front, "unshare", "--time", "--boottime", fmt.Sprint(100_000*n), "--fork", "--kill-child")
	cmd := exec.Command(front[0], append(front[1:], "cat", "/proc/sys/kernel/random/boot_id")...)
	cmd.Env = append(os.Environ(), helperEnv+"=", argsEnv+"=")
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		lacking(t, "systemd-nspawn (Debian's systemd-container)")
	case err != nil && os.Getuid() != 0:
		lacking(t, "systemd-nspawn as root")
	case err != nil && refusedByKernel(string(out)):
		t.Skipf("not tried here: the kernel, or the container that this runs in, refuses systemd-nspawn what it needs; the same with its mounts is "+
			"TestFinding_S2_ContainersWithBootIDsOfTheirOwn: %v: %s", err, out)
	case err != nil:
		t.Fatalf("systemd-nspawn: %v: %s", err, out)
	}
	if mine, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err != nil || strings.TrimSpace(string(out)) == strings.TrimSpace(string(mine)) {
		t.Fatalf("the container's boot id is the machine's: %s, %v", out, err)
	}
	return front
}

// refusedByKernel reports whether systemd-nspawn says that a system call was refused: what it asks for is what a container may not have.
func refusedByKernel(said string) bool {
	for _, errno := range []syscall.Errno{
		syscall.EPERM, syscall.EACCES, syscall.EROFS, syscall.ENOSYS, syscall.EINVAL, syscall.EBUSY, syscall.ENODEV, syscall.EOPNOTSUPP,
	} {
		if text := errno.Error(); strings.Contains(strings.ToLower(said), text) {
			return true
		}
	}
	return false
}

// Containers of systemd-nspawn exclude each other on one file, and a kill in one frees the name for the other.
func TestFinding_S2_ContainersOfSystemd(t *testing.T) {
	path := testPath(t)
	exclude(t, path, "/data/"+filepath.Base(path), func(n int) []string { return nspawn(t, n, filepath.Dir(path)+":/data") })
}

// A container that has the single file, and not its folder, is refused.
func TestFinding_S3_AContainerWithTheSingleFile(t *testing.T) {
	path := testPath(t)
	mustPut(t, testOpen(t, path), held("k", 1))
	p := start(t, "own", helperArgs{Path: "/data/leases.db", Key: "k"}, nspawn(t, 1, path+":/data/leases.db")...)
	line, err := p.out.ReadString('\n')
	if waited := p.cmd.Wait(); err == nil || waited == nil || !strings.Contains(p.err.String(), "mount its folder instead") {
		t.Errorf("it said %q, and ended with %v: %s", line, waited, p.err.String())
	}
}

// exclude has a process in one container hold a name, and processes outside and in another container wait for its end. inside is the path
// of the file in the containers.
func exclude(t *testing.T, path, inside string, front func(n int) []string) {
	t.Helper()
	holder := start(t, "own", helperArgs{Path: inside, Key: "k"}, front(1)...)
	holder.want(t, "renewed")
	here, there := start(t, "mourn", helperArgs{Path: path, Key: "k"}), start(t, "mourn", helperArgs{Path: inside, Key: "k"}, front(2)...)
	for range 5 {
		here.want(t, "alive")
		there.want(t, "alive")
		holder.tell(t, "again")
		holder.want(t, "renewed")
	}
	here.want(t, "alive")
	there.want(t, "alive")
	if err := syscall.Kill(leaf(t, holder.cmd.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	here.want(t, "gone")
	there.want(t, "gone")
}

// Who wrote the record last doesn't matter: an operator's mark keeps the holder, a release, a hand-over and another's claim don't.
func TestFinding_S2_FollowsTheHolder(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	for _, c := range []struct {
		name   string
		change func(*store.Record)
		gone   bool // once the process that held it is
	}{
		{"nothing", func(*store.Record) {}, true},
		{"marked", func(r *store.Record) {
			r.Intervention, r.Note, r.TTL = store.InterventionBroken, "an operator", time.Hour
		}, true},
		{"released", func(r *store.Record) { r.Owner, r.TTL = "", 0 }, false},
		{"handed over", func(r *store.Record) {
			r.Owner, r.Token, r.Intervention = "successor", r.Token+1, store.InterventionHandedOver
		}, false},
		{"granted by a server", func(r *store.Record) { r.Owner, r.Token = "a client elsewhere", r.Token+1 }, false},
		{"put back under the same token", func(r *store.Record) { r.Owner = "a client elsewhere" }, false},
	} {
		p := start(t, "own", helperArgs{Path: path, Key: c.name})
		p.want(t, "renewed")
		rec, err := s.Get(t.Context(), c.name)
		if err != nil || rec.Age == store.AgeGone {
			t.Fatalf("%s: age %v, %v", c.name, rec.Age, err)
		}
		c.change(&rec)
		mustPut(t, s, rec)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if rec, err = s.Get(t.Context(), c.name); err != nil || (rec.Age == store.AgeGone) != c.gone {
			t.Errorf("%s: age %v, %v; want gone: %v", c.name, rec.Age, err, c.gone)
		}
	}
	// And the other way round: the process that wrote it last has ended, the holder has not.
	rec, err := s.PutOwn(t.Context(), held("mine", 1))
	if err != nil {
		t.Fatal(err)
	}
	start(t, "count", helperArgs{Path: path, Key: "mine", N: 1}).stop(t)
	if rec, err = s.Get(t.Context(), rec.Key); err != nil || rec.Age == store.AgeGone {
		t.Errorf("age %v, %v", rec.Age, err)
	}
}

// A holder may count on its term after the store was closed: only the end of its process ends it. A process that was given the proof is
// part of it, and one that was merely started is not.
func TestFinding_S2_LastsAsLongAsTheProcess(t *testing.T) {
	path := testPath(t)
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutOwn(t.Context(), held("k", 1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p := start(t, "mourn", helperArgs{Path: path, Key: "k"})
	p.want(t, "alive")
	s = testOpen(t, path)
	if rec, err := s.Get(t.Context(), "k"); err != nil || rec.Age == store.AgeGone {
		t.Errorf("age %v, %v", rec.Age, err)
	}
	if child, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput(); err != nil || strings.Contains(string(child), path) {
		t.Errorf("a child has files of the store open: %s, %v", child, err)
	}
	heir := exec.Command("cat")
	heir.ExtraFiles = s.Proof()
	in, err := heir.StdinPipe()
	if err == nil {
		err = heir.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	// As the kernel does when this process ends.
	lives.Lock()
	_ = s.life.fifo.Close()
	_ = s.life.file.Close()
	delete(lives.byFile, s.life.key)
	lives.Unlock()
	if got := s.standing(s.life.name); got != alive {
		t.Errorf("%v while a process that was given the proof lives", got)
	}
	_ = in.Close()
	if err := heir.Wait(); err != nil {
		t.Error(err)
	}
	p.want(t, "gone")
}

// A lock file that was removed, or put back from a copy, proves nothing of those who hold the one before.
func TestFinding_S2_AnotherLockFile(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	begun := clock.System().Now()
	if _, err := s.PutOwn(t.Context(), held("k", 1)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	write(t, path+".lock", content)
	if rec, err := testOpen(t, path).Get(t.Context(), "k"); err != nil || rec.Age > clock.System().Now().Sub(begun) {
		t.Errorf("age %v, %v; want no more than has passed", rec.Age, err)
	}
}

// The age of a row goes on after its writer's end, so that what nobody keeps is free in time for those who look once. No clock makes it older
// than it is: not one that began again with a boot, not that of another machine or namespace, and not a wall clock that was set.
func TestFinding_S2_AgeAfterTheWriter(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	begun := clock.System().Now()
	start(t, "count", helperArgs{Path: path, Key: "k", N: 1}).stop(t)
	ended := clock.System().Now()
	look := func() (row, store.Record) {
		t.Helper()
		found, err := s.read(t.Context(), selectRow, "k")
		if err != nil {
			t.Fatal(err)
		}
		rec, err := s.record(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return found[0], rec
	}
	time.Sleep(50 * time.Millisecond)
	least := clock.System().Now().Sub(ended)
	r, rec := look()
	if most := clock.System().Now().Sub(begun); rec.Age < least-2*time.Millisecond || rec.Age > most {
		t.Errorf("age %v, want %v to %v", rec.Age, least, most)
	}
	was := parseMark(r.mark)
	if was.wall == "" || s.standing(was.writer) != gone {
		t.Fatalf("%+v: want a writer that has ended, and its time", was)
	}
	const day = 24 * time.Hour
	ms := func(d time.Duration) string { return strconv.FormatInt(r.read.wall-d.Milliseconds(), 36) }
	for _, c := range []struct {
		name        string
		written     clock.Instant
		wall, space string
		least, most time.Duration
	}{
		{"an hour ago", r.read.now.Add(-time.Hour), ms(time.Hour), was.space, time.Hour, time.Hour + time.Minute},
		{"before a boot, which was a minute ago", r.read.now.Add(-time.Minute), ms(day), was.space, time.Minute, 2 * time.Minute},
		{"before a boot, and later in it than now", r.read.now.Add(day), ms(day), was.space, 0, 0},
		{"on a machine that was booted a day later", r.read.now.Add(-day), ms(0), was.space, 0, time.Minute},
		{"with a wall clock that was set back since", r.read.now.Add(-time.Hour), ms(-day), was.space, 0, 0},
		{"with a wall clock that was set forward since", r.read.now.Add(-time.Second), ms(day), was.space, time.Second, time.Minute},
		{"without the time of the wall clock", r.read.now.Add(-time.Hour), "", was.space, 0, 0},
		{"in another time namespace", r.read.now.Add(-time.Hour), ms(time.Hour), was.space + "1", 0, 0},
	} {
		m := was
		m.wall, m.space = c.wall, c.space
		shell(t, path, fmt.Sprintf("UPDATE records SET written = %d, boot = '%s'", c.written, m))
		if _, rec := look(); rec.Age < c.least || rec.Age > c.most {
			t.Errorf("written %s: age %v, want %v to %v", c.name, rec.Age, c.least, c.most)
		}
	}
}

// What a version before this one wrote says nothing of its writer, and what this one writes says nothing to it.
func TestFinding_S2_RowsOfVersionsBefore(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	rec, err := s.PutOwn(t.Context(), held("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.read(t.Context(), selectRow, "k")
	if err != nil || strings.Contains(found[0].mark, "/") || parseMark(found[0].mark).holderOf(rec) == "" {
		t.Fatalf("%+v, %v: want a mark without a slash", found, err)
	}
	shell(t, path, "UPDATE records SET boot = '6f2a9c1e-0000-4000-8000-000000000000/time:[4026531834]0'")
	for range 2 {
		if rec, err = s.Get(t.Context(), "k"); err != nil || rec.Age > time.Minute {
			t.Errorf("age %v, %v", rec.Age, err)
		}
		mustPut(t, s, rec)
	}
}

// One database by two names has two logs and two locks.
func TestFinding_S3_TwoNames(t *testing.T) {
	refused := func(path, want string) {
		t.Helper()
		s, err := Open(t.Context(), path, Options{})
		if err == nil {
			t.Fatal("opened; Close:", s.Close())
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	path := testPath(t)
	s := testOpen(t, path)
	mustPut(t, s, held("k", 1))
	other := filepath.Join(t.TempDir(), "other.db")
	if err := os.Link(path, other); err != nil {
		t.Fatal(err)
	}
	refused(other, "2 names (hard links)")
	refused(path, "2 names (hard links)")
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	testOpen(t, path)
	write(t, other, nil)
	mountOn(t, other, "--bind", path)
	refused(other, "mount its folder instead")
	testOpen(t, path)
	dir := mount(t, "--bind", filepath.Dir(path)) // a folder has its log and lock with it
	start(t, "count", helperArgs{Path: filepath.Join(dir, filepath.Base(path)), Key: "k", N: 1}).stop(t)
	if rec, err := s.Get(t.Context(), "k"); err != nil || rec.Token != 2 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// A holder notices that others would not see its writes any more at its next commit, and loses what it holds.
func TestFinding_S4_RemovedLog(t *testing.T) {
	for _, suffixes := range [][]string{{"-wal", "-shm"}, {"-wal"}, {"-shm"}} {
		path := testPath(t)
		s := testOpen(t, path)
		rec := mustPut(t, s, held("k", 1))
		waiting := make(chan error, 1)
		go func() {
			_, err := s.Wait(context.Background(), "k", rec.Version)
			waiting <- err
		}()
		for _, suffix := range suffixes {
			if err := os.Remove(path + suffix); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Put(t.Context(), rec)
		if !errors.Is(err, store.ErrNotFound) || !errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "removed or replaced") {
			t.Errorf("%v: Put: %v", suffixes, err)
		}
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrClosed) || !strings.Contains(err.Error(), "removed or replaced") {
			t.Errorf("%v: Get: %v", suffixes, err)
		}
		if err := <-waiting; !errors.Is(err, store.ErrClosed) {
			t.Errorf("%v: Wait: %v", suffixes, err)
		}
	}
}

// Reads notice it, too.
func TestFinding_O4_ReadsOfAFileThatWasMoved(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	mustPut(t, s, held("k", 1))
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := s.Get(t.Context(), "k"); err != nil {
			if !strings.Contains(err.Error(), "removed or replaced") {
				t.Error(err)
			}
			return
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatal("reads go on")
		}
	}
}

// stopped is a process that was stopped while it had locks of the file, until the end of the test.
func init() {
	helpers["lock"] = func() error {
		l, err := openLock(args().Path + ".lock")
		if err != nil {
			return err
		}
		if err := l.lock(); err != nil {
			return err
		}
		fmt.Println("locked", os.Getpid())
		<-untilTold().Done()
		return nil
	}
	helpers["queue"] = func() error {
		enter := openGate(args().Key).enter
		enter(clock.System())
		fmt.Println("in line")
		<-untilTold().Done()
		return nil
	}
}

func (p *process) pause(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) })
}

// While a process is stopped that has the file lock, others open, read and close, and say who is in the way.
func TestFinding_L4_StoppedWriter(t *testing.T) {
	path := testPath(t)
	first := testOpen(t, path)
	rec := mustPut(t, first, held("k", 1))
	p := start(t, "lock", helperArgs{Path: path})
	p.want(t, "locked")
	p.pause(t)
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("Get: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // until the write has waited so long that it names the process
		since := s.waitsSince()
		for ctx.Err() == nil && (since == 0 || s.clock.Now().Sub(since) < longWait) {
			time.Sleep(time.Millisecond)
			since = s.waitsSince()
		}
		cancel()
	}()
	who := fmt.Sprintf("process %d since 2", p.cmd.Process.Pid)
	if _, err := s.Put(ctx, rec); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), who) {
		t.Errorf("Put: %v, want %q", err, who)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), who) {
		t.Errorf("Close: %v, want %q", err, who)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// A process that is stopped in line, or while it draws a number, holds Close up for no longer than a write.
func TestFinding_L4_StoppedInLine(t *testing.T) {
	path := testPath(t)
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	gate := filepath.Join(path+wakeSuffix, "takings.gate")
	p := start(t, "queue", helperArgs{Key: gate})
	p.want(t, "in line")
	p.pause(t)
	counter := openGate(filepath.Join(path+wakeSuffix, "terms.gate"))
	if err := counter.take(clock.System(), counterByte); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	rec := mustPut(t, s, held("k", 1)) // waits in line for a while, then passes
	group.Go(func() { mustPut(t, s, rec) })
	group.Wait()
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begun); took >= closeWait {
		t.Errorf("Close took %v", took)
	}
	if err := counter.close(); err != nil {
		t.Error(err)
	}
}

// Where the kernel vouches for nothing, nothing is said.
func TestFinding_S15_NoProofOnFUSE(t *testing.T) {
	s := testOpen(t, testPath(t))
	s.life, s.family = nil, nil // as on FUSE, macOS and Windows
	if _, err := s.PutOwn(t.Context(), held("k", 1)); err != nil {
		t.Fatal(err)
	}
	if rec, err := s.Get(t.Context(), "k"); err != nil || rec.Age != 0 || s.Properties().Age {
		t.Errorf("age %v, %v", rec.Age, err)
	}
}

// BenchmarkTakeover is how long it takes from the kill of a holder to the moment when a process that waits knows of it.
func BenchmarkTakeover(b *testing.B) {
	path := testPath(b)
	testOpen(b, path)
	var ns []int64
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		key := fmt.Sprint("k", i)
		holder := start(b, "own", helperArgs{Path: path, Key: key})
		holder.line(b)
		waiter := start(b, "mourn", helperArgs{Path: path, Key: key})
		waiter.line(b)
		time.Sleep(20 * time.Millisecond) // it waits
		begun := clock.System().Now()
		b.StartTimer()
		_ = holder.cmd.Process.Kill()
		var at int64
		if _, err := fmt.Sscanf(waiter.line(b), "gone %d", &at); err != nil {
			b.Fatal(err)
		}
		ns = append(ns, at-int64(begun))
		_ = waiter.cmd.Wait()
		_ = holder.cmd.Wait()
	}
	report(b, "", ns)
}
