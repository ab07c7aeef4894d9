package shards

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// What happens when a command ends by itself.
const (
	onExitRestart = "restart"
	onExitLeave   = "leave"
)

// runOptions are the flags of shard run that are not settings.
type runOptions struct {
	shards, from  string
	hashed        bool
	slices        int
	expect        int
	address, zone string
	capacity      float64
	labels        []string
	most          int
	spread        bool
	drain         time.Duration
	onExit        string
	info          []string
}

func (a *app) runCommand() *cobra.Command {
	o := runOptions{capacity: 1, drain: 10 * time.Second, onExit: onExitRestart}
	cmd := &cobra.Command{
		Use:   "run SPACE [flags] -- CMD [ARG...]",
		Short: "Be a worker: run a command for each slice that is this worker's",
		Long: "Join SPACE as a worker, and run CMD once for each slice that this worker owns, until a signal ends this program. The first worker\n" +
			"makes the space: of names by --shards, or of hashes by --hashed. Later ones add the names that aren't there yet.\n\n" +
			"CMD finds LEASEHOLD_SHARD (the name, or the range), LEASEHOLD_SPACE, LEASEHOLD_NAME (SPACE/SHARD), LEASEHOLD_TOKEN,\n" +
			"LEASEHOLD_SEQUENCER, LEASEHOLD_HOLDER and LEASEHOLD_STORE in its environment, and of a hashed space LEASEHOLD_SHARD_FROM\n" +
			"and LEASEHOLD_SHARD_TO. It has no standard input. No two CMDs of one shard run at a time, on any machine: before a shard is another's,\n" +
			"its CMD and all that it started are gone. That holds if this program is killed, stopped, or cut off from the store.\n\n" +
			"When a shard is to move, its CMD gets SIGTERM and --drain to end. A CMD that ends by itself is started again after a pause, 1 s at\n" +
			"first, 1 min at most; with --on-exit leave this worker leaves then, and ends with CMD's exit code.\n\n" +
			"On SIGTERM or SIGINT this worker leaves: all shards are drained and handed over first. A second signal ends all at once.\n\n" +
			"Exit codes: 128+N after signal N; with --on-exit leave those of CMD; 126 and 127 if CMD can't be executed or found; 64 for a\n" +
			"wrong command line, 125 for other errors.",
		Example: "  leasehold shard run orders --shards 0-63 -- ./consumer                        # CMD reads LEASEHOLD_SHARD\n" +
			"  leasehold shard run cache --hashed --slices 256 --address 10.0.0.7:80 -- ./cache\n" +
			"  leasehold shard run tenants --shards-from tenants.txt --zone east --capacity 2 -- ./worker\n" +
			"  leasehold shard run orders -- ./consumer                                      # one more worker of a space that is there",
		Args:              runArgs,
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			j := &job{a: a, opts: o, argv: args[1:], space: shard.Space{Name: args[0], Hashed: o.hashed, Slices: o.slices, Expect: o.expect}}
			return j.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.shards, "shards", "", "the slices of a space of names: names and ranges with commas between them, as in 0-63 or east,west")
	f.StringVar(&o.from, "shards-from", "", "`FILE` with the names, one to a line; - is standard input")
	f.BoolVar(&o.hashed, "hashed", false, "a space of the 64-bit hashes of keys, cut into ranges")
	f.IntVar(&o.slices, "slices", 0, "how many ranges a new hashed space has (default 256)")
	f.IntVar(&o.expect, "expect", 0, "how many slices a new space may grow to (default: as many as it begins with)")
	f.StringVar(&o.address, "address", "", "where callers reach this worker, as lookup tells them")
	f.StringVar(&o.zone, "zone", "", "where this worker is")
	f.Float64Var(&o.capacity, "capacity", o.capacity, "how much this worker is to own, in proportion to the others")
	f.StringArrayVar(&o.labels, "label", nil, "KEY=VALUE that pins of the space go by; may be repeated")
	f.IntVar(&o.most, "max", 0, "how many slices of a new space a worker owns at most (default: any number); later: leasehold shard place")
	f.BoolVar(&o.spread, "spread-zones", false, "have each zone own its share of a new space; later: leasehold shard place")
	cli.DurationVar(f, &o.drain, "drain", o.drain, "how long CMD has from SIGTERM to SIGKILL when its shard is to move")
	f.StringVar(&o.onExit, "on-exit", o.onExit, "when CMD ends by itself: restart it after a pause, or leave")
	f.StringArrayVar(&o.info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	for _, name := range []string{"ttl", "kill-after", "contain", "as", "keys"} {
		a.Flag(f, name)
	}
	return cmd
}

// runArgs explains what is missing between SPACE and CMD.
func runArgs(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0:
		return cli.Usage("SPACE and CMD are missing: leasehold shard run SPACE --shards 0-63 -- CMD")
	case dash == 0:
		return cli.Usage("SPACE is missing: leasehold shard run SPACE -- %s", args[0])
	case dash < 0 && len(args) == 1:
		return cli.Usage("CMD is missing: leasehold shard run %s -- CMD", args[0])
	case dash < 0:
		return cli.Usage("the double dash is missing: leasehold shard run %s -- %s", args[0], args[1])
	case dash > 1:
		return cli.Usage("%q is one argument too many: leasehold shard run SPACE -- CMD", args[1])
	case len(args) == 1:
		return cli.Usage("CMD is missing after the double dash: leasehold shard run %s -- CMD", args[0])
	}
	return nil
}

