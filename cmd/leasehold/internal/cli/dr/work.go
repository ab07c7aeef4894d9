package dr

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
)

// envPrefix tells CMD the prefix of service addresses that was claimed for it.
const envPrefix = "LEASEHOLD_SE_IP_PREFIX"

// checker makes the state checker that was asked for, with what is to be done while this instance
// is active.
func (s *standIn) checker() (admiral.StateChecker, error) {
	opts := admiral.Options{WarmUp: s.o.warmUp, Clock: s.a.Clock}
	switch {
	case s.o.mode == modeNotify:
		opts.Early = s.early()
		opts.Work = s.notifier().Work
	case len(s.argv) > 0:
		opts.Renew = min(s.lease.cfg.Renew(), s.timing.Renew())
		opts.Work = s.work
	}
	if s.lease.checker == admiral.NoOP && opts.Work != nil {
		return nil, fmt.Errorf("%s is always active, so nothing depends on the role: run CMD without leasehold", admiral.NoOP)
	}
	p := s.lease.params()
	p.Options = opts
	p.Store = s.announcing(p.Store)
	table := standby.TableOpener(func() { s.metrics.Throttled() })
	p.Table = func(ctx context.Context, cfg admiral.Config) (store.Store, error) {
		st, err := table(ctx, cfg)
		s.files.opened(st)
		return st, err
	}
	if s.o.prefix != "" {
		p.Table, p.Store = s.claiming(p.Table), s.claiming(p.Store)
	}
	return s.lease.make(p)
}

type opener = func(context.Context, admiral.Config) (store.Store, error)

// claiming is open, and then the claim of the prefix. A prefix that is another's, or none, ends the
// program; a store that doesn't answer is asked again by the checker.
func (s *standIn) claiming(open opener) opener {
	return func(ctx context.Context, cfg admiral.Config) (store.Store, error) {
		st, err := open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		s.prefix, err = admiral.ClaimPrefix(ctx, st, s.o.prefix, cfg.LeaseName, cfg.PodIdentifier)
		if err == nil {
			return st, nil
		}
		if taken := new(admiral.PrefixTakenError); errors.As(err, &taken) {
			err = cli.Exit(cli.ExitConflict, err)
			s.fail(err)
		}
		return nil, errors.Join(err, st.Close())
	}
}

// early is how long before the end of the lease CMD is told to be passive.
func (s *standIn) early() time.Duration {
	if s.o.earlyGiven {
		return s.o.early
	}
	return min(2*time.Second, s.lease.cfg.TTL()/10)
}

// work runs CMD under a term: it is gone before the term ends. When it ends by itself, so does this
// program, with its exit code, and the lease goes to another instance.
func (s *standIn) work(term admiral.Term) error {
	p, err := supervise.Start(supervise.Command{
		Path: s.path, Args: s.argv, Env: s.environ(&term), Clock: s.a.Clock, Suspended: s.suspended,
		Contain: s.a.Contain(), Contained: s.words.Contained, Guards: s.words.Guards, OwnHangup: true,
	})
	if err != nil {
		return hold.StartError(s.argv[0], err)
	}
	if supervise.Watch(term, p, s.timing, s.a.Clock, func(n supervise.Notice) { s.words.Notice(n, s.argv[0], term.Left()) }) {
		return nil
	}
	return hold.EndError(p.Status())
}

// suspended says what a stop from the terminal does. This process stops next, so it waits for the
// line.
func (s *standIn) suspended() {
	s.a.SayBelow("stopped; unless it continues before, %s is killed when the lease ends, in %v at most", s.argv[0], s.lease.cfg.TTL())
}

// environ is the environment of CMD, and of hooks. Without a term it is that of a CMD that runs in
// every one.
func (s *standIn) environ(term *admiral.Term) []string {
	own := []string{hold.EnvName + "=" + s.lease.cfg.LeaseName}
	if s.prefix != "" {
		own = append(own, envPrefix+"="+s.prefix)
	}
	if s.o.roleFile != "" {
		path, err := filepath.Abs(s.o.roleFile)
		if err != nil {
			path = s.o.roleFile
		}
		own = append(own, standby.EnvRoleFile+"="+path)
	}
	if term != nil {
		own = append(own, hold.EnvToken+"="+term.Token().String(), hold.EnvHolder+"="+term.Owner())
	}
	return hold.Environment(own, hold.EnvToken, hold.EnvHolder, standby.EnvRole)
}

// notifier tells CMD, or who else looks at the file or is called by the hook.
func (s *standIn) notifier() *standby.Notify {
	n := &standby.Notify{File: s.o.roleFile, Hook: s.o.hook, Env: s.environ, Limit: max(s.early(), time.Second), Say: s.words.Say}
	if s.o.signals != "" {
		n.Signal = func(active bool) {
			if s.program == nil {
				return
			}
			sig := s.signals[1]
			if active {
				sig = s.signals[0]
			}
			s.program.Signal(sig)
		}
	}
	return n
}

// startNotified tells the role, which is passive, and starts CMD, if there is one.
func (s *standIn) startNotified(ctx context.Context) error {
	if err := s.notifier().Start(ctx); err != nil {
		return err
	}
	if len(s.argv) == 0 {
		return nil
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	p, err := standby.StartProgram(running, s.path, s.argv, s.environ(nil), s.timing.KillAfter)
	if err != nil {
		end()
		return hold.StartError(s.argv[0], err)
	}
	s.program, s.endProgram = p, end
	return nil
}

// stopProgram ends CMD, if it hasn't ended, and waits for it. It returns the error with its exit
// code if it had.
func (s *standIn) stopProgram(first bool) error {
	s.endProgram()
	<-s.program.Ended()
	if !first {
		return nil
	}
	state, err := s.program.State()
	if state == nil {
		return err
	}
	status := supervise.Status{Code: state.ExitCode()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		status.Signal = ws.Signal()
	}
	return hold.EndError(status)
}
