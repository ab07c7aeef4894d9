//go:build !unix

package servers

import (
	"errors"
	"os"
	"syscall"
)

const (
	sigKill     = syscall.Signal(9)
	sigStop     = syscall.Signal(19)
	sigContinue = syscall.Signal(18)
	sigQuit     = syscall.Signal(3)
)

func attributes(syscall.Signal, *account) *syscall.SysProcAttr { return nil }
func children(int) []int                                       { return nil }
func running(int) bool                                         { return false }
func stopped(int) bool                                         { return true }
func signalOne(int, syscall.Signal)                            {}

// Lock does not work here.
func Lock(string) (*os.File, error) {
	return nil, errors.New("servers are started on Linux, macOS and the BSDs only: set LEASEHOLD_TEST_…_URL to one that is up")
}