// job is one call of shard run.
type job struct {
	a      *app
	space  shard.Space
	opts   runOptions
	argv   []string
	path   string // of argv[0]
	labels map[string]string
	timing supervise.Timing
	info   map[string]string
	keys   *fence.Keys
	words  *hold.Words
	url    string
	m      *lease.Manager
	owner  *shard.Owner

	end context.CancelCauseFunc // of the worker's life

	mu       sync.Mutex
	tasks    map[*shard.Slice]*task
	sessions map[string]bool // keys of those there were
}

// check looks for all that is wrong before anything is started.
func (j *job) check() (err error) {
	o := j.opts
	if err := spaceArg(j.space.Name); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.shards != "" {
		j.space.Names, err = parseNames("--shards", o.shards)
	} else if o.from != "" {
		j.space.Names, err = readNames("--shards-from", o.from, j.a.In)
	}
	if err != nil {
		return err
	}
	j.space.Placement = shard.Placement{Max: o.most, Zones: o.spread}
	if j.labels, err = parseLabels("--label", o.labels); err != nil {
		return err
	}
	if j.timing, err = j.a.Timing(); err != nil {
		return err
	}
	j.timing.Drain = o.drain
	if j.path, err = hold.Find(j.argv[0]); err != nil {
		return err
	}
	if j.path, err = filepath.Abs(j.path); err != nil {
		return err
	}
	if j.keys, err = j.a.Keys(); err != nil {
		return err
	}
	j.info, err = hold.HolderInfo(filepath.Base(j.argv[0]), o.info)
	return err
}

// check looks for flags that contradict each other, and for numbers out of range.
func (o *runOptions) check() error {
	switch {
	case o.shards != "" && o.from != "":
		return cli.Usage("--shards and --shards-from exclude each other: give one")
	case o.hashed && (o.shards != "" || o.from != ""):
		return cli.Usage("--hashed and --shards exclude each other: a hashed space has --slices N ranges")
	case o.slices != 0 && !o.hashed:
		return cli.Usage("--slices %d: belongs to --hashed; names are given by --shards 0-%d", o.slices, max(o.slices-1, 1))
	case o.slices < 0 || o.slices > maxSlices:
		return cli.Usage("--slices %d: want 1 to %d", o.slices, maxSlices)
	case o.expect < 0 || o.expect > 16*maxSlices:
		return cli.Usage("--expect %d: want 1 to %d", o.expect, 16*maxSlices)
	case o.most < 0:
		return cli.Usage("--max %d: want a number above 0, or none", o.most)
	case !(o.capacity > 0) || o.capacity > 1e6:
		return cli.Usage("--capacity %v: want a number above 0, 1 by default", o.capacity)
	case o.drain <= 0:
		return cli.Usage("--drain %v: want a duration above 0", o.drain)
	case o.onExit != onExitRestart && o.onExit != onExitLeave:
		return cli.Usage("--on-exit %q: want %s or %s", o.onExit, onExitRestart, onExitLeave)
	}
	return nil
}

const maxSlices = 1 << 20

func (j *job) run(ctx context.Context) (err error) {
	if err := j.check(); err != nil {
		return err
	}
	// A reader of standard error that goes away must not end this program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	j.words = hold.NewWords(j.a.App, j.space.Name)
	defer j.words.Close()
	url, _, err := j.a.StoreURL()
	if err != nil {
		return err
	}
	j.url = url.String()
	return j.a.WithStoreAgain(ctx, j.words.Say, func(st store.Store) error {
		return j.a.explain(ctx, st, j.space.Name, j.work(ctx, st))
	})
}

// work is the worker, from joining to leaving.
func (j *job) work(ctx context.Context, st store.Store) (err error) {
	if err := j.there(ctx, st); err != nil {
		return err
	}
	j.tasks, j.sessions = map[*shard.Slice]*task{}, map[string]bool{}
	again := make(chan os.Signal, 4)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(again, sig)
		}
	}
	defer signal.Stop(again)
	j.m, err = lease.NewManager(st, lease.Options{
		TTL: j.timing.TTL, Renew: j.timing.Renew(), Name: j.a.Values.Get("as"), Info: j.info, Clock: j.a.Clock, OnEvent: j.event,
	})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer func() { err = errors.Join(err, j.m.Close()) }()
	life, end := context.WithCancelCause(ctx)
	j.end = end
	defer end(nil)
	stop := j.keepTold()
	defer stop()
	j.owner, err = shard.Join(ctx, j.m, j.space, shard.Worker{
		Name: j.a.Values.Get("as"), Address: j.opts.address, Zone: j.opts.zone, Capacity: j.opts.capacity, Labels: j.labels,
		Start: j.start, Drain: j.drain, Stop: j.stop,
		DrainWithin: j.opts.drain + j.timing.KillAfter + time.Second,
		StopMargin:  min(j.timing.KillAfter+j.timing.Slack(), j.timing.TTL/3),
		OnError:     func(err error) { j.words.Warn("%s: %s", j.space.Name, cli.OneLine(err)) },
	})
	if err != nil {
		return err
	}
	j.words.Say("%s: joined as %s", j.space.Name, j.me())
	<-life.Done()
	j.leave(ctx, again)
	for key := range j.sessions {
		hold.ForgetSession(context.WithoutCancel(ctx), j.m, key)
	}
	return context.Cause(life)
}

