package file

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The users of these tests, who need no entry in the lists of users.
const (
	firstMember  = 63001
	secondMember = 63002
	stranger     = 63003
	sharedGroup  = 64001
	otherGroup   = 64002
)

func init() { helpers["user"] = userHelper }

// asRoot skips the test unless it can be several users.
func asRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: this test runs processes as several users")
	}
}

// publicDir returns a folder that every user can reach. A folder of the test's own is below one that others can't enter.
func publicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "leasehold-group-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// userHelper carries out calls of another user, whose umask keeps everybody else out.
func userHelper() error {
	syscall.Umask(0o077)
	next := told()
	var opts Options
	if gid := args().N; gid != 0 {
		opts.Group = &Group{ID: gid}
	}
	s, err := Open(context.Background(), args().Path, opts)
	if err != nil {
		fmt.Println("refused:", strings.ReplaceAll(err.Error(), "\n", " "))
		return nil
	}
	withoutNet(s)
	fmt.Println("open")
	for {
		what, ok := next()
		if !ok {
			return s.Close()
		}
		verb, key, _ := strings.Cut(what, " ")
		rec, err := store.Load(context.Background(), s, key)
		switch {
		case err != nil:
		case verb == "put":
			_, err = s.Put(context.Background(), store.Record{Key: key, Version: rec.Version, Owner: "holder", Token: rec.Token + 1, TTL: 60e9})
		case verb == "own":
			_, err = s.PutOwn(context.Background(), store.Record{Key: key, Version: rec.Version, Owner: "holder", Token: rec.Token + 1, TTL: 60e9})
		case verb == "gone":
			fmt.Println(rec.Age == store.AgeGone)
			continue
		case verb == "wait":
			go func() {
				for n := 0; n == 0; time.Sleep(time.Millisecond) {
					s.waiters.mu.Lock()
					n = s.waiters.count
					s.waiters.mu.Unlock()
				}
				fmt.Println("waiting")
			}()
			_, err = s.Wait(context.Background(), key, rec.Version)
		}
		fmt.Println("done", err)
	}
}

