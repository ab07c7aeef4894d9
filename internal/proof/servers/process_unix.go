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

// Lock opens a file and locks it until it is closed, or this process ends. It doesn't wait: it
// returns [ErrLocked] if the file is locked.
func Lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
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
