package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

// app is one call of the program.
type app struct {
	in       *os.File
	out, err *os.File // data, words
	clk      clock.Clock
	values   config.Values // once the flags have been read
	hangup   hangup

	observes  *lease.Observer // made when it is first needed
	book      *sightings.Book // what it saw, and others before
	observing bool            // show is to wait for a sign of life
}

func newApp() *app {
	return &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, clk: clock.System()}
}

// execute runs the command that args name and returns the exit code.
func (a *app) execute(args []string) int {
	ctx, stop := interruptible(context.Background(), &a.hangup)
	defer stop()
	root := a.root(args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if sig := new(signalError); errors.As(err, &sig) || errors.As(context.Cause(ctx), &sig) && errors.Is(err, context.Canceled) {
		return exitSignal + int(sig.sig)
	}
	if err == nil {
		return 0
	}
	own := new(exitError)
	if !errors.As(err, &own) {
		own = &exitError{exitOwn, err}
	}
	if own.err != nil {
		a.logTo(a.err).Error(oneLine(own.err))
	}
	return own.code
}

// configure finds out what each setting is, for the command that is about to run.
func (a *app) configure(cmd *cobra.Command) error {
	in := config.Input{Flags: map[string]string{}, Env: os.LookupEnv}
	in.Path, in.Must = config.Path(os.LookupEnv, configDir)
	cmd.Flags().Visit(func(f *pflag.Flag) { in.Flags[f.Name] = f.Value.String() })
	values, err := config.Resolve(settings(), in)
	if err != nil {
		return exit(exitUsage, err)
	}
	a.values = completed(values)
	return nil
}

// storeURL returns the store that is set, and whether that is the default one.
func (a *app) storeURL() (url open.URL, standard bool, err error) {
	v := a.values.Find("store")
	if v.Text == "" {
		_, err := open.Default()
		return open.URL{}, true, err
	}
	url, err = open.Parse(v.Text)
	return url, v.Source.Kind == config.Default, err
}

// openLimit is how long a process that stands in the way of opening the store is waited for.
const openLimit = 10 * time.Second

// open opens the store that is set, within openLimit. One whose file isn't there is made if create says so, or if it is the
// default one.
func (a *app) open(ctx context.Context, create bool) (store.Store, error) {
	ctx, cancel := clock.WithTimeout(ctx, a.clk, openLimit)
	defer cancel()
	return a.openFor(ctx, create)
}

// openFor is open for as long as ctx lasts.
func (a *app) openFor(ctx context.Context, create bool) (store.Store, error) {
	url, standard, err := a.storeURL()
	if err != nil {
		return nil, err
	}
	return url.Open(ctx, open.Options{CreateDir: standard, MustExist: !create && !standard, Log: a.logTo(a.err)})
}

// The pauses between two attempts to open a store that doesn't answer: from the first one on they double.
const (
	openPauseMin = 250 * time.Millisecond
	openPauseMax = 5 * time.Second
)

// openAgain opens the store, and retries while no server answers; say is called when the reason changes, and slow, once, if there is
// none yet after patience. It blocks until ctx is done. One
// attempt has no limit but that: a file's lock can't be given up by who waits for it, so each more would cost a thread and an open file.
func (a *app) openAgain(ctx context.Context, say func(format string, args ...any), slow func()) (store.Store, error) {
	stop := a.clk.AfterFunc(patience, slow)
	defer stop()
	told := ""
	for pause := openPauseMin; ; pause = min(2*pause, openPauseMax) {
		st, err := a.openFor(ctx, true)
		if err == nil || ctx.Err() != nil || !open.Unreachable(err) {
			return st, err
		}
		if news := oneLine(err); news != told {
			stop()
			told = news
			say("waiting for the store: %s", news)
		}
		if clock.Sleep(ctx, a.clk, pause) != nil {
			return nil, err
		}
	}
}

// withStoreAgain is withStore that waits for a store that doesn't answer.
func (a *app) withStoreAgain(ctx context.Context, say func(format string, args ...any), f func(store.Store) error) error {
	st, err := a.openAgain(ctx, say, func() { say(slowStore) })
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// withStore opens the store, calls f and closes the store.
func (a *app) withStore(ctx context.Context, create bool, f func(store.Store) error) error {
	st, err := a.open(ctx, create)
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// timing returns the timing that is set.
func (a *app) timing() (supervise.Timing, error) {
	t := supervise.Timing{TTL: a.duration("ttl"), KillAfter: a.duration("kill-after")}
	if t.KillAfter == 0 {
		t.KillAfter = -1 // no time at all; 0 would be the default
	}
	t = t.WithDefaults()
	if err := t.Check(); err != nil {
		return t, exit(exitUsage, err)
	}
	return t, nil
}

// contain returns how what a command starts is to be found and ended.
func (a *app) contain() supervise.Contain { return supervise.Contain(a.values.Get("contain")) }

// say writes a line for people, unless they want none.
func (a *app) say(format string, args ...any) {
	a.logTo(a.err).Info(fmt.Sprintf(format, args...))
}

// sayBelow is say after something on the terminal that has not ended its line: what the user typed, say.
func (a *app) sayBelow(format string, args ...any) {
	if a.plain() && !a.quiet() {
		fmt.Fprintln(a.err)
	}
	a.say(format, args...)
}

func (a *app) quiet() bool { return a.values.Get("quiet") == "true" }

// confirm asks on a terminal, and refuses without one, with what to do instead.
func (a *app) confirm(ctx context.Context, question, declined, instead string) error {
	if !term.IsTerminal(int(a.in.Fd())) {
		return usage("nobody can be asked here: %s", instead)
	}
	fmt.Fprintf(a.err, "leasehold: %s? [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // ends with the program, if nobody answers
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answers <- line
	}()
	select {
	case answer := <-answers:
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			return nil
		}
		return exit(exitNo, errors.New(declined))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withManager opens the store and calls f with a manager on it. What f takes for longer than that it has to hand on.
func (a *app) withManager(ctx context.Context, create bool, f func(*lease.Manager) error) error {
	return a.withStore(ctx, create, func(st store.Store) error {
		m, err := lease.NewManager(st, lease.Options{Clock: a.clk})
		if err != nil {
			return err
		}
		return errors.Join(f(m), m.Close())
	})
}

// whoAmI is user@host, for people.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return name + "@" + host
}

// patience is how long a wait is not worth a word when nobody is known to hold the name: the store just takes its time.
const patience = time.Second

// slowStore is said when opening the store takes long and no reason is known yet.
const slowStore = "waiting for the store: another process holds its lock, or it is slow"

func (a *app) output() string { return a.values.Get("output") }
