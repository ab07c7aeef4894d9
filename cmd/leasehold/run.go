package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The environment of CMD.
const (
	envName   = "LEASEHOLD_NAME"
	envToken  = "LEASEHOLD_TOKEN"
	envHolder = "LEASEHOLD_HOLDER"
	envStore  = "LEASEHOLD_STORE"
	envSlot   = "LEASEHOLD_SLOT"
)

// runOptions are the flags of run that are not settings.
type runOptions struct {
	noWait  bool
	wait    time.Duration
	limited bool // wait was given
	info    []string
	restart bool
	sharing
}

// job is one call of run.
type job struct {
	a      *app
	name   string
	argv   []string
	path   string // of argv[0]
	opts   runOptions
	timing supervise.Timing
	info   map[string]string
	keys   *fence.Keys
	words  *words
	until  clock.Instant // when the time that --wait allows is over
	url    string
	st     store.Store
	m      *lease.Manager

	key    string                              // of the lease, if it is known before it is taken
	holder string                              // becomes part of the holder's id
	taking func(context.Context) (hold, error) // what CMD runs under
	more   func(hold) []string                 // variables of CMD beside those that there always are; or nil
}

func (a *app) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- CMD [ARG...]",
		Short: "Run a command while holding a name",
		Long: "Acquire NAME, run CMD, and release NAME when CMD and all that it started are gone. While somebody else holds NAME, wait.\n\n" +
			"Whoever runs with --shared runs beside others who do, and never beside one who doesn't; with --slots N up to N run at a\n" +
			"time; with --fair they are served in the order in which they came. All who use a name have to say the same.\n\n" +
			"If the lease can't be renewed, CMD gets SIGTERM, and SIGKILL --kill-after later, both before the lease ends. With the\n" +
			"defaults an outage of the store of 5 s does nothing to CMD. CMD also dies when this program does, however that happens.\n\n" +
			"On most stores a holder that died is known only by its silence for a whole TTL. So -n, and -w\n" +
			"below the TTL, remember what they saw in your state directory: the first run that meets a dead holder exits with 75, and one that comes\n" +
			"a TTL later takes the name. With -w above the TTL (20s by default) the first one does.\n\n" +
			"CMD finds LEASEHOLD_NAME, LEASEHOLD_TOKEN, LEASEHOLD_HOLDER and LEASEHOLD_STORE in its environment.\n\n" +
			"Exit codes: CMD's own; 128+N if signal N ended it; 75 if NAME was not acquired (see -E); 79 if the lease was lost;\n" +
			"126 if CMD can't be executed, 127 if it can't be found; 125 for other errors, 64 for a wrong command line.",
		Example: "  leasehold run billing -- ./billing-job --full\n" +
			"  leasehold run -n nightly -- ./backup.sh          # do nothing if another one is running\n" +
			"  leasehold run api -w 1m --info version=1.2 -- ./api\n" +
			"  leasehold run leader --restart -- ./worker       # stand by, work, stand by again\n" +
			"  leasehold run licences --slots 3 -- ./simulate   # three at a time\n" +
			"  leasehold run data --shared -- ./report          # while nobody runs it without --shared",
		Args:              runArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.limited = cmd.Flags().Changed("wait")
			o.limitGiven = cmd.Flags().Changed("slots")
			return a.run(cmd.Context(), args[0], args[1:], o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.noWait, "no-wait", "n", false, "don't wait for NAME")
	f.DurationVarP(&o.wait, "wait", "w", 0, "wait for NAME for so long at most (default: until it is free)")
	f.StringArrayVar(&o.info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	f.BoolVar(&o.restart, "restart", false, "after a loss, wait for NAME again and run CMD again")
	o.sharing.add(f)
	for _, name := range []string{"ttl", "kill-after", "contain", "conflict-exit-code", "as", "keys"} {
		a.flag(f, name)
	}
	return cmd
}

// runArgs explains what is missing between NAME and CMD.
func runArgs(cmd *cobra.Command, args []string) error {
	dash, path := cmd.ArgsLenAtDash(), cmd.CommandPath()
	switch {
	case len(args) == 0:
		return usage("NAME and CMD are missing: %s NAME -- CMD", path)
	case dash < 0 && len(args) == 1:
		return usage("CMD is missing: %s %s -- CMD", path, args[0])
	case dash < 0:
		return usage("a double dash is missing before CMD: %s %s -- %s", path, args[0], strings.Join(args[1:], " "))
	case dash == 0:
		return usage("NAME is missing before the double dash: %s NAME -- %s", path, strings.Join(args, " "))
	case dash > 1:
		return usage("%q is one argument too many before the double dash: %s NAME -- CMD", args[1], path)
	case len(args) == 1:
		return usage("CMD is missing after the double dash: %s %s -- CMD", path, args[0])
	}
	return nil
}

