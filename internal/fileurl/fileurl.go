// Package fileurl reads URLs of stores in a file, and knows where the default one is. It links no
// engine, so that a program can do that before the engines are initialised.
package fileurl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// The parameters of a file's URL.
const (
	paramGroup = "group" // the users who share it
	paramMode  = "mode"  // of its files: 0660 or 0664
)

// Target is what a URL says.
type Target struct {
	Path  string
	Group string      // the users who share the file, by name or number; "" for none
	Mode  fs.FileMode // of its files; 0 for the default
}

// Read reads what follows the scheme, as [Parse] has made it complete.
func Read(rest string) (t Target, err error) {
	path, query, found := split(rest)
	t.Path = path
	if found {
		t.Group, t.Mode, err = params(query)
	}
	return t, err
}

// Parse makes the path of a URL complete. The parameters stay as they are.
func Parse(rest string) (string, error) {
	path, query, found := split(rest)
	path, err := complete(path)
	if err != nil || !found {
		return path, err
	}
	if _, _, err := params(query); err != nil {
		return "", err
	}
	return path + "?" + query, nil
}

// GroupID looks the group up. Its error names the fix.
func (t Target) GroupID() (int, error) {
	name := t.Group
	g, err := user.LookupGroup(name)
	if err == nil {
		name = g.Gid
	}
	id, failed := strconv.ParseUint(name, 10, 31)
	if failed != nil {
		return 0, fmt.Errorf("group %q: there is none of that name: make it, as root: groupadd %s", name, name)
	}
	return int(id), nil
}

// Missing returns an error where the folder is missing and is not to be made, or the file is and
// has to be there. A file that a group shares is looked at by its engine.
func (t Target) Missing(makeDir, mustExist bool) error {
	if t.Group != "" {
		return nil
	}
	dir := filepath.Dir(t.Path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !makeDir {
		return fmt.Errorf("%s: the folder %s doesn't exist: make it with mkdir -p %s, or is the path right?", t.Path, dir, quoted(dir))
	}
	if mustExist {
		if _, err := os.Stat(t.Path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: there is no such file: `leasehold run` makes it when it first holds a name; is the path right?", t.Path)
		}
	}
	return nil
}

// split takes the parameters off a path. A path may have a question mark in it: what follows
// one is a list of parameters only if it begins as one does.
func split(rest string) (path, query string, found bool) {
	i := strings.LastIndexByte(rest, '?')
	if i < 0 {
		return rest, "", false
	}
	name, _, isParam := strings.Cut(rest[i+1:], "=")
	if !isParam || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return rest, "", false
	}
	return rest[:i], rest[i+1:], true
}

// params reads the parameters: a group by name or number, and a mode.
func params(query string) (group string, mode fs.FileMode, err error) {
	for param := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(param, "=")
		switch name {
		case paramGroup:
			if group = value; value == "" {
				return "", 0, errors.New(`group "": want the name of a group, or its number`)
			}
		case paramMode:
			n, err := strconv.ParseUint(value, 8, 32)
			if mode = fs.FileMode(n); err != nil || mode != 0o660 && mode != 0o664 {
				return "", 0, fmt.Errorf("mode %q: want 0660, or 0664 with which other users can read the files", value)
			}
		default:
			return "", 0, fmt.Errorf("parameter %q: a file has %s and %s", name, paramGroup, paramMode)
		}
	}
	if group == "" {
		return "", 0, errors.New("mode without a group: add group=GROUP, whose members share the file, or leave the mode out")
	}
	return group, mode, nil
}

func complete(rest string) (string, error) {
	path, abs := strings.CutPrefix(rest, "//")
	if abs && !strings.HasPrefix(path, "/") {
		return "", errors.New("want file:PATH, or file:///PATH with three slashes: a file on another machine can't be a store")
	}
	if path == "" || strings.HasSuffix(path, "/") {
		return "", errors.New(`want the name of a file after "file:"`)
	}
	if home, ok := strings.CutPrefix(path, "~/"); ok { // a shell doesn't expand it there
		dir, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("~ can't be expanded: %w", err)
		}
		path = filepath.Join(dir, home)
	}
	return filepath.Abs(filepath.FromSlash(path))
}

// quoted returns a path as a shell reads it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// StateDir returns Leasehold's folder in the user's state directory on a system.
func StateDir(goos string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) && goos != "windows" {
		return filepath.Join(dir, "leasehold"), nil
	}
	if goos == "windows" {
		dir, err := os.UserCacheDir() // %LocalAppData%
		return filepath.Join(dir, "leasehold"), err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("the home directory %q is no absolute path", home)
	}
	if goos == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "leasehold"), nil
	}
	return filepath.Join(home, ".local", "state", "leasehold"), nil
}

// Default returns what follows the scheme in the URL of the store in the user's state directory.
func Default() (string, error) {
	dir, err := StateDir(runtime.GOOS)
	if err != nil {
		return "", fmt.Errorf("no place for the default store (%w): name one with --store file:PATH", err)
	}
	return filepath.Join(dir, "leases.db"), nil
}
