package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// lacking skips a test for want of something, or fails it where everything has to be tried.
func lacking(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
		t.Fatal("required, but missing: " + what)
	}
	t.Skip("not tried here: " + what)
}

func init() { helpers["write"] = writeHelper }

// writeHelper raises the tokens of N keys, each in a goroutine, until its input ends, and reports each outcome in a line:
// what came of it, the key and the token.
func writeHelper() error {
	ctx := untilTold()
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return err
	}
	fmt.Println("ready", os.Getpid())
	var group sync.WaitGroup
	for i := range args().N {
		group.Go(func() {
			key := fmt.Sprint("key", i)
			for ctx.Err() == nil {
				rec, err := store.Load(context.Background(), s, key)
				if err == nil {
					rec.Token++
					_, err = s.Put(context.Background(), rec)
				}
				switch {
				case err == nil:
					fmt.Println("ok", key, rec.Token)
				case errors.Is(err, store.ErrUnknownOutcome):
					fmt.Println("unknown", key, rec.Token, err)
				default:
					fmt.Println("failed", key, rec.Token, err)
				}
			}
		})
	}
	group.Wait()
	return s.Close()
}

// ready waits for a writeHelper to have opened the store, and returns its process, which isn't p where a tool stands between.
func ready(t testing.TB, p *process) *os.Process {
	t.Helper()
	var pid int
	if _, err := fmt.Fscanf(p.out, "ready %d\n", &pid); err != nil {
		return nil
	}
	writer, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Kill() })
	return writer
}

// outcomes are what a writeHelper reported.
type outcomes struct {
	acknowledged map[string]fence.Token
	attempted    map[string]fence.Token // the outcome told, or not
	lines        map[string][]string    // by outcome
}

// follow reads what p writes until its writer is dead, and kills that at the kill'th report, or when there was one of the outcome until
// if that is later: strace counts calls by thread, and which thread makes them is the scheduler's choice.
func (o *outcomes) follow(t testing.TB, p *process, writer *os.Process, kill int, until string) {
	t.Helper()
	const most = 30_000
	for n, killed := 0, false; writer != nil; n++ {
		line, err := p.out.ReadString('\n')
		if err != nil { // a line that was cut off was not acknowledged
			break
		}
		var outcome, key string
		var token fence.Token
		if _, err := fmt.Sscan(line, &outcome, &key, &token); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		o.lines[outcome] = append(o.lines[outcome], line)
		if outcome == "ok" {
			o.acknowledged[key] = token
		}
		o.attempted[key] = max(token, o.attempted[key]) // 0 where it couldn't be read
		if !killed && n >= kill && (o.lines[until] != nil || n >= most) {
			killed = true
			_ = writer.Kill()
		}
	}
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
}

func newOutcomes() *outcomes {
	return &outcomes{map[string]fence.Token{}, map[string]fence.Token{}, map[string][]string{}}
}

// check opens the file anew and sees that every acknowledged write is there, and none that wasn't asked for.
func (o *outcomes) check(t testing.TB, path string) {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal("after the fault:", err)
	}
	defer s.Close()
	for key, token := range o.acknowledged {
		rec, err := s.Get(t.Context(), key)
		if err != nil || rec.Token < token {
			t.Errorf("%s: token %d, %v; %d was acknowledged", key, rec.Token, err, token)
		}
		// The process may have died with one more under way.
		if rec.Token > o.attempted[key]+1 {
			t.Errorf("%s: token %d; %d was the last told", key, rec.Token, o.attempted[key])
		}
		o.acknowledged[key], o.attempted[key] = rec.Token, rec.Token // what was seen stays
	}
	mustPut(t, s, held(fmt.Sprintf("after %d", time.Now().UnixNano()), 1))
}

// A process that is killed at any instant leaves a file that opens, with all that it was told is done.
func TestKilled(t *testing.T) {
	path := testPath(t)
	o := newOutcomes()
	for range 10 {
		p := start(t, "write", helperArgs{Path: path, N: 4})
		o.follow(t, p, ready(t, p), rand.IntN(400), "ok")
		o.check(t, path)
	}
}

