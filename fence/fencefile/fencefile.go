// Package fencefile guards a file: it is appended to, or replaced, by the current holder of a lease
// only. Any number of processes of one machine may try; a request of an earlier term, or of another
// holder of the same term, is refused.
//
//	f := fencefile.New("/var/lib/app/ledger.log", "ledger")
//	err := f.Append(ctx, l.Sequencer(), []byte("…\n"))
//
// The mark is kept beside the file, in PATH.fence, and is on disk before the first write of its
// term. Checking and writing are done under a lock, PATH.lock, so no other request comes in
// between. PATH is the file's own: symbolic links are followed first, so that a file has one mark
// by whatever link it is reached. A file with hard links is refused, since each would have a mark
// of its own. Who moves the file has to move its mark along. A single file that is mounted
// elsewhere, as into a container, must not be guarded there: mount its folder.
//
// The file is the resource here. To keep the marks of a guard of anything else in a file, see
// package filemarks.
//
// What writes to the file without this package is not guarded. It needs a local file system, and
// flock: on Windows and a few others every call fails.
package fencefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/filemarks"
)

// File is a guarded file. It holds nothing open between calls, and its methods may be called from
// any goroutine.
type File struct{ path, name string }

// New returns the guard of the file at path, which only holders of the lease of that name may
// write. It does no I/O; the file is made by the first write.
func New(path, name string) *File { return &File{path, name} }

// Append adds data to the end of the file, and returns when it is on disk. The error matches
// [fence.ErrStale] when the request is refused, and [fence.ErrOtherName] when it is of another
// lease; then the file is as it was. After another error a part of data may be there. It blocks
// while others write; ctx is looked at before the lock is waited for, and after.
func (f *File) Append(ctx context.Context, s fence.Sequencer, data []byte) error {
	return f.guarded(ctx, s, func(path string, _ os.FileInfo) error {
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|noFollow, 0o600)
		if err != nil {
			return err
		}
		if err := written(out, data); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	})
}

// Replace makes data the whole of the file, at one instant: a reader finds the old or the new, and
// a crash leaves one of them. The new file has the mode and the owner of the old one, not its
// access control list or other attributes. Where it can't get that owner, that is an error. The
// errors are those of Append. After any of them the file is the old one or the new one.
func (f *File) Replace(ctx context.Context, s fence.Sequencer, data []byte) error {
	return f.guarded(ctx, s, func(path string, old os.FileInfo) error {
		out, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
		if err != nil {
			return err
		}
		err = inherit(out, old)
		if err != nil {
			err = errors.Join(err, out.Close())
		} else {
			err = written(out, data)
		}
		if err == nil {
			err = os.Rename(out.Name(), path)
		}
		if err != nil {
			return errors.Join(err, os.Remove(out.Name()))
		}
		return syncDir(filepath.Dir(path))
	})
}

// inherit gives a file the owner and the mode of the one that it replaces, if there is one. The
// owner comes first, since a change of it takes bits from the mode.
func inherit(out *os.File, old os.FileInfo) error {
	if old == nil {
		return nil
	}
	if err := chown(out, old); err != nil {
		return fmt.Errorf("its owner can't be kept: %w", err)
	}
	return out.Chmod(old.Mode())
}

// written writes data, syncs and closes.
func written(out *os.File, data []byte) error {
	_, err := out.Write(data)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// guarded calls write under the lock, if the mark admits s, with the file's own path and what is
// there, or nil.
func (f *File) guarded(ctx context.Context, s fence.Sequencer, write func(path string, old os.FileInfo) error) (err error) {
	if err := errors.Join(s.Of(f.name), context.Cause(ctx)); err != nil {
		return err
	}
	path, err := resolve(f.path)
	if err != nil {
		return fmt.Errorf("guard of %s: %w", f.path, err)
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return fmt.Errorf("guard of %s: %w", f.path, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	old, err := look(path) // nil when nothing is there
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("guard of %s: %w", f.path, err)
	}
	if err := admit(ctx, path, s); err != nil {
		return err
	}
	return write(path, old)
}

// resolve returns the one path of a file, which need not be there.
func resolve(path string) (string, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		return filepath.EvalSymlinks(path) // a link to nothing is an error
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// look returns what is at a path, and an error for what has no one mark.
func look(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: %v", path, info.Mode())
	case links(info) > 1:
		return nil, fmt.Errorf("%s has %d hard links, each of which would have a mark of its own: take all but one away", path, links(info))
	}
	return info, nil
}

// resource is what the mark is stored under: the file's, whatever its lease is called.
const resource = "file"

// admit raises the mark of the file at path to s, or refuses s.
func admit(ctx context.Context, path string, s fence.Sequencer) (err error) {
	marks, err := filemarks.Open(path + ".fence")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, marks.Close()) }()
	mark, err := marks.Load(ctx, resource)
	if err != nil {
		return err
	}
	next, err := mark.Admit(s.Name, s.Holder, s.Token)
	if err != nil || next == mark {
		return err
	}
	return marks.Save(ctx, resource, next)
}
