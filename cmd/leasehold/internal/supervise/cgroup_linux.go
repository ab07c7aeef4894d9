package supervise

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
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
		leaseguard.KillCgroup(c.dir)
	}
}

func (c *cgroup) populated() bool { return c != nil && leaseguard.Populated(c.dir) }

// signal sends sig to all that is in it and inside it, but for those that are left out.
func (c *cgroup) signal(sig unix.Signal, but func(pid int) bool) {
	if c == nil {
		return
	}
	for _, dir := range leaseguard.Folders(c.dir) {
		list, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // it has been removed
		}
		for _, field := range strings.Fields(string(list)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 && !but(pid) {
				leaseguard.SignalIf(pid, sig, func() bool { return inCgroup(pid, dir) })
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

// close gives it back, once nothing is left in it.
func (c *cgroup) close() {
	if c == nil {
		return
	}
	if c.f != nil {
		_ = c.f.Close()
	}
	leaseguard.RemoveCgroup(c.dir)
}

// startIn has the kernel start a process in the control group.
func (c *cgroup) startIn(attr *unix.SysProcAttr) {
	if c != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.f.Fd())
	}
}
