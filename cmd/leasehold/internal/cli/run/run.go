package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options are the flags of run that are not settings.
type Options struct {
	NoWait  bool
	Wait    time.Duration
	Limited bool // wait was given
	Info    []string
	Restart bool
	sharing
	once
}

// Job is one call of run.
type Job struct {
	App    *cli.App
	Name   string
	Argv   []string
	path   string // of argv[0]
	Opts   Options
	Timing supervise.Timing
	info   map[string]string
	keys   *fence.Keys
	Words  *hold.Words
	until  clock.Instant // when the time that --wait allows is over
	url    string
	st     store.Store
	m      *lease.Manager
	giveUp atomic.Pointer[context.CancelCauseFunc] // ends the wait for the name, while there is one

	key    string                              // of the lease, if it is known before it is taken
	Holder string                              // becomes part of the holder's id
	Taking func(context.Context) (Hold, error) // what CMD runs under
	// Variables of CMD beside those that there always are; or nil.
	More func(Hold) []string
}

func (a *app) runCommand() *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- CMD [ARG...]",
		Short: "Run a command while holding a name",
		Long: "Acquire NAME, run CMD, and release NAME when CMD and all that it started are gone. While somebody else holds NAME, wait.\n\n" +
			"Runs with --shared run side by side, and never beside one without; with --slots N up to N run at a\n" +
			"time; with --fair they are served in the order in which they came. All who use a name have to say the same.\n\n" +
			"If the lease can't be renewed, CMD gets SIGTERM, and SIGKILL --kill-after later, both before the lease ends. With the\n" +
			"defaults an outage of the store of 5 s does nothing to CMD. CMD also dies when this program does, however that happens.\n\n" +
			"On most stores a holder that died is known only by its silence for a whole TTL. So -n, and -w\n" +
			"below the TTL, remember what they saw in your state directory: the first run that meets a dead holder exits with 75, and one that comes\n" +
			"a TTL later takes the name. With -w above the TTL (20s by default) the first one does.\n\n" +
			"With --once-per 1h, CMD runs once in each hour, on one of all machines that call, though their clocks and starts differ. The other\n" +
			"calls say which holder ran it, and exit with 0 (see --done-exit-code). A turn is done once CMD was begun in it: if its machine dies then, CMD\n" +
			"doesn't run again in that turn, unless --retry-failed says so. --tick '0 3 * * *' --tz ZONE begins turns by a cron expression.\n\n" +
			"CMD finds LEASEHOLD_NAME, LEASEHOLD_TOKEN, LEASEHOLD_HOLDER and LEASEHOLD_STORE in its environment.\n\n" +
			"Exit codes: CMD's own; 128+N if signal N ended it; 75 if NAME was not acquired (see -E); 79 if the lease was lost;\n" +
			"126 if CMD can't be executed, 127 if it can't be found; 125 for other errors, 64 for a wrong command line.",
		Example: "  leasehold run billing -- ./billing-job --full\n" +
			"  leasehold run -n nightly -- ./backup.sh          # do nothing if another one is running\n" +
			"  leasehold run --once-per 24h nightly -- ./backup.sh  # cron on three machines: one of them runs it\n" +
			"  leasehold run api -w 1m --info version=1.2 -- ./api\n" +
			"  leasehold run leader --restart -- ./worker       # stand by, work, stand by again\n" +
			"  leasehold run licences --slots 3 -- ./simulate   # three at a time\n" +
			"  leasehold run data --shared -- ./report          # while nobody runs it without --shared",
		Args:              runArgs,
		ValidArgsFunction: a.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Limited = cmd.Flags().Changed("wait")
			o.limitGiven = cmd.Flags().Changed("slots")
			o.noted(cmd.Flags())
			return a.run(cmd.Context(), args[0], args[1:], o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.NoWait, "no-wait", "n", false, "don't wait for NAME")
	cli.DurationVarP(f, &o.Wait, "wait", "w", 0, "how long to wait for NAME at most (default: until it is free)")
	f.StringArrayVar(&o.Info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	f.BoolVar(&o.Restart, "restart", false, "after a loss, wait for NAME again and run CMD again")
	o.sharing.add(f)
	o.once.add(f)
	for _, name := range []string{"ttl", "kill-after", "contain", "conflict-exit-code", "as", "keys"} {
		a.Flag(f, name)
	}
	return cmd
}

func (a *app) run(ctx context.Context, name string, argv []string, o Options) error {
	if err := cli.HeldName(name); err != nil {
		return err
	}
	j := &Job{App: a.App, Name: name, key: name, Argv: argv, Opts: o, Holder: a.Values.Get("as")}
	j.Taking = j.take
	return j.Run(ctx)
}