func (a *app) run(ctx context.Context, name string, argv []string, o runOptions) error {
	if err := heldName(name); err != nil {
		return err
	}
	j := &job{a: a, name: name, key: name, argv: argv, opts: o, holder: a.values.Get("as")}
	j.taking = j.take
	return j.run(ctx)
}

// run takes what CMD is to run under, runs it, and gives that back.
func (j *job) run(ctx context.Context) (err error) {
	if err := j.check(); err != nil {
		return err
	}
	// A reader of standard error that goes away must not end this program while CMD runs.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	j.words = newWords(j.a, j.name)
	defer j.words.close() // the words come before the error that ends the program
	j.campaign()
	if err = j.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.st.Close()) }()
	j.m, err = lease.NewManager(j.st, lease.Options{
		TTL: j.timing.TTL, Renew: j.timing.Renew(), Name: j.holder, Info: j.info, Clock: j.a.clk,
		OnWait: j.words.waitFor, OnRetry: j.words.retry, OnEvent: j.words.event, Sightings: j.a.sightings(),
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer func() { err = errors.Join(err, j.m.Close()) }()
	for {
		if err = j.once(ctx); !j.opts.restart || !errors.Is(err, errLost) || ctx.Err() != nil {
			return err
		}
		j.words.say("%v; waiting for %s again", err, j.name)
		j.campaign()
	}
}

// campaign begins the time that --wait allows.
func (j *job) campaign() { j.until = j.a.clk.Now().Add(j.opts.wait) }

// limited returns a context that ends with the time that --wait allows.
func (j *job) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.opts.limited {
		return clock.WithTimeout(ctx, j.a.clk, j.until.Sub(j.a.clk.Now()))
	}
	return context.WithCancel(ctx)
}

// open opens the store. It waits for a process that stands in the way, as for the name itself.
func (j *job) open(ctx context.Context) error {
	url, _, err := j.a.storeURL()
	if err != nil {
		return err
	}
	j.url = url.String()
	if j.opts.noWait {
		j.st, err = j.a.open(ctx, true)
		return err
	}
	j.words.startWait()
	defer j.words.endWait()
	wait, cancel := j.limited(ctx)
	defer cancel()
	j.st, err = j.a.openAgain(wait, j.words.say, j.words.waitForStore)
	if err != nil && wait.Err() != nil {
		return j.refusal(ctx, err)
	}
	return err
}

// check looks for everything that is wrong before anything is acquired.
func (j *job) check() (err error) {
	if j.opts.noWait && j.opts.limited {
		return usage("--no-wait and --wait exclude each other: give one")
	}
	if j.opts.wait < 0 {
		return usage("--wait %v: want a duration that is not negative", j.opts.wait)
	}
	if err := j.opts.sharing.check(); err != nil {
		return err
	}
	j.opts.noWait = j.opts.noWait || j.opts.limited && j.opts.wait == 0
	if j.timing, err = j.a.timing(); err != nil {
		return err
	}
	if j.path, err = exec.LookPath(j.argv[0]); err != nil && !errors.Is(err, exec.ErrDot) {
		return startError(j.argv[0], err)
	}
	if j.keys, err = j.a.keys(); err != nil {
		return err
	}
	j.info, err = info(filepath.Base(j.argv[0]), j.opts.info)
	return err
}

// info is what people see of a hold under which command runs, with the pairs of --info.
func info(command string, pairs []string) (map[string]string, error) {
	all := map[string]string{"command": command, "user": whoAmI()}
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, usage("--info %q: want KEY=VALUE", pair)
		}
		all[k] = v
	}
	return all, nil
}

// startError gives the exit code of a command that could not be started.
func startError(cmd string, err error) error {
	var why syscall.Errno
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return &exitError{exitMissing, fmt.Errorf("%s: there is no such command in $PATH", cmd)}
	case errors.Is(err, fs.ErrNotExist):
		return &exitError{exitMissing, fmt.Errorf("%s: not found (it, or the interpreter in its first line)", cmd)}
	case errors.As(err, &why) && why == syscall.ENOEXEC:
		return &exitError{exitCannot, fmt.Errorf("%s: not an executable for this machine; a script needs a first line like #!/bin/sh", cmd)}
	case errors.Is(err, fs.ErrPermission):
		return &exitError{exitCannot, fmt.Errorf("%s: not executable by this user: chmod +x, perhaps", cmd)}
	}
	return &exitError{exitCannot, fmt.Errorf("%s: can't be executed: %w", cmd, err)}
}

// errLost is matched by the error of a run whose lease was lost.
var errLost = errors.New("lost")

