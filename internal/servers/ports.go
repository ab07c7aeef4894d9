package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Ports are taken from below the range that Linux gives to outgoing connections, so that none of those gets in the way of a
// server that is down for a while.
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
		if l, err := net.Listen("tcp", ":"+p.String()); err == nil {
			_ = l.Close()
			return p, nil
		}
		p.release()
	}
	return port{}, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

// FreeAddr returns an address on loopback on which nobody listens, for a server that the test starts, or for none. Until the test ends
// nobody who asks here gets the same.
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
