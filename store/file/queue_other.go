//go:build !linux

package file

import "github.com/leasehold/leasehold/clock"

// gate lets one process through at a time. It keeps order, as well as a file lock does here, not
// safety: where there can't be one, writes go straight to the file lock.
type gate struct{ l *lockFile }

func openGate(path string) *gate {
	l, err := openLock(path)
	if err != nil {
		return &gate{}
	}
	return &gate{l: l}
}

// enter waits its turn, and returns the function that lets the next one in.
func (g *gate) enter(clock.Clock) (leave func()) {
	if g.l == nil || g.l.lock() != nil {
		return func() {}
	}
	return func() { _ = g.l.unlock() }
}

func (g *gate) close() error {
	if g.l == nil {
		return nil
	}
	return g.l.close()
}
