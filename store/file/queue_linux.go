package file

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// gate lets one process through at a time, in the order in which they came. It keeps order, not
// safety: where there can't be one, and when the process in front doesn't move, writes go straight
// to the file lock.
//
// A plain lock wouldn't keep order. One who asks between a release and the waking of the first in
// line gets it, and the line forms anew behind; with 64 processes on few cores that happens again
// and again, and some wait for a second.
//
// So each draws a number from a counter in the file, locks the byte of that number and waits for
// the lock on the byte of the number before. No one else waits for that one. The locks are of open
// file descriptions, and the kernel drops those of a process that dies.
//
// Who drew the last number doesn't draw another one while nobody else does: whoever comes then
// finds the gate open, and its number is seen at the next turn. So a process that is on its own
// pays one read for a turn.
type gate struct {
	f     *os.File      // nil where there can't be a gate
	stuck chan struct{} // of a wait that was given up: closed when it ends
	// The number that is to be drawn next if nobody has drawn since this gate did; 0 before that.
	next int64
}

const (
	counterByte = 0       // its lock guards the counter, the first 8 bytes of the file
	firstByte   = 1       // of number 0
	numbers     = 1 << 62 // where the counter begins anew
)

// gatePatience is how long the one in front may take. It is long against a line of 64 that moves
// (measured: 0.1 s), and short against a TTL: one in line may be stopped.
const gatePatience = 500 * time.Millisecond

func openGate(path string) *gate {
	f, err := openShared(path)
	if err != nil {
		return &gate{}
	}
	return &gate{f: f}
}

// close doesn't wait for a wait that was given up: its system call ends when the process in front
// goes on or dies.
func (g *gate) close() error {
	if g.f == nil {
		return nil
	}
	if g.stuck != nil {
		go func() {
			<-g.stuck
			_ = g.f.Close()
		}()
		return nil
	}
	return g.f.Close()
}

// enter waits its turn, and returns the function that lets the next one in. A store has one
// goroutine for each gate.
func (g *gate) enter(c clock.Clock) (leave func()) {
	if g.stuck != nil {
		select {
		case <-g.stuck:
			g.stuck = nil
		default:
			return func() {}
		}
	}
	if g.next != 0 && g.counter() == g.next {
		return func() {}
	}
	number, err := g.draw(c)
	if err != nil {
		return func() {}
	}
	leave = func() { _ = g.set(unix.F_OFD_SETLK, unix.F_UNLCK, firstByte+number) }
	front := firstByte + (number+numbers-1)%numbers
	if g.take(c, front) == nil {
		_ = g.set(unix.F_OFD_SETLK, unix.F_UNLCK, front)
	}
	return leave
}

// take waits for the lock on one byte, for as long as patience lasts. The system call can't be
// ended: one that was given up is left to itself, and gives back what it gets.
func (g *gate) take(c clock.Clock, at int64) error {
	if err := g.set(unix.F_OFD_SETLK, unix.F_WRLCK, at); !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return err
	}
	taken, ended := make(chan error), make(chan struct{})
	given := make(chan struct{})
	go func() {
		defer close(ended)
		err := g.set(unix.F_OFD_SETLKW, unix.F_WRLCK, at)
		select {
		case taken <- err:
		case <-given:
			_ = g.set(unix.F_OFD_SETLK, unix.F_UNLCK, at)
		}
	}()
	timer := clock.NewTimer(c, gatePatience)
	defer timer.Stop()
	select {
	case err := <-taken:
		return err
	case <-timer.C:
		close(given)
		g.stuck = ended
		return os.ErrDeadlineExceeded
	}
}

// draw takes the next number and locks its byte.
func (g *gate) draw(c clock.Clock) (int64, error) {
	if g.f == nil {
		return 0, os.ErrInvalid
	}
	if err := g.take(c, counterByte); err != nil {
		return 0, err
	}
	defer func() { _ = g.set(unix.F_OFD_SETLK, unix.F_UNLCK, counterByte) }()
	number := g.counter()
	if _, err := g.f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(number+1)), 0); err != nil {
		return 0, err
	}
	g.next = (number + 1) % numbers
	return number, g.set(unix.F_OFD_SETLK, unix.F_WRLCK, firstByte+number)
}

// counter returns the number that is to be drawn next.
func (g *gate) counter() int64 {
	var counter [8]byte
	_, _ = g.f.ReadAt(counter[:], 0) // short in a new file: the rest is zero
	return int64(binary.LittleEndian.Uint64(counter[:]) % numbers)
}

// set changes the lock on one byte.
func (g *gate) set(cmd int, kind int16, at int64) error { return setLock(g.f, cmd, kind, at, 1) }