// as starts this test's program as another user.
func as(t testing.TB, uid, gid int, dir string, a helperArgs) *process {
	t.Helper()
	exe := filepath.Join(dir, "helper")
	if _, err := os.Stat(exe); err != nil { // the program of a test is in a folder of root's
		from, err := os.Open("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		to, err := os.OpenFile(exe, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(to, from); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(exe)}
	p.cmd.Dir = "/"
	p.cmd.Env = []string{helperEnv + "=user", argsEnv + "=" + string(packed)}
	p.cmd.Stderr = &p.err
	credential := &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	if gid != 0 {
		credential.Groups = []uint32{uint32(gid)}
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
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

// says fails the test unless the next line of the helper is want.
func (p *process) says(t testing.TB, want string) {
	t.Helper()
	if got := p.line(t); got != want {
		t.Fatalf("the helper says %q, want %q", got, want)
	}
}

// sharedByAll fails the test if a file of the store isn't as each member needs it.
func sharedByAll(t testing.TB, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		want := fs.FileMode(0o660)
		if info.IsDir() {
			want = 0o770 | fs.ModeSetgid
		}
		if got := info.Mode() & (fs.ModePerm | fs.ModeSetgid); got != want || groupOf(info) != sharedGroup {
			t.Errorf("%s: %v of group %d, want %v of group %d", path, got, groupOf(info), want, sharedGroup)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// To a group that the URL names the file is to be writable: what doctor advises must not keep the members out.
func TestInspectOfASharedFile(t *testing.T) {
	asRoot(t)
	path := filepath.Join(publicDir(t), "shared", "leases.db")
	if err := Create(t.Context(), path, Group{ID: sharedGroup}); err != nil {
		t.Fatal(err)
	}
	look := func(g *Group) driver.Finding {
		t.Helper()
		s, err := Open(t.Context(), path, Options{Group: g})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.inspectFile()[0]
	}
	if f := look(&Group{ID: sharedGroup}); f.Status != driver.StatusOK || f.Advice != "" || !strings.Contains(f.Detail, "-rw-rw----") {
		t.Errorf("as the group's: %+v", f)
	}
	if f := look(nil); f.Status != driver.StatusWarn || !strings.Contains(f.Advice, "add ?group=GROUP") {
		t.Errorf("without the group: %+v", f)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if f := look(nil); f.Status != driver.StatusWarn || !strings.HasSuffix(f.Advice, "chmod o-w") {
		t.Errorf("for everybody: %+v", f)
	}
}

// Two users whose umasks keep everybody out share a store that root made. What either makes later, the other can use, and each
// wakes the other.
func TestGroupSharesAStore(t *testing.T) {
	asRoot(t)
	base := publicDir(t)
	dir := filepath.Join(base, "shared")
	path := filepath.Join(dir, "leases.db")
	old := syscall.Umask(0o077)
	err := Create(t.Context(), path, Group{ID: sharedGroup})
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	sharedByAll(t, dir)
	round := func(a, b *process, key string) {
		a.says(t, "open")
		b.says(t, "open")
		a.tell(t, "put "+key)
		a.says(t, "done <nil>")
		b.tell(t, "wait "+key)
		b.says(t, "waiting")
		a.tell(t, "put "+key)
		a.says(t, "done <nil>")
		b.says(t, "done <nil>")
		b.tell(t, "own "+key)
		b.says(t, "done <nil>")
		sharedByAll(t, dir)
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
		a.tell(t, "gone "+key)
		a.says(t, "true")
		a.stop(t)
	}
	user := func(uid int) *process { return as(t, uid, sharedGroup, base, helperArgs{Path: path, N: sharedGroup}) }
	round(user(firstMember), user(secondMember), "k")
	round(user(secondMember), user(firstMember), "k")
	for _, suffix := range []string{"-wal", "-shm", ".lock", wakeSuffix} { // what a member makes who comes first
		if err := os.RemoveAll(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	first := user(firstMember)
	first.says(t, "open")
	sharedByAll(t, dir)
	second := as(t, secondMember, sharedGroup, base, helperArgs{Path: path}) // who doesn't name the group makes the files no other's
	second.says(t, "open")
	second.tell(t, "put k")
	second.says(t, "done <nil>")
	sharedByAll(t, dir)
	first.stop(t)
	second.stop(t)

	for _, suffix := range []string{"-wal", "-shm", ".lock", wakeSuffix} { // and root, who has the right to everything
		if err := os.RemoveAll(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	old = syscall.Umask(0o077)
	s, err := Open(t.Context(), path, Options{Group: &Group{ID: sharedGroup}})
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, held("r", 1))
	sharedByAll(t, dir)
	round(user(firstMember), user(secondMember), "r2")
	if err := s.Close(); err != nil {
		t.Error(err)
	}

	for _, opts := range []int{0, sharedGroup} { // also to look at it
		refused := as(t, stranger, 0, base, helperArgs{Path: path, N: opts}).line(t)
		for _, part := range []string{"refused: ", dir + " is d", "rwxrws---", "group 64001", "usermod -aG 64001 63003", "permission denied"} {
			if !strings.Contains(refused, part) {
				t.Errorf("a stranger is told %q, without %q", refused, part)
			}
		}
	}
}

// A store of before, of one user, becomes that of a group.
func TestGroupTakesOver(t *testing.T) {
	asRoot(t)
	base := publicDir(t)
	dir := filepath.Join(base, "shared")
	path := filepath.Join(dir, "leases.db")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	before := testOpen(t, path)
	mustPut(t, before, held("k", 1))
	if err := Create(t.Context(), path, Group{ID: sharedGroup}); err != nil {
		t.Fatal(err)
	}
	sharedByAll(t, dir)
	p := as(t, firstMember, sharedGroup, base, helperArgs{Path: path, N: sharedGroup})
	p.says(t, "open")
	p.tell(t, "put k")
	p.says(t, "done <nil>")
	p.stop(t)
	if rec, err := before.Get(t.Context(), "k"); err != nil || rec.Token != 2 {
		t.Errorf("who had it open sees %+v, %v", rec, err)
	}
}

// Who could put another store in the place of this one makes Open refuse it, and so does what keeps a member out.
func TestGroupRefuses(t *testing.T) {
	asRoot(t)
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, base, dir, path string) (open string)
		want []string // of the error; none if it opens
	}{
		{"as it was made", func(_ *testing.T, _, _, path string) string { return path }, nil},
		{"a folder above is everybody's", func(t *testing.T, base, _, path string) string {
			must(t, os.Chmod(base, 0o777))
			return path
		}, []string{"every user could put another store", "drwxrwxrwx", "chmod o-w "}},
		{"a folder above is everybody's, and sticky", func(t *testing.T, base, _, path string) string {
			must(t, os.Chmod(base, 0o777|fs.ModeSticky))
			return path
		}, nil},
		{"a sticky folder in which the store's folder is a stranger's", func(t *testing.T, base, dir, path string) string {
			must(t, os.Chmod(base, 0o777|fs.ModeSticky))
			must(t, os.Chown(dir, stranger, sharedGroup))
			must(t, os.Chmod(dir, 0o770|fs.ModeSetgid))
			return path
		}, []string{"user 63003 could move away"}},
		{"a folder above is a stranger's", func(t *testing.T, base, dir, _ string) string {
			theirs := filepath.Join(base, "theirs")
			must(t, os.Mkdir(theirs, 0o755))
			must(t, os.Chown(theirs, stranger, 0))
			must(t, os.Rename(dir, filepath.Join(theirs, "shared")))
			return filepath.Join(theirs, "shared", "leases.db")
		}, []string{"of user 63003", "chown root "}},
		{"a folder above is another group's", func(t *testing.T, base, _, path string) string {
			must(t, os.Chown(base, 0, otherGroup))
			must(t, os.Chmod(base, 0o775))
			return path
		}, []string{"members of that group", "chmod g-w "}},
		{"the path leads through a link that a stranger can replace", func(t *testing.T, base, dir, _ string) string {
			open := filepath.Join(base, "open")
			must(t, os.Mkdir(open, 0o700))
			must(t, os.Chmod(open, 0o777))
			must(t, os.Symlink(dir, filepath.Join(open, "link")))
			return filepath.Join(open, "link", "leases.db")
		}, []string{"/open is ", "every user could"}},
		{"the path leads through a link to such a link", func(t *testing.T, base, dir, _ string) string {
			open := filepath.Join(base, "open")
			must(t, os.Mkdir(open, 0o700))
			must(t, os.Chmod(open, 0o777))
			must(t, os.Symlink(dir, filepath.Join(open, "second")))
			must(t, os.Symlink("open/second", filepath.Join(base, "first")))
			return filepath.Join(base, "first", "leases.db")
		}, []string{"/open is ", "every user could"}},
		{"the store's folder is everybody's", func(t *testing.T, _, dir, path string) string {
			must(t, os.Chmod(dir, 0o777|fs.ModeSetgid))
			return path
		}, []string{"every user could"}},
		{"the folder doesn't pass its group on", func(t *testing.T, _, dir, path string) string {
			must(t, os.Chmod(dir, 0o770))
			return path
		}, []string{"drwxrwx---", "leasehold init file "}},
		{"a file is its owner's alone", func(t *testing.T, _, _, path string) string {
			must(t, os.Chmod(path+"-wal", 0o600))
			return path
		}, []string{"-wal is -rw-------", "--group 64001 --mode 0660"}},
		{"a file is another group's", func(t *testing.T, _, _, path string) string {
			must(t, os.Chown(path, -1, otherGroup))
			return path
		}, []string{"of group 64002, want", "leasehold init file "}},
		{"there is none", func(_ *testing.T, _, dir, _ string) string {
			return filepath.Join(dir, "other.db")
		}, []string{"there is no such store", "leasehold init file "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := publicDir(t)
			dir := filepath.Join(base, "shared")
			path := filepath.Join(dir, "leases.db")
			must(t, Create(t.Context(), path, Group{ID: sharedGroup}))
			s, err := Open(t.Context(), c.make(t, base, dir, path), Options{Group: &Group{ID: sharedGroup}})
			if err == nil {
				must(t, s.Close())
			}
			if (err == nil) != (c.want == nil) {
				t.Fatalf("%v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v: without %q", err, part)
				}
			}
		})
	}
}

func TestCreateRefuses(t *testing.T) {
	asRoot(t)
	base := publicDir(t)
	if err := os.WriteFile(filepath.Join(base, "theirs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Mkdir(filepath.Join(base, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		g    Group
		want string
	}{
		{filepath.Join(base, "leases.db"), Group{ID: sharedGroup}, "name a folder of its own, as " + base + "/leasehold/leases.db"},
		{filepath.Join(base, "d", "leases.db"), Group{ID: sharedGroup, Mode: 0o666}, "mode 0666: want 0660, or 0664"},
		{filepath.Join(base, "d", "leases.db"), Group{ID: sharedGroup, Mode: 0o640}, "mode 0640: want 0660, or 0664"},
		{filepath.Join(base, "d", "leases.db"), Group{ID: -1}, "want the number of a group"},
		{filepath.Join(link, "x", "leases.db"), Group{ID: sharedGroup}, "every user could"},
	} {
		if c.want == "every user could" {
			if err := os.Mkdir(link, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(link, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := Create(t.Context(), c.path, c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.path, c.g, err, c.want)
		}
		if _, err := os.Stat(c.path); err == nil {
			t.Errorf("%s was made", c.path)
		}
	}
	if info, err := os.Stat(base); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a folder with files of others: %v, %v", info, err)
	}
}
