package open

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

// The parameters of a file's URL.
const (
	paramGroup = "group" // the users who share it
	paramMode  = "mode"  // of its files: 0660 or 0664
)

// splitFile takes the parameters off a path. A path may have a question mark in it: what follows
// one is a list of parameters only if it begins as one does.
func splitFile(rest string) (path, query string, found bool) {
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

// parseFile completes the path. The parameters stay as they are.
func parseFile(rest string) (string, error) {
	path, query, found := splitFile(rest)
	path, err := filePath(path)
	if err != nil || !found {
		return path, err
	}
	if _, _, err := fileParams(query); err != nil {
		return "", err
	}
	return path + "?" + query, nil
}

// fileParams reads the parameters: a group by name or number, and a mode.
func fileParams(query string) (group string, mode fs.FileMode, err error) {
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

// FileGroup returns the path of a store in a file and the group of users who share it; nil for
// none. It looks the group up. Its errors name the group and the fix.
func (u URL) FileGroup() (path string, g *file.Group, err error) {
	if u.Scheme.Name != "file" {
		return "", nil, fmt.Errorf("%s: is not a file: want file:PATH", Redact(u.String()))
	}
	path, query, found := splitFile(u.Rest)
	if !found {
		return path, nil, nil
	}
	name, mode, err := fileParams(query)
	if err != nil {
		return "", nil, err
	}
	id, err := groupID(name)
	if err != nil {
		return "", nil, err
	}
	return path, &file.Group{ID: id, Mode: mode}, nil
}

func groupID(name string) (int, error) {
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

func filePath(rest string) (string, error) {
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

func openFile(ctx context.Context, rest string, opts Options) (store.Store, error) {
	path, group, err := URL{Scheme: Scheme{Name: "file"}, Rest: rest}.FileGroup()
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && !opts.CreateDir && group == nil {
		return nil, fmt.Errorf("%s: the folder %s doesn't exist: make it with mkdir -p %s, or is the path right?", path, dir, quoted(dir))
	}
	if opts.MustExist && group == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: there is no such file: `leasehold run` makes it when it first holds a name; is the path right?", path)
		}
	}
	st, err := file.Open(ctx, path, file.Options{CreateDir: opts.CreateDir, Group: group})
	if err != nil {
		return nil, err // a nil *file.Store would make a store that isn't nil
	}
	return st, nil
}

// quoted returns a path as a shell reads it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
