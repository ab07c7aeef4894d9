package servers

import (
	"os/exec"
	"runtime"
)

// account is who a program runs as, if not as this process does.
type account struct{ uid, gid uint32 }

// process is a program that was started.
type process struct {
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // how it ended, once done is closed
}

// spawn starts a program. The goroutine that waits for it ends with it.
func spawn(cmd *exec.Cmd) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The parent-death signal comes when the thread that started the program ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process and all that it started, and waits until they are gone.
func (p *process) kill() {
	all := p.freeze()
	for _, pid := range all {
		signalOne(pid, sigKill)
	}
	<-p.done
	for _, pid := range all {
		for running(pid) {
			pause(tick)
		}
	}
}

// freeze stops the process and all that it started, and returns their pids. Parents are stopped
// before their children are looked up, so that none is missed.
func (p *process) freeze() []int {
	if p.ended() {
		return nil
	}
	all := []int{p.pid}
	for i := 0; i < len(all); i++ {
		signalOne(all[i], sigStop)
		all = append(all, children(all[i])...)
	}
	return all
}

// rest stops the process and all that it started, and returns when none of them runs any more: a
// signal takes effect when one of a process's threads gets to run, and until then the others serve.
// It waits for 10 s at most: a thread that waits for a child to start a program stops only then.
func (p *process) rest() {
	for _, pid := range p.freeze() {
		for range 1000 {
			if stopped(pid) {
				break
			}
			pause(tick)
		}
	}
}

// thaw lets the process and all that it started go on.
func (p *process) thaw() {
	if p.ended() {
		return
	}
	all := []int{p.pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	for _, pid := range all {
		signalOne(pid, sigContinue)
	}
}
