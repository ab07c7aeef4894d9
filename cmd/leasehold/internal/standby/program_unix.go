//go:build unix

package standby

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// ParseSignal reads the name of a signal, with or without SIG.
func ParseSignal(name string) (os.Signal, error) {
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if sig == 0 {
		return nil, fmt.Errorf("%q: want the name of a signal, such as USR1 or HUP", name)
	}
	return sig, nil
}
