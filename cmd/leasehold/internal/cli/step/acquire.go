package step

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/holdfile"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// options are the flags of acquire and lock that are not settings.
type options struct {
	noWait  bool
	wait    time.Duration
	limited bool // wait was given
	info    []string
	file    string
	keep    bool
	parent  int
	onLost  string
	print   string

	locked *descriptor // lock has one, by which its keeper lives
}

func (a *app) acquireCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "acquire NAME --hold FILE (--ttl DUR | --keep)",
		Short: "Acquire a name for a script; renew and release end the hold or prolong it",
		Long: "Acquire NAME, write what proves the hold into FILE (mode 0600, which must not be there), and end. Later steps use FILE:\n" +
			"`leasehold renew --hold FILE` and `leasehold release --hold FILE`, also on another machine, on a store that both reach.\n\n" +
			"With --ttl the name stays taken for that time, and the steps renew it. With --keep a process in the background renews it\n" +
			"(Linux), until the shell that started this command ends, or the process of --parent; in $(…) say --parent $$. If that process ends\n" +
			"without a release, NAME is free a TTL later: what it started may still be at work.\n\n" +
			"Nothing stops the steps when the hold is lost, unless --on-lost term. What must not be done twice checks the token.\n" +
			"--print eval writes variables for a shell (LEASEHOLD_NAME, LEASEHOLD_TOKEN, …), --print env lines for $GITHUB_ENV or a\n" +
			"dotenv file, --print token the token alone.\n\n" +
			"Exit codes: 75 if NAME was not acquired (see -E), 128+N after signal N, 125 for other errors, 64 for a wrong command line.",
		Example: "  leasehold acquire deploy --hold deploy.hold --ttl 30m -w 10m --print env >>\"$GITHUB_ENV\"\n" +
			"  vars=$(leasehold acquire deploy --hold deploy.hold --keep --parent $$ --print eval) || exit; eval \"$vars\"",
		Args:              nameAlone,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.limited = cmd.Flags().Changed("wait")
			return a.acquire(cmd.Context(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.noWait, "no-wait", "n", false, "don't wait for NAME")
	f.DurationVarP(&o.wait, "wait", "w", 0, "how long to wait for NAME at most (default: until it is free)")
	f.StringArrayVar(&o.info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	f.StringVar(&o.file, "hold", "", "the file to make, which proves the hold")
	f.BoolVar(&o.keep, "keep", false, "renew in the background")
	f.IntVar(&o.parent, "parent", 0, "with --keep: the process with which the renewals end (default: the one that started this one)")
	f.StringVar(&o.onLost, "on-lost", lostNone, "with --keep: term sends SIGTERM to the parent and what it has started, none does nothing")
	f.StringVar(&o.print, "print", "", "write to standard output: eval, env or token")
	for _, name := range []string{"ttl", "conflict-exit-code", "as", "keys", "output"} {
		a.Flag(f, name)
	}
	return cmd
}

// What becomes of the parent when the hold is lost.
const (
	lostNone = "none"
	lostTerm = "term"
)

func (a *app) acquire(ctx context.Context, name string, o options) error {
	switch {
	case o.file == "":
		return cli.Usage("--hold is missing: the file that later steps renew and release by")
	case !o.keep && a.Values.Find("ttl").Source.Kind == config.Default:
		return cli.Usage("--ttl is missing: how long %s is held without a renewal, as --ttl 30m; or --keep, to renew it in the background", name)
	case !o.keep && (o.parent != 0 || o.onLost != lostNone):
		return cli.Usage("--parent and --on-lost are for --keep: without it nothing looks at the parent")
	case o.keep && o.parent == 0 && o.print != "" && isPipe(a.Out):
		return cli.Usage("--parent is missing: in $(…) the process that started this one may end at once: say --parent $$")
	}
	if _, err := os.Lstat(o.file); err == nil { // looked at again when it is made
		return fmt.Errorf("%s: %w: if it is that of an earlier hold, end that first: leasehold release --hold %s", o.file, holdfile.ErrExists, o.file)
	}
	return a.take(ctx, name, o)
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// check looks for everything that is wrong before anything is acquired.
func (o *options) check(name string) error {
	if err := cli.HeldName(name); err != nil {
		return err
	}
	switch {
	case o.noWait && o.limited:
		return cli.Usage("--no-wait and --wait exclude each other: give one")
	case o.wait < 0:
		return cli.Usage("--wait %v: want a duration that is not negative", o.wait)
	case o.onLost != lostNone && o.onLost != lostTerm:
		return cli.Usage("--on-lost %q: want %s or %s", o.onLost, lostTerm, lostNone)
	case o.parent < 0:
		return cli.Usage("--parent %d: want the number of a process", o.parent)
	}
	o.noWait = o.noWait || o.limited && o.wait == 0
	return checkPrint(o.print)
}

// taking is one acquisition.
type taking struct {
	*app
	name   string
	o      options
	words  *hold.Words
	st     store.Store
	m      *lease.Manager
	secret string
	giveUp context.CancelCauseFunc // ends a wait that would never end; set while it lasts
}

// take acquires the name and writes the file, and starts what keeps the hold. If anything fails on
// the way, the name is released again.
func (a *app) take(ctx context.Context, name string, o options) (err error) {
	if err := o.check(name); err != nil {
		return err
	}
	keys, err := a.Keys()
	if err != nil {
		return err
	}
	info, err := hold.HolderInfo(filepath.Base(o.title()), o.info)
	if err != nil {
		return err
	}
	var with *companion
	if o.keep || o.locked != nil {
		if with, err = newCompanion(o); err != nil {
			return err
		}
		defer with.close()
	}
	t := &taking{app: a, name: name, o: o, words: hold.NewWords(a.App, name)}
	defer t.words.Close()
	var kept string
	t.secret, kept = lessor.NewSecret()
	info[lessor.SecretInfo] = kept
	if err := t.openStore(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.st.Close()) }()
	t.m, err = lease.NewManager(t.st, lease.Options{
		TTL: a.Duration("ttl"), Name: a.Values.Get("as"), Info: info, Clock: a.Clock, Outlived: true,
		OnWait: t.waiting, OnRetry: t.words.Retry, Sightings: a.Sightings(),
	})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer func() { err = errors.Join(err, t.m.Close()) }()
	return t.hold(ctx, with, func(l *lease.Lease) error { return t.tell(ctx, l, keys) })
}

// title is what people see as the command of the hold.
func (o options) title() string {
	if o.locked != nil {
		return "leasehold lock"
	}
	return "leasehold acquire"
}

// hold makes the file, acquires, writes the file, starts the keeper and calls told. What has been
// done is undone if a later step fails.
func (t *taking) hold(ctx context.Context, with *companion, told func(*lease.Lease) error) error {
	url, _, err := t.StoreURL()
	if err != nil {
		return err
	}
	h := holdfile.Hold{Name: t.name, Holder: t.m.Holder(), Secret: t.secret, Store: url.String(), Boot: holdfile.Boot()}
	file, err := holdfile.Create(t.o.file, h)
	if err != nil {
		return err
	}
	l, err := t.wanted(ctx)
	if err != nil {
		return errors.Join(err, file.Remove())
	}
	h.Token, h.Until = l.Token(), l.ValidUntil()
	err = file.Write(h)
	if err == nil && with != nil {
		err = with.start(file, t.o, url.String(), t.Duration("ttl"))
	}
	if err == nil {
		err = told(l)
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return file.Close()
	}
	if with != nil {
		with.stop()
	}
	return errors.Join(err, t.giveBack(h), file.Remove())
}

// giveBack releases the name, which a keeper may have renewed.
func (t *taking) giveBack(h holdfile.Hold) error {
	if err := (&term{st: t.st, clk: t.Clock}).release(context.Background(), h); err != nil {
		return fmt.Errorf("the release is not confirmed, so %s is free in %v at the latest: %w", t.name, t.m.TTL(), err)
	}
	return nil
}

// limit returns a context that ends with the time that --wait allows.
func (t *taking) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.o.limited {
		return clock.WithTimeout(ctx, t.Clock, t.o.wait)
	}
	return context.WithCancel(ctx)
}

