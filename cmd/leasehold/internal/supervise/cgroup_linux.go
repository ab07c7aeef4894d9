package supervise

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroup is a control group (version 2) of one command. A nil one is none.
type cgroup struct {
	dir string
	f   *os.File // the folder, for the kernel to start the command in it
}

// newCgroup makes one inside this process's own, whose limits hold for it, too. It fails where that
// isn't allowed.
func newCgroup() (*cgroup, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(own, fmt.Sprintf("leasehold-run-%d-%s", os.Getpid(), rand.Text()[:6]))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	c := &cgroup{dir: dir}
	if _, err = os.Stat(filepath.Join(dir, "cgroup.kill")); err != nil {
		err = fmt.Errorf("the kernel is older than 5.14: %w", err)
	} else if err = unix.Access(filepath.Join(dir, "cgroup.kill"), unix.W_OK); err == nil {
		c.f, err = os.Open(dir)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// ownCgroup returns the folder of this process's control group.
func ownCgroup() (string, error) {
	lists, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	path, found := "", false
	for line := range strings.Lines(string(lists)) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			path, found = strings.TrimSuffix(p, "\n"), true
		}
	}
	if !found {
		return "", errors.New("this process is in no control group of version 2")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return underMount(string(mounts), path)
}

// underMount returns where path, of the cgroup hierarchy, is by a table of mounts as in
// /proc/self/mountinfo.
func underMount(mounts, path string) (string, error) {
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) < 1 || kind[0] != "cgroup2" {
			continue
		}
		root, at := unescaped(fields[3]), unescaped(fields[4])
		if rest, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rest) && !strings.HasPrefix(path, "/..") {
			return filepath.Join(at, rest), nil
		}
	}
	return "", fmt.Errorf("no mounted cgroup file system of version 2 has %s", path)
}

// unescaped returns a path as it is: in tables of mounts a blank is \040.
func unescaped(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}

// kill ends all that is in it, those that are forking included.
func (c *cgroup) kill() {
	if c != nil {
		killCgroup(c.dir)
	}
}

// killCgroup ends all that is in a control group and those inside it, and reports whether anything
// is left.
func killCgroup(dir string) (left bool) {
	if f, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0); err == nil {
		_, _ = f.WriteString("1") // what it has not done shows in what is left
		_ = f.Close()
	}
	return populated(dir)
}

// populated reports whether anything lives in a control group or inside it.
func populated(dir string) bool {
	events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENODEV)
	}
	return bytes.Contains(events, []byte("populated 1"))
}

func (c *cgroup) populated() bool { return c != nil && populated(c.dir) }

// signal sends sig to all that is in it and inside it, but for those that are left out.
func (c *cgroup) signal(sig unix.Signal, but func(pid int) bool) {
	if c == nil {
		return
	}
	for _, dir := range folders(c.dir) {
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // it has been removed
		}
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 && !but(pid) {
				signalIf(pid, sig, func() bool { return inCgroup(pid, dir) })
			}
		}
	}
}

// inCgroup reports whether a process is still in the control group at dir.
func inCgroup(pid int, dir string) bool {
	lists, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	name := "/" + filepath.Base(dir) + "\n"
	return err == nil && slices.ContainsFunc(slices.Collect(strings.Lines(string(lists))), func(line string) bool {
		return strings.HasPrefix(line, "0::") && strings.HasSuffix(line, name)
	})
}

// folders returns a folder and those inside it, each after what is inside it.
func folders(dir string) (all []string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	slices.Reverse(all)
	return all
}

// close gives it back, once nothing is left in it.
func (c *cgroup) close() {
	if c == nil {
		return
	}
	if c.f != nil {
		_ = c.f.Close()
	}
	removeCgroup(c.dir)
}

// removeCgroup removes a control group in which nothing lives, and those inside it.
func removeCgroup(dir string) {
	for _, dir := range folders(dir) {
		_ = unix.Rmdir(dir)
	}
}

// startIn has the kernel start a process in the control group.
func (c *cgroup) startIn(attr *unix.SysProcAttr) {
	if c != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.f.Fd())
	}
}
