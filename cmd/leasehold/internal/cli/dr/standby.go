package dr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
)

// The ways in which CMD has to do with the role.
const (
	modeProcess = "process"
	modeNotify  = "notify"
)

// noListen as --listen serves nothing.
const noListen = "off"

// standbyOptions are the flags of standby.
type standbyOptions struct {
	leaseOptions
	prefix     string // --se_ip_prefix, if it was given
	warmUp     time.Duration
	listen     string
	mode       string
	roleFile   string
	signals    string
	hook       string
	early      time.Duration
	earlyGiven bool
}

func (a *app) standbyCommand() *cobra.Command {
	var o standbyOptions
	cmd := &cobra.Command{
		Use:   "standby --config FILE [flags] [-- CMD [ARG...]]",
		Short: "Be active or passive by Admiral's configuration and lease (without Admiral: elect)",
		Long: "Hold the lease that FILE names, as Admiral's state checker does, or stand by while another instance does; say over HTTP\n" +
			"which of both it is. FILE is Admiral's: leaseName, podIdentifier, waitTimeInSeconds, failureThreshold, tableName, role and\n" +
			"region under dynamoDB, or at the top level.\n\n" +
			"With --mode process CMD runs while this instance is active: it is started when the term begins, and is gone before it ends.\n" +
			"With --mode notify CMD runs all the time, and is told its role by a file, a signal or a hook. Without CMD there is HTTP.\n\n" +
			"It serves /health/ready (?checkifreadonly=true), /active and /standby (200 or 503), /state (JSON) and /metrics.",
		Example: "  leasehold standby --config dr.yaml -- ./controller                  # runs where it is active\n" +
			"  leasehold standby --config dr.yaml --mode notify --notify-file /run/role -- ./controller\n" +
			"  leasehold standby status --config dr.yaml\n" +
			"  leasehold standby switchover --to east --config dr.yaml",
		Args: standbyArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.earlyGiven = cmd.Flags().Changed("early")
			return a.standby(cmd.Context(), o, args)
		},
	}
	o.leaseOptions.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.prefix, "se_ip_prefix", "", "claim this prefix of service addresses for the deployment; auto picks a free one (default: none)")
	cli.DurationVar(f, &o.warmUp, "sync_period", 0, "the warm-up: how long after its start this instance is not active (default 0s)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to serve the state on; off for none")
	f.StringVar(&o.mode, "mode", modeProcess, "process: CMD runs while this instance is active; notify: CMD runs always and is told")
	f.StringVar(&o.roleFile, "notify-file", "", "file to write the role to")
	f.StringVar(&o.signals, "notify-signal", "", "signals to send to CMD when it becomes active and passive: USR1,USR2, or one for both; they have no order, so let CMD read --notify-file")
	f.StringVar(&o.hook, "notify-command", "", "executable to call with the role, active or passive, as its argument")
	cli.DurationVar(f, &o.early, "early", 0, "notify: how long before the lease ends to become passive (default 2s, or a tenth of the TTL)")
	a.Flag(f, "kill-after")
	a.Flag(f, "contain")
	cmd.AddCommand(a.standbyStatusCommand(), a.switchoverCommand(), a.drillCommand(), a.drillInstanceCommand(), a.holdCommand(), a.resumeCommand(), a.standbyInitCommand())
	return cmd
}

func standbyArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) > 0 && dash < 0:
		return cli.Usage("%q is no command of standby: they are status, switchover, drill, hold, resume and init; to run CMD write: leasehold standby --config FILE -- %s", args[0], strings.Join(args, " "))
	case dash > 0:
		return cli.Usage("%q is one argument too many before the double dash: leasehold standby --config FILE -- CMD", args[0])
	case dash == 0 && len(args) == 0:
		return cli.Usage("CMD is missing after the double dash: leasehold standby --config FILE -- CMD")
	}
	return nil
}

// standIn is one call of standby.
type standIn struct {
	a       *app
	o       standbyOptions
	lease   checkedLease
	argv    []string // CMD; nil for none
	path    string   // of argv[0]
	signals [2]os.Signal
	words   *hold.Words
	state   *admiral.State
	metrics *standby.Metrics
	files   *reload
	timing  supervise.Timing
	prefix  string // that was claimed
	fail    context.CancelCauseFunc

	announced  announcements
	program    *standby.Program // CMD that is told its role
	endProgram context.CancelFunc
}

func (a *app) standby(ctx context.Context, o standbyOptions, argv []string) (err error) {
	s := &standIn{a: a, o: o, argv: argv, state: admiral.NewState(a.Clock)}
	s.files = &reload{s: s}
	if err := s.check(); err != nil {
		return err
	}
	// A reader of standard error that goes away must not end this program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	s.words = hold.NewWords(a.App, s.lease.cfg.LeaseName)
	defer s.words.Close()
	ctx, s.fail = context.WithCancelCause(ctx)
	defer s.fail(nil)
	if others := s.lease.cfg.Others; others != "" {
		s.words.Say("%s: passed over: %s, which the state checker doesn't read", s.lease.path, others)
	}
	checker, err := s.checker()
	if err == nil {
		err = s.lease.checkRegion(ctx)
	}
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	s.metrics = standby.NewMetrics(s.state)
	if o.listen != noListen {
		if _, err := cli.HostOf("listen", o.listen); err != nil {
			return err
		}
		server, err := standby.Listen(ctx, o.listen, s.state, s.metrics)
		if err != nil {
			return err
		}
		defer server.Close()
		s.words.Say("serving the state of %s on http://%s", s.lease.name(), server.Addr())
	}
	a.Hangup.Is(func() { s.files.look(true) })
	var own sync.WaitGroup
	telling, stop := context.WithCancel(context.Background())
	own.Go(func() { s.tell(telling) })
	own.Go(func() { s.files.follow(telling) })
	defer func() { stop(); own.Wait(); s.announced.close() }()
	return s.run(ctx, checker)
}