// Run takes what CMD is to run under, runs it, and gives that back.
func (j *Job) Run(ctx context.Context) (err error) {
	if err := j.check(); err != nil {
		return err
	}
	// A reader of standard error that goes away must not end this program while CMD runs.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	j.Words = hold.NewWords(j.App, j.Name)
	defer j.Words.Close() // the words come before the error that ends the program
	if err = j.putOff(ctx); err != nil {
		return context.Cause(ctx)
	}
	j.campaign()
	if err = j.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.st.Close()) }()
	j.m, err = lease.NewManager(j.st, lease.Options{
		TTL: j.Timing.TTL, Renew: j.Timing.Renew(), Name: j.Holder, Info: j.info, Clock: j.App.Clock,
		OnWait: j.waiting, OnRetry: j.Words.Retry, OnEvent: j.Words.Event, Sightings: j.App.Sightings(),
	})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer func() { err = errors.Join(err, j.m.Close()) }()
	for {
		if err = j.once(ctx); !j.Opts.Restart || !errors.Is(err, errLost) || ctx.Err() != nil {
			return err
		}
		j.Words.Say("%v; waiting for %s again", err, j.Name)
		j.App.About(fence.Sequencer{Name: j.Name})
		j.campaign()
	}
}

// campaign begins the time that --wait allows.
func (j *Job) campaign() { j.until = j.App.Clock.Now().Add(j.Opts.Wait) }

// limited returns a context that ends with the time that --wait allows.
func (j *Job) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.Opts.Limited {
		return clock.WithTimeout(ctx, j.App.Clock, j.until.Sub(j.App.Clock.Now()))
	}
	return context.WithCancel(ctx)
}

// open opens the store. It waits for a process that stands in the way, as for the name itself.
func (j *Job) open(ctx context.Context) error {
	url, _, err := j.App.StoreURL()
	if err != nil {
		return err
	}
	j.url = url.String()
	if j.Opts.NoWait {
		j.st, err = j.App.Open(ctx, true)
		return err
	}
	j.Words.StartWait()
	defer j.Words.EndWait()
	wait, cancel := j.limited(ctx)
	defer cancel()
	j.st, err = j.App.OpenAgain(wait, j.Words.Say, j.Words.WaitForStore)
	if err != nil && wait.Err() != nil {
		return j.refusal(ctx, err)
	}
	return err
}

// check looks for everything that is wrong before anything is acquired.
func (j *Job) check() (err error) {
	if j.Opts.NoWait && j.Opts.Limited {
		return cli.Usage("--no-wait and --wait exclude each other: give one")
	}
	if j.Opts.Wait < 0 {
		return cli.Usage("--wait %v: want a duration that is not negative", j.Opts.Wait)
	}
	if err := errors.Join(j.Opts.sharing.check(), j.Opts.once.check(j.Name, j.Opts.sharing, j.Opts.Restart, j.App.Clock.Wall())); err != nil {
		return err
	}
	j.Opts.NoWait = j.Opts.NoWait || j.Opts.Limited && j.Opts.Wait == 0
	if j.Timing, err = j.App.Timing(); err != nil {
		return err
	}
	if j.path, err = hold.Find(j.Argv[0]); err != nil {
		return err
	}
	if j.keys, err = j.App.Keys(); err != nil {
		return err
	}
	j.info, err = hold.HolderInfo(filepath.Base(j.Argv[0]), j.Opts.Info)
	return err
}

// errLost is matched by the error of a run whose lease was lost.
var errLost = errors.New("lost")

// once acquires, runs CMD under the lease, and releases.
func (j *Job) once(ctx context.Context) error {
	h, err := j.acquire(ctx)
	if err != nil {
		return err
	}
	j.App.About(h.Sequencer())
	j.keepSightings(nil)
	if done, err := j.begin(h); done || err != nil {
		return err
	}
	env, err := j.environ(h)
	if err != nil {
		return errors.Join(err, j.release(h))
	}
	p, err := supervise.Start(supervise.Command{
		Path: j.path, Args: j.Argv, Env: env, Clock: j.App.Clock,
		Contain: j.App.Contain(), Contained: j.Words.Contained, Guards: j.Words.Guards,
		Proof:     driver.Proof(j.st),
		Final:     !j.Opts.Restart,
		Suspended: func() { j.Words.Suspended(h.Left()) },
	})
	if err != nil {
		return errors.Join(hold.StartError(j.Argv[0], err), j.release(h))
	}
	lost := supervise.Watch(h, p, j.Timing, j.App.Clock, func(n supervise.Notice) { j.Words.Notice(n, j.Argv[0], h.Left()) })
	cause := context.Cause(h.Context())
	if !lost {
		j.end(h, hold.Code(p.Status()))
	}
	if err := j.release(h); err != nil {
		j.Words.Say("%s", cli.OneLine(err))
	}
	if lost {
		return cli.Exit(cli.ExitLost, fmt.Errorf("%w: %s: %s", errLost, j.Name, j.lossReason(cause)))
	}
	if s := p.Status(); s.Signal != nil || s.Code != 0 {
		return hold.EndError(s)
	}
	return nil
}