// strace starts a writeHelper with a fault injected into its system calls.
func strace(t testing.TB, path string, inject string) *process {
	t.Helper()
	tool, err := exec.LookPath("strace")
	if err != nil {
		lacking(t, "strace")
	}
	call, _, _ := strings.Cut(inject, ":")
	return start(t, "write", helperArgs{Path: path, N: 2}, tool, "-f", "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", "inject="+inject)
}

// A process that is killed in the middle of a transaction, of a checkpoint or of opening leaves a file that opens.
func TestKilledAtSystemCall(t *testing.T) {
	for _, call := range []string{"pwrite64", "fsync", "ftruncate", "flock"} {
		for _, when := range []int{1, 2, 3, 5, 8, 13, 40, 41, 200} {
			t.Run(fmt.Sprintf("%s=%d", call, when), func(t *testing.T) {
				t.Parallel()
				path := testPath(t)
				p := strace(t, path, fmt.Sprintf("%s:signal=KILL:when=%d", call, when))
				o := newOutcomes()
				o.follow(t, p, ready(t, p), 300, "ok") // it may die in Open, or not before that many writes
				o.check(t, path)
			})
		}
	}
}

// After a sync that failed, the outcome is unknown: the write may be found after a crash. It is never told as not done.
func TestSyncFails(t *testing.T) {
	path := testPath(t)
	p := strace(t, path, "fsync:error=EIO:when=20+7")
	o := newOutcomes()
	o.follow(t, p, ready(t, p), 300, "unknown")
	if len(o.lines["unknown"]) == 0 || len(o.lines["ok"]) == 0 {
		t.Errorf("outcomes %v: want unknown and ok ones", o.lines)
	}
	for _, line := range o.lines["failed"] {
		t.Errorf("a failed sync was told as not done: %s", line)
	}
	for _, line := range o.lines["unknown"] {
		if !strings.Contains(line, "I/O error") {
			t.Errorf("unknown, but why: %s", line)
		}
	}
	o.check(t, path)
}

// A write that failed before the commit is not done.
func TestWriteFails(t *testing.T) {
	path := testPath(t)
	p := strace(t, path, "pwrite64:error=ENOSPC:when=60+9")
	o := newOutcomes()
	o.follow(t, p, ready(t, p), 300, "failed")
	if len(o.lines["failed"]) == 0 || len(o.lines["ok"]) == 0 || len(o.lines["unknown"]) > 0 {
		t.Errorf("outcomes %v: want failed and ok ones", o.lines)
	}
	for _, line := range o.lines["failed"] {
		if !strings.Contains(line, "the disk is full") {
			t.Errorf("not clear: %s", line)
		}
	}
	o.check(t, path)
}

// Where file locks are missing, or do nothing, the file isn't opened.
func TestNoLocks(t *testing.T) {
	for inject, want := range map[string]string{
		"flock:error=ENOLCK": "no file locks",
		"flock:retval=0":     "doesn't keep locks",
	} {
		p := strace(t, testPath(t), inject)
		_ = p.in.Close() // it ends, if it did open
		_, _ = io.Copy(io.Discard, p.out)
		if err := p.cmd.Wait(); err == nil || !strings.Contains(p.err.String(), want) {
			t.Errorf("%s: %v: %s", inject, err, p.err.String())
		}
	}
}

// mount mounts a file system on a new folder, until the end of the test.
func mount(t testing.TB, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	mountOn(t, dir, args...)
	return dir
}

