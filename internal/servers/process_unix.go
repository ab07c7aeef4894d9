//go:build unix

package servers

import (
	"errors"
	"os"
	"syscall"
)

const (
	sigKill     = syscall.SIGKILL
	sigStop     = syscall.SIGSTOP
	sigContinue = syscall.SIGCONT
	sigQuit     = syscall.SIGQUIT
)

// signalOne sends a signal. A process that is gone needs none.
func signalOne(pid int, sig syscall.Signal) { _ = syscall.Kill(pid, sig) }

// lockFile opens a file and locks it until it is closed. It returns errLocked if another has it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, err
	}
	return f, nil
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}