// run runs the checker, and beside it a CMD that is to be told.
func (s *standIn) run(ctx context.Context, checker admiral.StateChecker) error {
	if s.o.mode == modeNotify {
		if err := s.startNotified(ctx); err != nil {
			return err
		}
	}
	// The checker ends first, so that CMD is told before it is ended.
	checking, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan bool, 1)
	if s.program != nil {
		go func() {
			select {
			case <-s.program.Ended():
				watched <- checking.Err() == nil
				stop()
			case <-checking.Done():
				watched <- false
			}
		}()
	}
	err := checker.Run(checking, s.state)
	stop()
	if s.program != nil {
		err = errors.Join(err, s.stopProgram(<-watched))
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// check looks for all that is wrong before anything is started.
func (s *standIn) check() (err error) {
	if s.lease, err = s.o.leaseOptions.resolve(s.a); err != nil {
		return err
	}
	if s.o.mode != modeProcess && s.o.mode != modeNotify {
		return cli.Usage("--mode %q: want process or notify", s.o.mode)
	}
	if s.o.prefix != "" {
		if err := admiral.CheckPrefix(s.o.prefix); err != nil {
			return cli.Usage("%w", err)
		}
	}
	if err := s.checkMode(); err != nil {
		return err
	}
	if s.o.signals != "" {
		if s.signals, err = parseSignals(s.o.signals); err != nil {
			return cli.Usage("--notify-signal %w", err)
		}
	}
	if len(s.argv) > 0 {
		if s.path, err = hold.Find(s.argv[0]); err != nil {
			return err
		}
	}
	return s.checkTiming()
}

// checkMode sees that the flags fit the mode.
func (s *standIn) checkMode() error {
	told := s.o.roleFile != "" || s.o.signals != "" || s.o.hook != ""
	switch {
	case s.o.mode == modeProcess && told:
		return cli.Usage("--notify-file, --notify-signal and --notify-command need --mode notify")
	case s.o.mode == modeNotify && !told:
		return cli.Usage("--mode notify: how? give --notify-file, --notify-signal or --notify-command")
	case s.o.signals != "" && len(s.argv) == 0:
		return cli.Usage("--notify-signal needs CMD: there is nobody to send a signal to")
	case s.o.mode == modeProcess && s.o.earlyGiven:
		return cli.Usage("--early needs --mode notify: with --mode process --kill-after says how long CMD has to end")
	}
	return nil
}

// checkTiming finds out how long CMD has to end, and sees that the TTL has room for it.
func (s *standIn) checkTiming() error {
	s.timing = supervise.Timing{TTL: s.lease.cfg.TTL()}
	if v := s.a.Values.Find("kill-after"); v.Source.Kind != config.Default {
		if s.timing.KillAfter = s.a.Duration("kill-after"); s.timing.KillAfter == 0 {
			s.timing.KillAfter = -1 // no time at all; 0 would be the default
		}
	}
	s.timing = s.timing.WithDefaults()
	if s.supervised() {
		if err := s.timing.Check(); err != nil {
			return cli.Usage("waitTimeInSeconds × failureThreshold is the TTL: %w", err)
		}
	}
	return nil
}

// supervised reports whether CMD runs only while this instance is active.
func (s *standIn) supervised() bool {
	return s.o.mode == modeProcess && len(s.argv) > 0 && s.lease.checker != admiral.NoOP
}

// parseSignals reads ACTIVE,PASSIVE, or one name for both.
func parseSignals(text string) (sigs [2]os.Signal, err error) {
	first, second, two := strings.Cut(text, ",")
	if !two {
		second = first
	}
	if sigs[0], err = standby.ParseSignal(first); err == nil {
		sigs[1], err = standby.ParseSignal(second)
	}
	return sigs, err
}

// tell says each change of the role, and counts it.
func (s *standIn) tell(ctx context.Context) {
	st := s.state.Status()
	active, said := false, ""
	for {
		line := "passive: " + st.Reason
		if !st.ReadOnly {
			line = fmt.Sprintf("active (term %d)", st.Token)
		}
		s.a.About(fence.Sequencer{Name: s.lease.cfg.LeaseName, Token: st.Token, Holder: st.Owner})
		if line != said && (!st.ReadOnly || !alike(line, said)) {
			s.words.Say("%s: %s", s.lease.name(), line)
			said = line
		}
		if active == st.ReadOnly {
			active = !st.ReadOnly
			s.metrics.Changed(active)
			s.announced.change(s.lease.cfg.LeaseName, st)
		}
		var err error
		if st, err = s.state.Changed(ctx, st.Seq); err != nil {
			return
		}
	}
}

// alike reports whether two lines differ in numbers only: errors of one cause have ports in them,
// and times.
func alike(a, b string) bool {
	words := func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}
	return strings.Map(words, a) == strings.Map(words, b)
}
