//go:build !unix

package drill

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func terminateGroup(p *os.Process) error { return p.Kill() }
