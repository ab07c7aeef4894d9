//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// guard is a guarded resource: a file to which one line is appended per write, "<token> <holder>
// <seq> <instant>". Its last line is its mark, so mark and write are stored in one go.
type guard struct {
	name string
	f    *os.File
	open bool // a seeded bug: takes any token
}

// openGuard opens the guarded file of a name, and makes it where it is missing.
func openGuard(path, name string, bug bool) (*guard, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	return &guard{name, f, bug}, err
}

// write appends a line if the mark admits it, and returns when it is on disk. A late token is an
// error that matches fence.ErrStale. It blocks while another process is in here.
func (g *guard) write(holder string, token fence.Token, seq int) (err error) {
	fd := int(g.f.Fd())
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(fd, unix.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("flock: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Flock(fd, unix.LOCK_UN)) }()
	mark, end, err := g.mark()
	if err != nil {
		return err
	}
	if _, err := mark.Admit(g.name, holder, token); err != nil && !g.open {
		return err
	}
	line := fmt.Sprintf("%d %s %d %d\n", token, holder, seq, clock.System().Now())
	if _, err := g.f.WriteAt([]byte(line), end); err != nil {
		return err
	}
	return unix.Fdatasync(fd)
}

// mark reads the last whole line, and returns where the next one goes: over what a killed process
// has left half written, which was never acknowledged.
func (g *guard) mark() (fence.Mark, int64, error) {
	const longest = 1024 // line
	info, err := g.f.Stat()
	if err != nil {
		return fence.Mark{}, 0, err
	}
	start := max(info.Size()-2*longest, 0)
	tail := make([]byte, info.Size()-start)
	if _, err := g.f.ReadAt(tail, start); err != nil {
		return fence.Mark{}, 0, err
	}
	whole := bytes.LastIndexByte(tail, '\n') + 1
	end := start + int64(whole)
	if whole < len(tail) {
		if err := g.f.Truncate(end); err != nil {
			return fence.Mark{}, 0, err
		}
	}
	if whole == 0 {
		return fence.Mark{}, end, nil
	}
	last := tail[bytes.LastIndexByte(tail[:whole-1], '\n')+1 : whole-1]
	w, err := parseWrite(string(last))
	return fence.Mark{Token: w.token, Holder: w.holder}, end, err
}