// once acquires, runs CMD under the lease, and releases.
func (j *job) once(ctx context.Context) error {
	h, err := j.acquire(ctx)
	if err != nil {
		return err
	}
	j.keepSightings(nil)
	env, err := j.environ(h)
	if err != nil {
		return errors.Join(err, j.release(h))
	}
	p, err := supervise.Start(supervise.Command{
		Path: j.path, Args: j.argv, Env: env, Clock: j.a.clk,
		Contain: j.a.contain(), Contained: j.words.contained, Guards: j.words.guards,
		Proof:     driver.Proof(j.st),
		Suspended: func() { j.words.suspended(leftOf(h, j.a.clk)) },
	})
	if err != nil {
		return errors.Join(startError(j.argv[0], err), j.release(h))
	}
	lost := supervise.Watch(h, p, j.timing, j.a.clk, func(n supervise.Notice) { j.words.notice(n, j.argv[0], leftOf(h, j.a.clk)) })
	cause := context.Cause(h.Context())
	if err := j.release(h); err != nil {
		j.words.say("%s", oneLine(err))
	}
	if lost {
		return &exitError{exitLost, fmt.Errorf("%w: %s: %s", errLost, j.name, j.lossReason(cause))}
	}
	switch s := p.Status(); {
	case s.Signal != nil:
		sig, _ := s.Signal.(syscall.Signal)
		return &exitError{code: exitSignal + int(sig)}
	case s.Code != 0:
		return &exitError{code: s.Code}
	}
	return nil
}

// lossReason says why a lease was lost. Without a cause it was given up before its end.
func (j *job) lossReason(cause error) string {
	var lost *lease.LostError
	if errors.As(cause, &lost) && lost.Cause != lease.Released {
		if lost.Err != nil {
			return fmt.Sprintf("%s: %v", lost.Cause, lost.Err)
		}
		return string(lost.Cause)
	}
	return fmt.Sprintf("it was not renewed in time; %s has been stopped before the lease ended", j.argv[0])
}

// acquire takes the name, or a share of it, or says why not.
func (j *job) acquire(ctx context.Context) (hold, error) {
	if j.opts.noWait {
		h, err := j.taking(ctx)
		if err != nil && (ctx.Err() != nil || errors.Is(err, lease.ErrHeld) || errors.Is(err, identity.ErrExhausted)) {
			err = j.refusal(ctx, err)
		}
		return h, err
	}
	j.words.startWait()
	defer j.words.endWait()
	wait, cancel := j.limited(ctx)
	defer cancel()
	h, err := j.taking(wait)
	if err == nil {
		return h, nil
	}
	j.withdraw()
	if wait.Err() == nil {
		return nil, err
	}
	return nil, j.refusal(ctx, err)
}

// withdraw frees a name that an acquisition given up halfway may have left behind.
func (j *job) withdraw() {
	if j.key == "" {
		return // whatever took it has seen to that
	}
	ctx, cancel := clock.WithTimeout(context.Background(), j.a.clk, time.Second)
	defer cancel()
	rec, err := store.Load(ctx, j.st, j.key)
	if err == nil && rec.Owner == j.m.Owner() {
		_, _ = lease.Free(ctx, j.st, j.key, lease.Eviction{Token: rec.Token, By: whoAmI(), Note: "given up"}) // or it expires
	}
}

// refusal gives the exit code of an acquisition that came to its end without the name.
func (j *job) refusal(ctx context.Context, err error) error {
	j.keepSightings(err)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	code, _ := strconv.Atoi(j.a.values.Get("conflict-exit-code")) // checked
	if j.a.quiet() {
		return &exitError{code: code}
	}
	var held *lease.HeldError
	if shared := new(lock.HeldError); !errors.As(err, &held) && errors.As(err, &shared) {
		return &exitError{code, fmt.Errorf("%s is %s", j.name, shareHeld(shared))}
	}
	if full := new(identity.ExhaustedError); held == nil && errors.As(err, &full) {
		return &exitError{code, full}
	}
	if held == nil {
		return &exitError{code, fmt.Errorf("not acquired within %v: %w", j.opts.wait, err)}
	}
	now := j.a.clk.Wall()
	why := fmt.Errorf("%s is held by %s since %s (%s)", j.name, held.Owner, at(held.Since, now), ago(held.Since, now))
	if held.Owner == os.Getenv(envHolder) {
		why = fmt.Errorf("%w: the very command that started this one", why)
	}
	return &exitError{code, why}
}

func (j *job) release(h hold) error {
	if err := h.Release(context.Background()); err != nil {
		return fmt.Errorf("the release is not confirmed, so %s is free in %v at the latest: %w", j.name, j.timing.TTL, err)
	}
	return nil
}

// environ is the environment of CMD.
func (j *job) environ(h hold) ([]string, error) {
	sequencer, err := sequencerText(j.keys, h.Sequencer())
	own := []string{
		envName + "=" + cmp.Or(j.key, h.Sequencer().Name), envToken + "=" + h.Token().String(), envHolder + "=" + j.m.Owner(), envStore + "=" + j.url,
		fence.EnvVar + "=" + sequencer,
	}
	if j.opts.limit > 0 {
		own = append(own, envSlot+"="+strconv.Itoa(h.(*share).Slot()))
	}
	if j.more != nil {
		own = append(own, j.more(h)...)
	}
	return environment(own, envSlot), err
}
