package elect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/kubevents"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/podlabel"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/durations"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// What happens when the active command ends by itself.
const (
	onExitRejoin = "rejoin"
	onExitExit   = "exit"
)

// What --fail-back may be, if not a duration.
const (
	failBackNever = "never" // lead for as long as one can
	failBackIdle  = "when-idle"
)

// electOptions are the flags of elect that are not settings.
type electOptions struct {
	active, passive string
	info            []string
	priority        int
	zone            string
	zones           []string
	failBack        string
	eligibleIf      string
	idleIf          string
	minHold         time.Duration
	drain           time.Duration
	onExit          string
	listen          string
	label           string
}

func (a *app) electCommand() *cobra.Command {
	o := electOptions{failBack: failBackNever, drain: 10 * time.Second, onExit: onExitRejoin}
	cmd := &cobra.Command{
		Use:   "elect NAME --on-active CMD [flags]",
		Short: "Be a candidate: run a command while leading, another while following (with Admiral: standby)",
		Long: "Be a candidate for the leadership of NAME until a signal ends this program. While it leads, the active command runs;\n" +
			"it is gone before the term ends, whatever happens, as under `leasehold run`. While another candidate leads, the passive\n" +
			"command runs, if there is one; it is ended and started again for each new leader.\n\n" +
			"CMD is for the shell (/bin/sh -c); `-- CMD ARG...` in place of --on-active runs CMD without one. Commands have no standard\n" +
			"input. The active one finds LEASEHOLD_NAME, LEASEHOLD_TOKEN, LEASEHOLD_HOLDER, LEASEHOLD_SEQUENCER and LEASEHOLD_STORE in its\n" +
			"environment; both find LEASEHOLD_ROLE (active or passive) and LEASEHOLD_LEADER, the holder's id of the leader.\n\n" +
			"A leader that is told to step down, by `leasehold handoff` or `pause` or by a signal to this program, gives the active command\n" +
			"SIGTERM and --drain to end, and lets go of NAME when it has ended. When the active command ends by itself, this candidate\n" +
			"withdraws, and is one again after a pause: 1 s at first, twice as long after each short life, 1 min at most. With --on-exit exit\n" +
			"it ends with the command's exit code instead.\n\n" +
			"--listen serves who leads: /leader (200 on the leader, 503 elsewhere; JSON) and /state (JSON), /healthz, /readyz and /metrics. With it the\n" +
			"commands may be left out: then others ask, as containers of one pod do. --pod-label KEY=VALUE keeps a label on the pod while\n" +
			"it leads, so that a Service of Kubernetes selects the leader. An answer and a label are advice for routing, and never make writing\n" +
			"safe: check the term's token where it is written (docs/fencing.md). The label stays on a pod whose sidecar is killed until it\n" +
			"starts again or another candidate leads.\n\n" +
			"Exit codes: 128+N after signal N; with --on-exit exit those of CMD; 126 and 127 if CMD can't be executed or found; 64 for a\n" +
			"wrong command line, 125 for other errors.",
		Example: "  leasehold elect scheduler --on-active './scheduler --serve' --on-passive './follow $LEASEHOLD_LEADER'\n" +
			"  leasehold elect db --as east --priority 10 --fail-back 5m --min-hold 10m -- ./primary\n" +
			"  leasehold elect db --eligible-if 'test ! -e /etc/drained' --fail-back when-idle --idle-if ./no-jobs -- ./primary\n" +
			"  leasehold handoff db --to west --reason 'east is drained'",
		Args:              electArgs,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.elect(cmd.Context(), args[0], args[1:], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.active, "on-active", "", "command for the shell to run while leading")
	f.StringVar(&o.passive, "on-passive", "", "command for the shell to run while somebody else leads (default: none)")
	f.IntVar(&o.priority, "priority", 0, "the candidate with the highest is preferred, when the name is free and in --fail-back")
	f.StringVar(&o.zone, "zone", "", "where this candidate is")
	f.StringSliceVar(&o.zones, "prefer", nil, "zones in the order in which they are preferred, before any priority")
	f.StringVar(&o.failBack, "fail-back", o.failBack, "give way to a candidate that is preferred: once it has been there for a duration, when-idle (see --idle-if), or never")
	f.StringVar(&o.idleIf, "idle-if", "", "command for the shell that exits with 0 while the active one may be stopped; asked while a candidate is preferred")
	f.StringVar(&o.eligibleIf, "eligible-if", "", "command for the shell that exits with 0 while this candidate may lead; asked every third of the TTL (default: it always may)")
	cli.DurationVar(f, &o.minHold, "min-hold", 0, "how long to lead at least before giving way to a candidate that is preferred")
	cli.DurationVar(f, &o.drain, "drain", o.drain, "how long a command has from SIGTERM to SIGKILL when there is no hurry")
	f.StringVar(&o.onExit, "on-exit", o.onExit, "when the active command ends by itself: rejoin after a pause, or exit with its code")
	f.StringVar(&o.listen, "listen", "", "address to serve /leader, /state, /healthz, /readyz and /metrics on, to everybody (default: none)")
	f.StringVar(&o.label, "pod-label", "", "KEY=VALUE: the label to keep on the pod POD_NAME in POD_NAMESPACE while leading; the pod's account needs the verbs list on pods and patch on pods/status")
	f.StringArrayVar(&o.info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	for _, name := range []string{"ttl", "kill-after", "contain", "as", "keys"} {
		a.Flag(f, name)
	}
	return cmd
}

// electArgs explains what is wrong around NAME.
func electArgs(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return cli.Usage("NAME is missing: leasehold elect NAME -- CMD")
	case dash < 0 && len(args) > 1:
		return cli.Usage("%q is one argument too many: quote CMD as one, or write: leasehold elect %s -- %s", args[1], args[0], strings.Join(args[1:], " "))
	case dash > 1:
		return cli.Usage("%q is one argument too many before the double dash: leasehold elect NAME -- CMD", args[1])
	case dash == 1 && len(args) == 1:
		return cli.Usage("CMD is missing after the double dash: leasehold elect %s -- CMD", args[0])
	}
	return nil
}

// elector is one call of elect.
type elector struct {
	a      *app
	name   string
	opts   electOptions
	active []string // the command, with its path first
	rules  election.Options
	timing supervise.Timing
	info   map[string]string
	keys   *fence.Keys
	words  *hold.Words
	url    string
	m      *lease.Manager

	follower *follower
	endLife  context.CancelCauseFunc // of the present candidacy
	began    clock.Instant           // when the active command was started last
	leading  atomic.Bool
	sight    sight            // what --listen shows
	keeper   *podlabel.Keeper // of --pod-label; nil for none
	podLabel podlabel.Label
	events   *kubevents.Recorder // of a cluster; nil for none
	sessions sync.Map            // keys of the sessions there were
}

func (a *app) elect(ctx context.Context, name string, argv []string, o electOptions) (err error) {
	e := &elector{a: a, name: name, opts: o}
	if err := e.check(argv); err != nil {
		return err
	}
	// A reader of standard error that goes away must not end this program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	supervise.Catch()
	e.words = hold.NewWords(a.App, name)
	defer e.words.Close()
	url, _, err := a.StoreURL()
	if err != nil {
		return err
	}
	e.url = url.String()
	return a.WithStoreAgain(ctx, e.words.Say, func(st store.Store) error { return e.run(ctx, st) })
}

// check looks for all that is wrong before anything is started.
func (e *elector) check(argv []string) (err error) {
	if err := cli.HeldName(e.name); err != nil {
		return err
	}
	if err := e.checkCommands(argv); err != nil {
		return err
	}
	o := e.opts
	e.rules = election.Options{Name: e.a.Values.Get("as"), Priority: o.priority, Zone: o.zone, Zones: o.zones, MinHold: o.minHold}
	if o.failBack != failBackNever && o.failBack != failBackIdle {
		d, err := durations.Parse(o.failBack)
		if err != nil || d <= 0 {
			return cli.Usage("--fail-back %q: want never, when-idle, or a duration such as 5m", o.failBack)
		}
		e.rules.FailBack.After = d
	}
	switch {
	case o.failBack == failBackIdle && o.idleIf == "":
		return cli.Usage("--fail-back when-idle: --idle-if CMD is missing: a command that exits with 0 while the active one may be stopped")
	case o.failBack == failBackNever && o.idleIf != "":
		return cli.Usage("--idle-if and --fail-back never: a leader that never gives way isn't asked; write --fail-back when-idle")
	case o.minHold < 0:
		return cli.Usage("--min-hold %v: want a duration that is not negative", o.minHold)
	case o.minHold > 0 && o.failBack == failBackNever:
		return cli.Usage("--min-hold %v and --fail-back never: a leader that never gives way needs no minimum; give --fail-back a duration", o.minHold)
	case o.drain <= 0:
		return cli.Usage("--drain %v: want a duration above 0", o.drain)
	case o.onExit != onExitRejoin && o.onExit != onExitExit:
		return cli.Usage("--on-exit %q: want %s or %s", o.onExit, onExitRejoin, onExitExit)
	}
	if e.timing, err = e.a.Timing(); err != nil {
		return err
	}
	e.timing.Drain = o.drain
	e.rules.StopWithin = o.drain + e.timing.KillAfter + time.Second + e.unlabelWithin()
	if err := e.checkSight(); err != nil {
		return err
	}
	if e.keys, err = e.a.Keys(); err != nil {
		return err
	}
	e.info, err = hold.HolderInfo(filepath.Base(append(append(strings.Fields(o.active), argv...), "elect")[0]), o.info)
	return err
}

// checkCommands settles what is to be run.
func (e *elector) checkCommands(argv []string) error {
	switch {
	case len(argv) > 0 && e.opts.active != "":
		return cli.Usage("--on-active and CMD after the double dash are two ways to say one thing: give one")
	case len(argv) == 0 && strings.TrimSpace(e.opts.active) == "" && e.opts.listen != "" && e.opts.passive == "":
		return nil // others ask who leads
	case len(argv) == 0 && strings.TrimSpace(e.opts.active) == "":
		return cli.Usage("--on-active is missing: leasehold elect %s --on-active CMD", e.name)
	case len(argv) == 0:
		e.active = shell(e.opts.active)
		return cli.NeedProc()
	}
	path, err := hold.Find(argv[0])
	if err != nil {
		return err
	}
	e.active = append([]string{path}, argv...)
	return nil
}

// shell is the command by which the shell runs text: its path, and its arguments.
func shell(text string) []string { return []string{"/bin/sh", "sh", "-c", text} }

// run is a candidate, again after each active command that has ended by itself.
func (e *elector) run(ctx context.Context, st store.Store) (err error) {
	if url, _, err := engines.URL(e.a.App); err == nil {
		e.events = kubevents.New(url, st, e.a.Clock, func(text string) { e.words.Warn("%s: %s", e.name, text) })
		defer e.events.Close() // when the name is given back
	}
	e.m, err = lease.NewManager(st, lease.Options{
		TTL: e.timing.TTL, Renew: e.timing.Renew(), Name: e.a.Values.Get("as"), Info: e.info, Clock: e.a.Clock,
		OnRetry: e.words.Retry, OnEvent: e.event,
	})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer func() { err = errors.Join(err, e.m.Close()) }()
	e.follower = &follower{run: e.follow}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	end, err := e.show(ctx, fail)
	if err != nil {
		return err
	}
	defer end()
	if e.opts.eligibleIf != "" {
		defer e.askEligible(ctx).close()
	}
	if e.opts.idleIf != "" {
		defer e.askIdle().close()
	}
	var rest hold.Backoff
	for {
		life, end := context.WithCancelCause(ctx)
		e.endLife = end
		e.announce(ctx)
		err := election.Run(life, e.m, e.name, election.Callbacks{
			OnStartedLeading: e.lead, OnNewLeader: e.newLeader, OnStopping: e.stopping, OnStopTimeout: e.stuck, OnError: e.trouble,
		}, e.rules)
		end(nil)
		e.follower.stop()
		e.sessions.Range(func(key, _ any) bool {
			hold.ForgetSession(context.WithoutCancel(ctx), e.m, key.(string))
			e.sessions.Delete(key)
			return true
		})
		e.sight.standing.Store(false)
		if !errors.Is(err, errRejoin) {
			return hold.CantLead(e.name, err)
		}
		pause := rest.Next(e.a.Clock.Now().Sub(e.began))
		e.words.Say("%s: %v; no candidate for %v", e.name, err, pause)
		if err := clock.Sleep(ctx, e.a.Clock, pause); err != nil {
			return err
		}
	}
}

// announce says that this candidate stands, and whether that is of use.
func (e *elector) announce(ctx context.Context) {
	e.words.Say("%s: standing for election as %s", e.name, e.me())
	limited, cancel := clock.WithTimeout(ctx, e.a.Clock, e.timing.TTL/10)
	defer cancel()
	if state, err := election.ReadState(limited, e.m.Store(), e.name); err == nil && state.Pause != nil {
		e.words.Say("%s is %s: nobody leads %s", e.name, view.PauseText(view.Pause(*state.Pause), e.a.Clock.Wall()), view.PauseEnd(state.Pause.Until, e.name))
	}
}

// me is the name by which others see this candidate.
func (e *elector) me() string {
	if e.rules.Name != "" {
		return e.rules.Name
	}
	return e.m.Holder()
}

// errRejoin is matched by the end of a candidacy after which there is another one.
var errRejoin = errors.New("the active command has ended")

// rejoinError says how the active command has ended.
func rejoinError(s supervise.Status) error {
	how := fmt.Sprintf("with code %d", s.Code)
	if s.Signal != nil {
		how = fmt.Sprintf("by signal %d (%v)", s.Signal, s.Signal)
	}
	return fmt.Errorf("%w %s", errRejoin, how)
}
