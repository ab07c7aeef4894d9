// Package cli is what all commands share: one call of the program, its settings, its store, what it
// says and its exit codes.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// App is one call of the program.
type App struct {
	In       *os.File
	Out, Err *os.File // data, words
	Clock    clock.Clock
	Values   config.Values // once the flags have been read
	Hangup   hangup
	hinted   bool                            // see hintHome
	about    atomic.Pointer[fence.Sequencer] // what the log is about
}

// New returns a call of the program with its own standard input, output and error.
func New() *App {
	return &App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Clock: clock.System()}
}

// Execute runs the command of root that args name and returns the exit code.
func (a *App) Execute(root *cobra.Command, args []string) int {
	return a.ExecuteIf(root, args, func() bool { return true })
}

// ExecuteIf is Execute that says nothing, and returns [NotBegun], if begun returns false in the
// end.
func (a *App) ExecuteIf(root *cobra.Command, args []string, begun func() bool) int {
	ctx, stop := interruptible(context.Background(), &a.Hangup)
	defer stop()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if !begun() {
		return NotBegun
	}
	if sig := new(SignalError); errors.As(err, &sig) || errors.As(context.Cause(ctx), &sig) && errors.Is(err, context.Canceled) {
		return ExitSignal + int(sig.sig)
	}
	if err == nil {
		return 0
	}
	own := new(ExitError)
	if !errors.As(err, &own) {
		own = &ExitError{ExitOwn, err}
	}
	if own.err != nil {
		a.LogTo(a.Err).Error(OneLine(own.err))
	}
	return own.Code
}

// named matches the use of a command whose first argument is the name of a lease, or of a pool.
var named = regexp.MustCompile(`^\S+ [(\[]?(NAME|POOL)\b`)

// Begin is what each command begins with, for cobra.
func (a *App) Begin(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && named.MatchString(cmd.Use) {
		a.About(fence.Sequencer{Name: args[0]})
	}
	err := a.Configure(cmd)
	if err == nil && !strings.HasPrefix(cmd.Name(), "__") { // else a shell completes a line
		a.HintTypos()
	}
	return err
}

// Configure finds out what each setting is, for the command that is about to run.
func (a *App) Configure(cmd *cobra.Command) error {
	in := config.Input{Flags: map[string]string{}, Env: os.LookupEnv}
	in.Path, in.Must = config.Path(os.LookupEnv, configDir)
	cmd.Flags().Visit(func(f *pflag.Flag) { in.Flags[f.Name] = f.Value.String() })
	values, err := config.Resolve(Settings(), in)
	if err != nil {
		return Exit(ExitUsage, err)
	}
	a.Values = completed(values)
	return nil
}

// NotBegun is no exit code: the command was not begun.
const NotBegun = -1

// StoreURL returns the store that is set, and whether that is the default one.
func (a *App) StoreURL() (url StoreURL, standard bool, err error) {
	v := a.Values.Find("store")
	if v.Text == "" {
		_, err := defaultStore()
		return StoreURL{}, true, err
	}
	url, err = ParseStore(v.Text)
	return url, v.Source.Kind == config.Default, err
}

// OpenLimit is how long a process that stands in the way of opening the store is waited for.
const OpenLimit = 10 * time.Second

// Open opens the store that is set, within OpenLimit. One whose file isn't there is made if create
// says so, or if it is the default one.
func (a *App) Open(ctx context.Context, create bool) (store.Store, error) {
	ctx, cancel := clock.WithTimeout(ctx, a.Clock, OpenLimit)
	defer cancel()
	return a.openFor(ctx, create)
}

// openFor is Open for as long as ctx lasts.
func (a *App) openFor(ctx context.Context, create bool) (store.Store, error) {
	url, standard, err := a.StoreURL()
	if err != nil {
		return nil, err
	}
	if standard {
		a.hintHome()
		path := strings.TrimPrefix(url.String(), scheme+":")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("open the store: %s: its folder can't be made: %w: name a store with --store file:PATH or LEASEHOLD_STORE", path, err)
		}
	}
	return engines.Open(ctx, url, OpenOptions{MakeDir: standard, MustExist: !create && !standard, Log: a.LogTo(a.Err)})
}

// The pauses between two attempts to open a store that doesn't answer: from the first one on they
// double.
const (
	openPauseMin = 250 * time.Millisecond
	openPauseMax = 5 * time.Second
)