// lossReason says why a lease was lost. Without a cause it was given up before its end.
func (j *Job) lossReason(cause error) string {
	var lost *lease.LostError
	if errors.As(cause, &lost) && lost.Cause != lease.CauseReleased {
		if lost.Err != nil {
			return fmt.Sprintf("%s: %v", lost.Cause, lost.Err)
		}
		return string(lost.Cause)
	}
	return fmt.Sprintf("it was not renewed in time; %s has been stopped before the lease ended", j.Argv[0])
}

// acquire takes the name, or a share of it, or says why not.
func (j *Job) acquire(ctx context.Context) (Hold, error) {
	if j.Opts.NoWait {
		h, err := j.Taking(ctx)
		if err != nil && (ctx.Err() != nil || errors.Is(err, lease.ErrHeld) || errors.Is(err, identity.ErrExhausted)) {
			err = j.refusal(ctx, err)
		}
		return h, err
	}
	j.Words.StartWait()
	defer j.Words.EndWait()
	limited, cancel := j.limited(ctx)
	defer cancel()
	wait, giveUp := context.WithCancelCause(limited)
	defer giveUp(nil)
	j.giveUp.Store(&giveUp)
	h, err := j.Taking(wait)
	if err == nil {
		return h, nil
	}
	j.withdraw()
	if wait.Err() == nil {
		return nil, err
	}
	return nil, j.refusal(ctx, err)
}

// errAbove is the cause of a wait that would never end.
var errAbove = errors.New("a command that started this one holds the name")

// waiting is told whom the acquisition waits for. It ends a wait for a holder that itself waits for
// this program.
func (j *Job) waiting(h *lease.HeldError) {
	if giveUp := j.giveUp.Load(); giveUp != nil && j.key != "" && hold.InTheWay(h, j.Opts.whole()) {
		(*giveUp)(errAbove)
		return
	}
	j.Words.WaitFor(h)
}

// withdraw frees a name that an acquisition given up halfway may have left behind.
func (j *Job) withdraw() {
	if j.key == "" {
		return // whatever took it has seen to that
	}
	ctx, cancel := clock.WithTimeout(context.Background(), j.App.Clock, time.Second)
	defer cancel()
	rec, err := store.Load(ctx, j.st, j.key)
	if err == nil && rec.Owner == j.m.Holder() {
		// Or it expires.
		_, _ = j.m.Free(ctx, j.key, lease.EndTerm{Token: rec.Token, By: cli.WhoAmI(), Reason: "given up"})
	}
}

// refusal gives the exit code of an acquisition that came to its end without the name.
func (j *Job) refusal(ctx context.Context, err error) error {
	j.keepSightings(err)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	code, _ := strconv.Atoi(j.App.Values.Get("conflict-exit-code")) // checked
	if j.App.Quiet() {
		return cli.Exit(code, nil)
	}
	var held *lease.HeldError
	if shared := new(lock.HeldError); !errors.As(err, &held) && errors.As(err, &shared) {
		return cli.Exit(code, j.above(&lease.HeldError{Err: shared}, fmt.Errorf("%s is %s", j.Name, hold.ShareHeld(shared))))
	}
	if full := new(identity.ExhaustedError); held == nil && errors.As(err, &full) {
		return cli.Exit(code, full)
	}
	if held == nil {
		return cli.Exit(code, fmt.Errorf("not acquired within %v: %w", j.Opts.Wait, err))
	}
	now := j.App.Clock.Wall()
	why := fmt.Errorf("%s is held by %s since %s (%s)", j.Name, held.Holder, output.At(held.Since, now), output.Ago(held.Since, now))
	if shared := new(lock.HeldError); errors.As(held, &shared) {
		why = fmt.Errorf("%s is %s", j.Name, hold.ShareHeld(shared))
	}
	return cli.Exit(code, j.above(held, why))
}

// above adds to why the name is held that its holder started this program, and what to do.
func (j *Job) above(held *lease.HeldError, why error) error {
	if j.key == "" || !hold.InTheWay(held, j.Opts.whole()) {
		return why
	}
	return fmt.Errorf("%w: %s", why, hold.AboveHint)
}

func (j *Job) release(h Hold) error {
	if err := h.Release(context.Background()); err != nil {
		return fmt.Errorf("the release is not confirmed, so %s is free in %v at the latest: %w", j.Name, j.Timing.TTL, err)
	}
	return nil
}

// environ is the environment of CMD.
func (j *Job) environ(h Hold) ([]string, error) {
	sequencer, err := cli.SequencerText(j.keys, h.Sequencer())
	own := []string{
		hold.EnvName + "=" + cmp.Or(j.key, h.Sequencer().Name), hold.EnvToken + "=" + h.Token().String(), hold.EnvHolder + "=" + j.m.Holder(), hold.EnvStore + "=" + j.url,
		fence.EnvVar + "=" + sequencer,
	}
	if j.Opts.limit > 0 {
		own = append(own, hold.EnvSlot+"="+strconv.Itoa(h.(*share).Slot()))
	}
	if j.More != nil {
		own = append(own, j.More(h)...)
	}
	return hold.Environment(own, hold.EnvSlot), err
}