func (t *taking) openStore(ctx context.Context) (err error) {
	if t.o.noWait {
		t.st, err = t.Open(ctx, true)
		return err
	}
	t.words.StartWait()
	defer t.words.EndWait()
	wait, cancel := t.limit(ctx)
	defer cancel()
	t.st, err = t.OpenAgain(wait, t.words.Say, t.words.WaitForStore)
	if err != nil && wait.Err() != nil {
		return t.refusal(ctx, err)
	}
	return err
}

// wanted acquires the name, or says why not.
func (t *taking) wanted(ctx context.Context) (*lease.Lease, error) {
	defer func() { _ = t.m.Options().Sightings.Save() }() // the next one begins to watch
	if t.o.noWait {
		l, err := t.m.TryAcquire(ctx, t.name)
		if err != nil && (ctx.Err() != nil || errors.Is(err, lease.ErrHeld)) {
			err = t.refusal(ctx, err)
		}
		return l, err
	}
	t.words.StartWait()
	defer t.words.EndWait()
	limited, cancel := t.limit(ctx)
	defer cancel()
	wait, giveUp := context.WithCancelCause(limited)
	defer giveUp(nil)
	t.giveUp = giveUp
	l, err := t.m.Acquire(wait, t.name)
	if err == nil {
		return l, nil
	}
	t.withdraw()
	if wait.Err() == nil {
		return nil, err
	}
	return nil, t.refusal(ctx, err)
}

// errAbove is the cause of a wait that would never end.
var errAbove = errors.New("a command that started this one holds the name")

// waiting is called when the acquisition waits for a holder. It ends a wait for a command that
// itself waits for this program.
func (t *taking) waiting(h *lease.HeldError) {
	if t.giveUp != nil && above(h) {
		t.giveUp(errAbove)
		return
	}
	t.words.WaitFor(h)
}

// above reports whether a command that waits for this program has the name. The hold of an earlier
// step, of which the environment tells as well, waits for nobody, and may expire.
func above(h *lease.HeldError) bool { return os.Getenv(EnvHold) == "" && hold.InTheWay(h, true) }

// withdraw frees a name that an acquisition given up halfway may have left behind.
func (t *taking) withdraw() {
	ctx, cancel := clock.WithTimeout(context.Background(), t.Clock, time.Second)
	defer cancel()
	rec, err := store.Load(ctx, t.st, t.name)
	if err == nil && rec.Owner == t.m.Holder() {
		// Or it expires.
		_, _ = t.m.Free(ctx, t.name, lease.EndTerm{Token: rec.Token, By: cli.WhoAmI(), Reason: "given up"})
	}
}

// refusal gives the exit code of an acquisition that came to its end without the name.
func (t *taking) refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	code, _ := strconv.Atoi(t.Values.Get("conflict-exit-code")) // checked
	held := new(lease.HeldError)
	switch now := t.Clock.Wall(); {
	case t.Quiet():
		err = nil
	case errors.As(err, &held):
		err = fmt.Errorf("%s is held by %s since %s (%s)", t.name, held.Holder, output.At(held.Since, now), output.Ago(held.Since, now))
		if above(held) {
			err = fmt.Errorf("%w: %s", err, hold.AboveHint)
		}
	default:
		err = fmt.Errorf("not acquired within %v: %w", t.o.wait, err)
	}
	return cli.Exit(code, err)
}
