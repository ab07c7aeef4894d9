// Package filemarks keeps the marks of a [fence.Offline] guard in a file, so that the guard
// remembers over restarts which tokens it has seen.
//
//	marks, err := filemarks.Open("/var/lib/app/marks")
//	guard, err := fence.NewOffline(marks)
//
// What is guarded can be anything that one process serves. Package fencefile is another thing:
// there the guarded resource itself is a file, which any number of processes write.
package filemarks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"unicode/utf8"

	"github.com/leasehold/leasehold/fence"
)

// Marks keep marks in a file, with a line of JSON for each saved mark. The last line of a resource
// counts. One process at a time has it open (on Unix by flock; elsewhere nothing stops a second
// one). All methods may be called from any goroutine.
type Marks struct {
	path string

	mu    sync.Mutex
	f     *os.File
	marks map[string]fence.Mark
	lines int
	size  int64 // of what is known to be whole
	err   error // of a write that left the file in doubt; nothing is written after it
}

// line is one mark in the file.
type line struct {
	Resource string `json:"resource"`
	fence.Mark
}

// Open opens the file at path, or makes it. A last line that is cut off, as a crash leaves it, is
// dropped: it was not saved. Anything else that isn't a mark is an error that names the line, and
// the file is left as it is.
func Open(path string) (*Marks, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("fence marks: %w", err)
	}
	m := &Marks{path: path, f: f, marks: map[string]fence.Mark{}}
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("fence marks: %s: %w", path, err), m.f.Close())
	}
	return m, nil
}

func (m *Marks) open() error {
	if err := lockFile(m.f); err != nil {
		return fmt.Errorf("another process has it open: %w", err)
	}
	mine, err1 := m.f.Stat()
	named, err2 := os.Stat(m.path)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !os.SameFile(mine, named) {
		return errors.New("another process has just replaced it: open it again")
	}
	if err := m.read(); err != nil {
		return err
	}
	if compacts && m.lines > 100 && m.lines > compactAt*len(m.marks) {
		return m.rewrite()
	}
	return syncDir(filepath.Dir(m.path))
}

// compactAt is how many lines a file may have for each resource before it is written anew, when it
// is opened.
const compactAt = 8

func (m *Marks) read() error {
	in := bufio.NewReader(m.f)
	for {
		text, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return m.f.Truncate(m.size)
		case err != nil:
			return err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil || l.Token == 0 || l.Token > fence.MaxToken {
			return fmt.Errorf("line %d is no mark: %.100q", m.lines+1, text)
		}
		m.marks[l.Resource] = l.Mark
		m.lines++
		m.size += int64(len(text))
	}
}

// Load is [fence.Marks.Load]. It doesn't block.
func (m *Marks) Load(_ context.Context, resource string) (fence.Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks[resource], nil
}

// Save is [Marks.Save]. It blocks until the mark is on disk, whatever the state of ctx. After a
// failed write it saves nothing more: whether that mark is in the file is known only when the file
// is opened again. Save refuses a mark that it couldn't read back: one whose token no term may
// have, or with a resource or a holder that isn't UTF-8.
func (m *Marks) Save(_ context.Context, resource string, mark fence.Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if mark.Token == 0 || mark.Token > fence.MaxToken || !utf8.ValidString(resource) || !utf8.ValidString(mark.Holder) {
		return fmt.Errorf("fence marks: resource %.60q, token %d, holder %.60q: want UTF-8, and a token from 1 to %d",
			resource, mark.Token, mark.Holder, fence.MaxToken)
	}
	text, err := json.Marshal(line{resource, mark})
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err = m.f.WriteAt(text, m.size); err == nil {
		err = m.f.Sync()
	}
	if err != nil {
		m.err = fmt.Errorf("fence marks: %s: %w: open it again", m.path, err)
		return m.err
	}
	m.marks[resource] = mark
	m.size += int64(len(text))
	return nil
}

// rewrite replaces the file by one with a line for each resource.
func (m *Marks) rewrite() error {
	var all bytes.Buffer
	enc := json.NewEncoder(&all)
	for resource, mark := range m.marks {
		if err := enc.Encode(line{resource, mark}); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(m.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = lockFile(f)
	if err == nil {
		_, err = f.Write(all.Bytes())
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), m.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(m.path))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	old := m.f
	m.f, m.lines, m.size = f, len(m.marks), int64(all.Len())
	return old.Close()
}

// Close gives the file free for another process. Saving fails after it.
func (m *Marks) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.f == nil {
		return nil
	}
	err := errors.Join(unlockFile(m.f), m.f.Close())
	m.f, m.err = nil, fmt.Errorf("fence marks: %s: %w", m.path, os.ErrClosed)
	return err
}
