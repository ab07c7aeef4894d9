package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// Pods are the instances of a rehearsal.
var Pods = []string{"rehearsal-east", "rehearsal-west"}

// Rehearsal is two instances of this machine's own, each a process, in which every fault can be
// made. Make one with [StartRehearsal].
type Rehearsal struct {
	command func(pod string) *exec.Cmd

	mu    sync.Mutex
	procs map[string]*process
}

// process is one instance that runs.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	probe Probe
}

// StartRehearsal starts an [Instance] for each of [Pods], by command, which returns one that was
// not started yet. The caller closes the Rehearsal.
func StartRehearsal(ctx context.Context, command func(pod string) *exec.Cmd) (*Rehearsal, error) {
	r := &Rehearsal{command: command, procs: map[string]*process{}}
	for _, pod := range Pods {
		if err := r.start(ctx, pod); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func (r *Rehearsal) start(ctx context.Context, pod string) error {
	p := &process{cmd: r.command(pod)}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	p.cmd.SysProcAttr = ownGroup() // the interrupt of a terminal is the drill's, which ends it
	if err := p.cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	url, err := p.out.ReadString('\n')
	stop()
	if err == nil {
		p.probe, err = urlProbe(url[:len(url)-1])
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
		return errors.Join(fmt.Errorf("%s has not started: %w", pod, err), p.cmd.Wait())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.procs[pod] = p
	return nil
}

var errGone = errors.New("the instance does not run")

func (r *Rehearsal) proc(pod string) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.procs[pod]
}

// order sends an order, and waits until it is done.
func (r *Rehearsal) order(ctx context.Context, pod, order string) error {
	p := r.proc(pod)
	if p == nil {
		return errGone
	}
	stop := context.AfterFunc(ctx, func() { _ = p.cmd.Process.Kill() })
	defer stop()
	if _, err := fmt.Fprintln(p.in, order); err != nil {
		return fmt.Errorf("%s: %w", pod, err)
	}
	_, err := p.out.ReadString('\n')
	return err
}

// Sides are probes of the instances.
func (r *Rehearsal) Sides() map[string]Probe {
	sides := map[string]Probe{}
	for _, pod := range Pods {
		sides[pod] = func(ctx context.Context) (fence.Token, error) {
			p := r.proc(pod)
			if p == nil {
				return 0, errGone
			}
			return p.probe(ctx)
		}
	}
	return sides
}

// Faults are all faults, without a command of the operator.
func (r *Rehearsal) Faults() map[string]Fault {
	cut := func(order string) Fault {
		return Fault{
			Do:   func(ctx context.Context, _ string, s Side) error { return r.order(ctx, s.Pod, order) },
			Undo: func(ctx context.Context, _ string, s Side) error { return r.order(ctx, s.Pod, orderMend) },
		}
	}
	return map[string]Fault{
		Partition: cut(orderHang), Store: cut(orderRefuse),
		Kill: {
			Do: func(_ context.Context, _ string, s Side) error { return r.kill(s.Pod) },
			Undo: func(ctx context.Context, _ string, s Side) error {
				return errors.Join(r.kill(s.Pod), r.start(ctx, s.Pod))
			},
		},
	}
}

// kill ends an instance with SIGKILL. One that has ended is no error.
func (r *Rehearsal) kill(pod string) error {
	p := r.proc(pod)
	if p == nil {
		return nil
	}
	r.mu.Lock()
	delete(r.procs, pod)
	r.mu.Unlock()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it says that it was killed
	return nil
}

// Close ends both instances: they let go of their lease within limit, or are killed.
func (r *Rehearsal) Close() error {
	r.mu.Lock()
	procs := r.procs
	r.procs = map[string]*process{}
	r.mu.Unlock()
	const limit = 10 * time.Second
	for _, p := range procs {
		_ = p.in.Close()
	}
	var all error
	for pod, p := range procs {
		stop := clock.System().AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
		_, _ = io.Copy(io.Discard, p.out) // to its end, as Wait wants
		if err := p.cmd.Wait(); err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", pod, err))
		}
		stop()
	}
	return all
}