func mountOn(t testing.TB, path string, args ...string) {
	t.Helper()
	if out, err := exec.Command("mount", append(args, path)...).CombinedOutput(); err != nil {
		lacking(t, "the right to mount: "+strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
}

// A full disk is told, loses nothing, and is over when there is space again.
func TestFullDisk(t *testing.T) {
	dir := mount(t, "-t", "tmpfs", "-o", "size=1m", "tmpfs")
	path := filepath.Join(dir, "store.db")
	s := testOpen(t, path)
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	_, _ = io.Copy(filler, zeros{}) // until it is full
	stored := map[string]store.Record{}
	var full error
	for i := 0; ; i++ {
		rec, err := s.Put(t.Context(), held(fmt.Sprint("key", i), 1))
		if err != nil {
			full = err
			break
		}
		stored[rec.Key] = rec
	}
	if !strings.Contains(full.Error(), "the disk is full") || errors.Is(full, store.ErrUnknownOutcome) {
		t.Errorf("Put: %v", full)
	}
	verify := func() {
		t.Helper()
		for key, want := range stored {
			if got, err := s.Get(t.Context(), key); err != nil || got.Version != want.Version {
				t.Errorf("%s: %q, %v; want %q", key, got.Version, err, want.Version)
			}
		}
	}
	verify()
	if err := filler.Truncate(0); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rec := mustPut(t, s, held(fmt.Sprint("space again", i), 1))
		stored[rec.Key] = rec
	}
	verify()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = testOpen(t, path)
	verify()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A full disk in the way of Open is told too, and what it left is no obstacle.
func TestOpenOnFullDisk(t *testing.T) {
	dir := mount(t, "-t", "tmpfs", "-o", "size=64k", "tmpfs")
	path := filepath.Join(dir, "store.db")
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	_, _ = io.Copy(filler, zeros{})
	if s, err := Open(t.Context(), path, Options{}); err == nil {
		t.Fatal("opened; Close:", s.Close())
	} else if !strings.Contains(err.Error(), "full") && !strings.Contains(err.Error(), "free space") {
		t.Errorf("Open: %v", err)
	}
	if err := filler.Truncate(0); err != nil {
		t.Fatal(err)
	}
	mustPut(t, testOpen(t, path), held("k", 1))
}

func TestReadOnly(t *testing.T) {
	path := testPath(t)
	filled(t, path)
	dir := mount(t, "--bind", filepath.Dir(path))
	remount := func(path string) {
		if out, err := exec.Command("mount", "-o", "remount,bind,ro", path).CombinedOutput(); err != nil {
			lacking(t, "the right to mount: "+string(out))
		}
	}
	remount(dir)
	file := filepath.Join(t.TempDir(), "file.db")
	filled(t, file)
	mountOn(t, file, "--bind", file)
	remount(file)
	for name, path := range map[string]string{
		"folder": filepath.Join(dir, "store.db"), "folder, new file": filepath.Join(dir, "new.db"), "file": file,
	} {
		if s, err := Open(t.Context(), path, Options{}); err == nil {
			t.Fatalf("%s: opened; Close: %v", name, s.Close())
		} else if !strings.Contains(err.Error(), map[bool]string{true: "mounted by itself", false: "writable for this user"}[name == "file"]) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file system that turns read-only under a store that is open, as ext4 does after an error: reads go on, writes say so.
func TestTurnedReadOnly(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(image)
	if err == nil {
		err = errors.Join(f.Truncate(16<<20), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", image).CombinedOutput(); err != nil {
		lacking(t, "mkfs.ext4: "+string(out))
	}
	dir := mount(t, "-o", "loop", image)
	path := filepath.Join(dir, "store.db")
	s := testOpen(t, path)
	rec := mustPut(t, s, held("k", 1))
	if out, err := exec.Command("mount", "-o", "remount,abort", dir).CombinedOutput(); err != nil {
		lacking(t, "remount,abort: "+string(out))
	}
	_, err = s.Put(t.Context(), rec)
	if err == nil || (!strings.Contains(err.Error(), "I/O error") && !strings.Contains(err.Error(), "read-only")) {
		t.Errorf("Put: %v", err)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("Get: %q, %v", got.Version, err)
	}
}

// Processes in another time namespace have another clock, so nothing is said about the age of what they wrote.
func TestTimeNamespace(t *testing.T) {
	path := testPath(t)
	s := testOpen(t, path)
	for _, offset := range []string{"100000", "-30"} {
		space := []string{"unshare", "--time", "--boottime", offset, "--fork"}
		if out, err := exec.Command(space[0], append(space[1:], "true")...).CombinedOutput(); err != nil {
			lacking(t, "time namespaces: "+string(out))
		}
		start(t, "count", helperArgs{Path: path, Key: offset, N: 1}, space...).stop(t)
		if rec, err := s.Get(t.Context(), offset); err != nil || rec.Age != 0 {
			t.Errorf("offset %s: age %v, %v; want 0", offset, rec.Age, err)
		}
	}
	mustPut(t, s, held("mine", 1))
	time.Sleep(time.Millisecond)
	if got, err := s.Get(t.Context(), "mine"); err != nil || got.Age <= 0 {
		t.Errorf("age %v, %v", got.Age, err)
	}
}
