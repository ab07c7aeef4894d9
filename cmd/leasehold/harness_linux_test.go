package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/postgres"
)

// place is a folder with a store, in which programs run.
type place struct {
	t   testing.TB
	dir string
}

// newPlace returns an empty one. What still runs in it when the test ends is killed: a test that fails leaves nothing.
func newPlace(t testing.TB) place {
	t.Helper()
	p := place{t, t.TempDir()}
	t.Cleanup(func() {
		links, err := filepath.Glob("/proc/[0-9]*/cwd")
		if err != nil {
			t.Error(err)
		}
		for _, link := range links {
			if dir, err := os.Readlink(link); err != nil || dir != p.dir {
				continue // ended meanwhile, or elsewhere
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return p
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

// command returns the program with args, in the folder, on the store there.
func (p place) command(args ...string) *exec.Cmd {
	cmd := exec.Command("leasehold", args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LEASEHOLD_STORE=file:" + p.path("leases.db")}
	return cmd
}

// program is one that runs.
type program struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *lockedBuffer
	ended  chan struct{}
}

// start starts the program. It is killed when the test ends.
func (p place) start(args ...string) *program {
	p.t.Helper()
	return p.launch(p.command(args...))
}

func (p place) launch(cmd *exec.Cmd) *program {
	p.t.Helper()
	prog := &program{t: p.t, cmd: cmd, stderr: &lockedBuffer{}, ended: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = prog.stderr
	}
	cmd.WaitDelay = time.Second // what it leaves behind may have its pipes
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(prog.ended)
		_ = cmd.Wait()
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT)
		_ = cmd.Process.Kill()
		<-prog.ended
	})
	return prog
}

// code waits for the program's end and returns its exit code.
func (p *program) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patienceOfTests):
		p.t.Fatalf("the program goes on; standard error:\n%s", p.stderr)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// says waits until the program has said that on standard error: what it says goes through a pipe, which this process may read later
// than it sees what the program does next.
func (p *program) says(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !strings.Contains(p.stderr.String(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it never said %q; standard error:\n%s", text, p.stderr)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// eventually waits until ok says so.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patienceOfTests); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// content waits for a file that ends in a newline, and returns it without.
func (p place) content(name string) string {
	p.t.Helper()
	var text string
	eventually(p.t, name+" is written", func() bool {
		b, err := os.ReadFile(p.path(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.t.Fatal(err)
		}
		text = string(b)
		return strings.HasSuffix(text, "\n")
	})
	return strings.TrimSuffix(text, "\n")
}

// write makes an empty file.
func (p place) write(name string) {
	p.t.Helper()
	if err := os.WriteFile(p.path(name), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p place) read(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// must runs the program to its end, which has to be a good one.
func (p place) must(args ...string) {
	p.t.Helper()
	if out, err := p.command(args...).CombinedOutput(); err != nil {
		p.t.Fatalf("leasehold %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// pid waits for a file with a process number in it.
func (p place) pid(name string) int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.content(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// runs reports whether a process is there and not dead.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// childrenOf returns the processes whose parent is pid.
func childrenOf(t testing.TB, pid int) []int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child)
		}
	}
	return pids
}

// ticked waits for the first reading that a ticker writes.
func (p place) ticked(name string) {
	p.t.Helper()
	eventually(p.t, name+" ticks", func() bool {
		info, err := os.Stat(p.path(name))
		return err == nil && info.Size() >= 20
	})
}

// lastTick returns the last reading of the clock that a ticker, which is dead, has written.
func (p place) lastTick(name string) clock.Instant {
	p.t.Helper()
	b, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return clock.Instant(n)
}

// reader looks into the store while the programs can't.
type reader struct {
	t  testing.TB
	st *file.Store
}

func (p place) reader() reader {
	p.t.Helper()
	st, err := file.Open(p.t.Context(), p.path("leases.db"), file.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = st.Close() })
	return reader{p.t, st}
}

// record returns the record of a name, and when it was last written at the latest.
func (r reader) record(name string) (store.Record, clock.Instant) {
	r.t.Helper()
	rec, err := store.Load(r.t.Context(), r.st, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec, clock.System().Now().Add(-rec.Age)
}

// validity is for how long a hold is valid after it was last written at the latest.
func validity(rec store.Record) time.Duration { return rec.TTL - rec.TTL/5 }

// cutOff takes the lock of the store's file, as a process does that is stopped in the middle of a write, so that no other
// process can write until the function that it returns is called.
func (p place) cutOff() (restore func()) {
	p.t.Helper()
	f, err := os.OpenFile(p.path("leases.db.lock"), os.O_RDWR, 0)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		p.t.Fatal(err)
	}
	restore = sync.OnceFunc(func() { _ = f.Close() })
	p.t.Cleanup(restore)
	return restore
}

// pause stops a program (SIGSTOP), but not while it has the lock of the store's file: until it went on, nobody else could write.
func (p place) pause(prog *program) {
	p.t.Helper()
	restore := p.cutOff()
	defer restore()
	prog.signal(syscall.SIGSTOP)
	eventually(p.t, "the program is stopped", func() bool { return stopped(p.t, prog.cmd.Process.Pid) })
}

// stopped reports whether all threads of a process are.
func stopped(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		if _, rest, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(rest, "T") && !strings.HasPrefix(rest, "t") { // t is under strace
			return false
		}
	}
	return len(threads) > 0
}

// postgresWithSchema starts PostgreSQL with the store's table in it.
func postgresWithSchema(t testing.TB) *servers.Server {
	t.Helper()
	srv := servers.Postgres(t)
	conn, err := pgx.Connect(t.Context(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	schema, err := postgres.Schema("")
	if err == nil {
		_, err = conn.Exec(t.Context(), schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	return srv
}