// there sees that the space is there, or that it was said what it is to be.
func (j *job) there(ctx context.Context, st store.Store) error {
	info, err := shard.Describe(ctx, st, j.space.Name)
	switch said := j.opts.hashed || j.space.Names != nil; {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case err != nil && !said:
		return cli.Usage("there is no space %s yet: to make it, give --shards 0-63, --shards-from FILE, or --hashed%s", j.space.Name, j.a.otherSpaces(ctx, st))
	case err != nil:
		return nil
	case !said:
		j.space.Hashed = info.Hashed
	case info.Hashed != j.opts.hashed:
		return cli.Usage("the space %s is %s: leave --shards and --hashed out, or use another name", j.space.Name, kindOf(info.Hashed))
	}
	if p := j.space.Placement; p.Max != 0 && p.Max != info.Placement.Max || p.Zones && !info.Placement.Zones {
		j.words.Warn("%s: --max and --spread-zones are for a new space: `leasehold shard place %s` changes them", j.space.Name, j.space.Name)
	}
	return nil
}

func kindOf(hashed bool) string {
	if hashed {
		return "one of hashes"
	}
	return "one of names"
}

// me is the name by which others see this worker.
func (j *job) me() string {
	if as := j.a.Values.Get("as"); as != "" {
		return as
	}
	return j.m.Holder()
}

// leave drains all, and hands all over, until a second signal or the time limit ends all at once.
func (j *job) leave(ctx context.Context, again <-chan os.Signal) {
	limit := j.opts.drain + j.timing.KillAfter + leaveTTLs*j.timing.TTL
	leaving, cancel := clock.WithTimeout(context.WithoutCancel(ctx), j.a.Clock, limit)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	listening.Go(func() {
		if ctx.Err() != nil { // the first is what this is about
			_ = clock.Sleep(leaving, j.a.Clock, sameOrder)
			for len(again) > 0 {
				<-again
			}
		}
		select {
		case <-again:
		case <-ended:
			return
		}
		j.words.Say("%s: another signal: ending all at once", j.space.Name)
		cancel()
	})
	if n := j.running(); n > 0 {
		j.words.Say("%s: leaving: %d to drain and to hand over", j.space.Name, n)
	}
	if err := j.owner.Leave(leaving); err != nil {
		j.words.Say("%s: left without handing all over: the others have it as soon as they look", j.space.Name)
		return
	}
	j.words.Say("%s: left", j.space.Name)
}

// sameOrder is within what signals are one order: timeout(1) signals the process, and then its
// group.
const sameOrder = 100 * time.Millisecond

// leaveTTLs is how long leaving may take beside the drain, in TTLs.
const leaveTTLs = 3

// event says what becomes of the session.
func (j *job) event(ev lease.Event) {
	if keyspace.OwnerOf(ev.Name) == "" {
		return // the assigner's lease
	}
	j.mu.Lock()
	j.sessions[ev.Name] = true
	j.mu.Unlock()
	switch ev.State {
	case lease.StateJeopardy:
		j.words.SayOf(slog.LevelWarn, ev, "%s: the session can't be renewed, and ends in %v unless that changes: %s", j.space.Name, ev.Left.Round(100*time.Millisecond), cli.OneLine(ev.Err))
	case lease.StateLost:
		j.words.SayOf(slog.LevelWarn, ev, "%s: the session is lost, joining again: %s", j.space.Name, cli.OneLine(ev.Err))
	}
}

// keepTold tells the hosts of all commands until when they are valid, until the function that it
// returns is called.
func (j *job) keepTold() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for clock.Sleep(ctx, j.a.Clock, j.timing.TTL/tellEach) == nil {
			j.mu.Lock()
			for s, t := range j.tasks {
				t.until(s.ValidUntil())
			}
			j.mu.Unlock()
		}
	})
	return func() { cancel(); wg.Wait() }
}

// tellEach is how often in a TTL hosts hear of it, if there is news. A renewal comes every quarter.
const tellEach = 40

// running returns how many slices have a command.
func (j *job) running() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.tasks)
}

// proof is what the guards of a command keep open.
func (j *job) proof() []*os.File { return driver.Proof(j.m.Store()) }

// name is how a slice is called in words.
func (j *job) name(s *shard.Slice) string { return fmt.Sprintf("%s %s", j.space.Name, s.ID()) }
