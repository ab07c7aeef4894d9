//go:build unix && !solaris && !aix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// wayTo returns an error if a user who is neither root, nor this one, nor a member of the group can
// put another file in the place of the store: by moving away the file, or a folder above it, or a
// symbolic link that the path leads through. path is where named leads. The members may: they can
// write to the file.
func (g Group) wayTo(named, path string) error {
	for _, way := range []string{named, path} {
		if err := g.walk(way); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// walk looks at each folder on the way, and at what it leads to.
func (g Group) walk(path string) error {
	dir := string(filepath.Separator)
	rest := strings.Split(strings.Trim(filepath.Clean(path), dir), dir)
	links := 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			info, err = nil, nil
		}
		if err == nil {
			err = g.holds(dir, info)
		}
		if err != nil {
			return err
		}
		if info != nil && info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(filepath.Join(dir, name))
			if links++; err != nil || links > maxLinks {
				return fmt.Errorf("%s: the symbolic link leads nowhere: %w", filepath.Join(dir, name), err)
			}
			if filepath.IsAbs(target) {
				dir = string(filepath.Separator)
			}
			rest = append(strings.Split(target, string(filepath.Separator)), rest...)
			continue
		}
		dir = filepath.Join(dir, name)
	}
	return nil
}

// holds returns an error if a user who isn't trusted can rename or remove the entry of dir.
func (g Group) holds(dir string, entry os.FileInfo) error {
	info, err := os.Stat(dir)
	if err != nil {
		return denied(dir, err)
	}
	what := fmt.Sprintf("%s is %s, of user %s and group %s", dir, describe(info.Mode()), userName(ownerOf(info)), groupName(groupOf(info)))
	switch sticky := info.Mode()&fs.ModeSticky != 0; {
	case !g.trusts(ownerOf(info)):
		return fmt.Errorf("%s: that user could put another store in the place of this one: use a folder below those of root, or as root run: chown root %s", what, dir)
	case sticky && (entry == nil || g.trusts(ownerOf(entry))):
		return nil // only the owners of the entry and of the folder can move it
	case sticky:
		return fmt.Errorf("%s: in it is %s, which user %s could move away, and put another store in its place: use another folder",
			what, entry.Name(), userName(ownerOf(entry)))
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("%s: every user could put another store in the place of this one: run chmod o-w %s, or use another folder", what, dir)
	case info.Mode().Perm()&0o020 != 0 && groupOf(info) != g.ID && groupOf(info) != 0:
		return fmt.Errorf("%s: members of that group could put another store in the place of this one: run chmod g-w %s, or use another folder", what, dir)
	}
	return nil
}

// trusts reports whether a user can do all that it wants to the store anyway: root, this user, and
// members of the group.
func (g Group) trusts(uid int) bool {
	return uid == 0 || uid == os.Geteuid() || belongs(uid, g.ID)
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}

func groupName(gid int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
		return g.Name
	}
	return strconv.Itoa(gid)
}

// denied adds to an error of a missing right what keeps this user from the file, and what to do.
func denied(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("make folder and file writable for this user: %w", err)
	}
	at := path
	info, failed := os.Stat(at)
	for failed != nil && at != filepath.Dir(at) { // the lowest that can be looked at
		at = filepath.Dir(at)
		info, failed = os.Stat(at)
	}
	if failed != nil {
		return fmt.Errorf("make folder and file writable for this user: %w", err)
	}
	gid := groupOf(info)
	fix := fmt.Sprintf("make it writable for this user, also to look at the store: its log is shared memory; "+
		"or have all its users share it: leasehold init file %s --group GROUP", path)
	if info.Mode().Perm()&0o020 != 0 && gid != 0 {
		group := groupName(gid)
		fix = fmt.Sprintf("as root, add the user to the group: usermod -aG %s %s", group, userName(os.Geteuid()))
		if belongs(os.Geteuid(), gid) && !joined(gid) {
			fix = fmt.Sprintf("the user has joined group %s since this session began: log in again, or use: newgrp %s", group, group)
		}
	}
	return fmt.Errorf("user %s has no right to use it: %s is %s, of user %s and group %s: %s: %w",
		userName(os.Geteuid()), at, describe(info.Mode()), userName(ownerOf(info)), groupName(gid), fix, err)
}

// joined reports whether this process has the group.
func joined(gid int) bool {
	groups, err := os.Getgroups()
	return err != nil || gid == os.Getegid() || slices.Contains(groups, gid)
}

// belongs reports whether the user is listed as a member.
func belongs(uid, gid int) bool {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return false
	}
	ids, err := u.GroupIds()
	return err == nil && slices.Contains(ids, strconv.Itoa(gid))
}
