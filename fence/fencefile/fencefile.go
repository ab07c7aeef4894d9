// Package fencefile guards a file: it is appended to, or replaced, by the current holder of a lease only. Any number of processes
// of one machine may try; a request of an earlier term, or of another holder of the same term, is refused.
//
//	f := fencefile.New("/var/lib/app/ledger.log", "ledger")
//	err := f.Append(ctx, l.Sequencer(), []byte("…\n"))
//
// The mark is kept beside the file, in PATH.fence, and is on disk before the first write of its term. Checking and writing are
// done under a lock, PATH.lock, so no other request comes in between. What writes to the file without this package is not
// guarded. It needs a local file system, and flock: on Windows and a few others every call fails.
package fencefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/fence"
)

// File is a guarded file. It holds nothing open between calls, and its methods may be called from any goroutine.
type File struct{ path, name string }

// New returns the guard of the file at path, which only holders of the lease of that name may write. It does no I/O; the file
// is made by the first write.
func New(path, name string) *File { return &File{path, name} }

// Append adds data to the end of the file, and returns when it is on disk. The error matches [fence.ErrStale] when the request is
// refused, and [fence.ErrOtherName] when it is of another lease; then the file is as it was. After another error a part of data
// may be there. It blocks while others write; ctx
// is looked at before the lock is waited for, and after.
func (f *File) Append(ctx context.Context, s fence.Sequencer, data []byte) error {
	return f.guarded(ctx, s, func() error {
		out, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if err := written(out, data); err != nil {
			return err
		}
		return syncDir(filepath.Dir(f.path))
	})
}

// Replace makes data the whole of the file, at one instant: a reader finds the old or the new, and a crash leaves one of them. The
// errors are those of Append, but that after any of them the file is the old one or the new one.
func (f *File) Replace(ctx context.Context, s fence.Sequencer, data []byte) error {
	return f.guarded(ctx, s, func() error {
		out, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".new-*")
		if err != nil {
			return err
		}
		err = written(out, data)
		if err == nil {
			err = os.Rename(out.Name(), f.path)
		}
		if err != nil {
			return errors.Join(err, os.Remove(out.Name()))
		}
		return syncDir(filepath.Dir(f.path))
	})
}

// written writes data, syncs and closes.
func written(out *os.File, data []byte) error {
	_, err := out.Write(data)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// guarded calls write under the lock, if the mark admits s.
func (f *File) guarded(ctx context.Context, s fence.Sequencer, write func() error) (err error) {
	if err := errors.Join(s.Of(f.name), context.Cause(ctx)); err != nil {
		return err
	}
	unlock, err := lock(f.path + ".lock")
	if err != nil {
		return fmt.Errorf("guard of %s: %w", f.path, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f.admit(ctx, s); err != nil {
		return err
	}
	return write()
}

// resource is what the mark is stored under: the file's, whatever its lease is called.
const resource = "file"

// admit raises the mark to s, or refuses s.
func (f *File) admit(ctx context.Context, s fence.Sequencer) (err error) {
	marks, err := fence.OpenFile(f.path + ".fence")
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
