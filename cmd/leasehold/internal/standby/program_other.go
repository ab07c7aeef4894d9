//go:build !unix

package standby

import (
	"fmt"
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

func terminate(p *os.Process) error { return p.Kill() }

// ParseSignal fails: there are no signals here.
func ParseSignal(name string) (os.Signal, error) {
	return nil, fmt.Errorf("%q: signals can't be sent on this system; use --notify-file or --notify-command", name)
}