// OpenAgain opens the store, and retries while no server answers; say is called when the reason
// changes, and slow, once, if there is none yet after patience. It blocks until ctx is done. One
// attempt has no limit but that: a file's lock can't be given up by who waits for it, so each more
// would cost a thread and an open file.
func (a *App) OpenAgain(ctx context.Context, say func(format string, args ...any), slow func()) (store.Store, error) {
	stop := a.Clock.AfterFunc(Patience, slow)
	defer stop()
	told := ""
	for pause := openPauseMin; ; pause = min(2*pause, openPauseMax) {
		st, err := a.openFor(ctx, true)
		if err == nil || ctx.Err() != nil || !engines.Unreachable(err) {
			return st, err
		}
		if news := OneLine(err); news != told {
			stop()
			told = news
			say("waiting for the store: %s", news)
		}
		if clock.Sleep(ctx, a.Clock, pause) != nil {
			return nil, err
		}
	}
}

// WithStoreAgain is WithStore that waits for a store that doesn't answer.
func (a *App) WithStoreAgain(ctx context.Context, say func(format string, args ...any), f func(store.Store) error) error {
	st, err := a.OpenAgain(ctx, say, func() { say("%s", a.Slow()) })
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// WithStore opens the store, calls f and closes the store.
func (a *App) WithStore(ctx context.Context, create bool, f func(store.Store) error) error {
	st, err := a.Open(ctx, create)
	if err != nil {
		return err
	}
	return errors.Join(f(st), st.Close())
}

// Timing returns the timing that is set.
func (a *App) Timing() (supervise.Timing, error) {
	t := supervise.Timing{TTL: a.Duration("ttl"), KillAfter: a.Duration("kill-after")}
	if t.KillAfter == 0 {
		t.KillAfter = -1 // no time at all; 0 would be the default
	}
	t = t.WithDefaults()
	if err := t.Check(); err != nil {
		return t, Exit(ExitUsage, err)
	}
	return t, nil
}

// Contain returns how what a command starts is to be found and ended.
func (a *App) Contain() supervise.Contain { return supervise.Contain(a.Values.Get("contain")) }

// Say writes a line for people, unless they want none.
func (a *App) Say(format string, args ...any) {
	a.LogTo(a.Err).Info(fmt.Sprintf(format, args...))
}

// SayBelow is Say after something on the terminal that has not ended its line: what the user typed,
// say.
func (a *App) SayBelow(format string, args ...any) {
	if a.Plain() && !a.Quiet() {
		fmt.Fprintln(a.Err)
	}
	a.Say(format, args...)
}

// Quiet reports whether only errors are said.
func (a *App) Quiet() bool { return a.Values.Get("quiet") == "true" }

// Confirm asks on a terminal, and refuses without one, with what to do instead.
func (a *App) Confirm(ctx context.Context, question, declined, instead string) error {
	if !term.IsTerminal(int(a.In.Fd())) {
		return Usage("nobody can be asked here: %s", instead)
	}
	fmt.Fprintf(a.Err, "leasehold: %s? [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // ends with the program, if nobody answers
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answers <- line
	}()
	select {
	case answer := <-answers:
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			return nil
		}
		return Exit(ExitNo, errors.New(declined))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithManager opens the store and calls f with a manager on it. What f takes for longer than that
// it has to hand on.
func (a *App) WithManager(ctx context.Context, create bool, f func(*lease.Manager) error) error {
	return a.WithStore(ctx, create, func(st store.Store) error {
		m, err := lease.NewManager(st, lease.Options{Clock: a.Clock})
		if err != nil {
			return err
		}
		return errors.Join(f(m), m.Close())
	})
}

// WhoAmI is user@host, for people.
func WhoAmI() string {
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

// Patience is how long a wait is not worth a word when nobody is known to hold the name: the store
// just takes its time.
const Patience = time.Second

// SlowStore is said when opening a file takes long and no reason is known yet. SlowServer is said
// of another store: a server has no lock that a process could hold.
const (
	SlowStore  = "waiting for the store: another process holds its lock, or it is slow"
	SlowServer = "waiting for the store: no server has answered yet"
)

// Slow returns what is said when opening the store takes long.
func (a *App) Slow() string {
	if url, _, err := a.StoreURL(); err == nil && url.Scheme != scheme {
		return SlowServer
	}
	return SlowStore
}

// Output returns the form of output that is set.
func (a *App) Output() string { return a.Values.Get("output") }
