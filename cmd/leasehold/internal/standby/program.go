package standby

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Program is a command that runs all the time, whatever the role of this instance.
type Program struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // set before ended is closed
}

// StartProgram starts the program at path, with this program's standard input, output and error.
// When ctx is done it gets SIGTERM, and is killed killAfter later. On Linux it dies with this
// program, however that dies: nobody would tell it its role any more.
func StartProgram(ctx context.Context, path string, argv, env []string, killAfter time.Duration) (*Program, error) {
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env = argv, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = max(killAfter, time.Millisecond)
	cmd.SysProcAttr = attributes()
	p := &Program{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() { // on one thread: with the thread's end the kernel would kill the program
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.ended }

// State returns how the program ended, once Ended is closed; err is for a wait that failed itself.
func (p *Program) State() (*os.ProcessState, error) { return p.cmd.ProcessState, p.err }

// Signal sends sig to the program, unless it has ended.
func (p *Program) Signal(sig os.Signal) { _ = p.cmd.Process.Signal(sig) }
