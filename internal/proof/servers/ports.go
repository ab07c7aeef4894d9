package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Ports are taken from below the range that Linux gives to outgoing connections, so that none of
// those gets in the way of a server that is down for a while.
const firstPort, lastPort = 20000, 31999

// port is a port that other processes with this package leave alone until it is released.
type port struct {
	number int
	lock   *os.File
}

func (p port) String() string { return strconv.Itoa(p.number) }
func (p port) addr() string   { return net.JoinHostPort("127.0.0.1", p.String()) }
func (p port) release()       { _ = p.lock.Close() }

// reserve finds a port on which nobody listens, and reserves it.
func reserve() (port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("leasehold-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return port{}, err
	}
	for range 1000 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		lock, err := Lock(filepath.Join(dir, strconv.Itoa(number)))
		if errors.Is(err, ErrLocked) {
			continue
		}
		if err != nil {
			return port{}, err
		}
		p := port{number: number, lock: lock}
		if refuses(p.addr()) {
			return p, nil
		}
		p.release()
	}
	return port{}, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// refuses reports whether nobody listens at an address. It doesn't try to listen there itself: a
// child that is forked meanwhile would have the listener, too, until its program runs, and keep the
// next one from the port.
func refuses(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	_ = conn.Close()
	return false
}

// hangUp closes a listener. When it returns nobody listens there any more, no child that was forked
// before either.
func hangUp(l net.Listener) {
	_ = l.Close()
	for {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return
		}
		_ = conn.Close()
		pause(tick / 10)
	}
}

// FreeAddr returns an address on loopback on which nobody listens, for a server that the test
// starts, or for none. Until the test ends nobody who asks here gets the same.
func FreeAddr(t testing.TB) string {
	t.Helper()
	p, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.release)
	return p.addr()
}

// ErrLocked is the error of [Lock] for a file that is locked already.
var ErrLocked = errors.New("locked already")
