package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
)

// once is how often CMD may run, on all machines together.
type once struct {
	per     time.Duration // of each turn, where there is no tick
	tick    string        // a cron expression: a turn begins at each of its times
	tz      string        // where tick is; "" is UTC
	given   bool          // per or tick was given
	retry   bool          // a turn that failed is not done
	code    int           // the exit code where CMD is not run
	misfire string        // what becomes of a tick that CMD is late for
	grace   time.Duration // up to which CMD is not late
	ticked  bool          // tick was given
	graced  bool          // grace was given
	splay   time.Duration // over which the starts of many names are spread
	delayed time.Duration // how long the start was put off for that
}

// What becomes of a tick that CMD is late for.
const (
	misfireRun  = "run"
	misfireSkip = "skip"
)

// The bounds of a turn, and the grace by default.
const (
	minPer   = time.Second
	maxPer   = 366 * 24 * time.Hour
	anyGrace = 5 * time.Minute
)

func (o *once) add(f *pflag.FlagSet) {
	cli.DurationVar(f, &o.per, "once-per", 0, "run CMD once in each turn of that `length`, on one of all machines that call: 1h turns begin at the hour, 24h at midnight UTC, 168h on Monday")
	f.StringVar(&o.tick, "tick", "", "as --once-per, with turns that begin at the times of a cron `expression`: '0 3 * * *'")
	f.StringVar(&o.tz, "tz", "", "with --tick: the time `zone` of the expression, such as Europe/Berlin (default UTC)")
	f.StringVar(&o.misfire, "misfire", misfireRun, "with --tick: `what` to do about a time that CMD is late for: run or skip")
	cli.DurationVar(f, &o.grace, "misfire-grace", anyGrace, "with --misfire skip: how late CMD may start")
	cli.DurationVar(f, &o.splay, "splay", 0, "with --once-per or --tick: wait before the start, for less than that; how long depends on NAME")
	f.BoolVar(&o.retry, "retry-failed", false, "with --once-per or --tick: run CMD again in a turn in which it has failed, or was lost")
	f.IntVar(&o.code, "done-exit-code", 0, "with --once-per or --tick: the exit code if the turn was done before, or is skipped")
}

// noted takes note of the flags that were given.
func (o *once) noted(f *pflag.FlagSet) {
	o.ticked, o.graced = f.Changed("tick"), f.Changed("misfire-grace")
	o.given = o.ticked || f.Changed("once-per")
}

func (o once) check(name string, s sharing, restart bool, now time.Time) error {
	if err := o.checkMisfire(); err != nil {
		return err
	}
	if !o.given {
		return o.stray()
	}
	switch {
	case o.tick != "" && o.per != 0:
		return cli.Usage("--once-per and --tick exclude each other: give one")
	case o.tick == "" && (o.per < minPer || o.per > maxPer):
		return cli.Usage("--once-per %v: want 1s to 366d", o.per)
	case o.splay < 0 || o.tick == "" && o.splay >= o.per || o.splay > maxPer:
		return cli.Usage("--splay %v: want less than a turn, and not less than 0: the start is put off by up to that", o.splay)
	case o.code < 0 || o.code > 255:
		return cli.Usage("--done-exit-code %d: want 0 to 255", o.code)
	case s.shared || s.limitGiven:
		return cli.Usage("--once-per and --tick: they are for a name that one run holds alone: leave --shared and --slots out")
	case restart && !o.retry:
		return cli.Usage("--restart: with --once-per or --tick, CMD runs again in its turn only with --retry-failed: add that, or leave --restart out")
	}
	if most := store.MaxKey - len(turns.Prefix); len(name) > most {
		return cli.Usage("NAME %.40q: it has %d bytes: with --once-per and --tick, want %d at most", name, len(name), most)
	}
	_, err := o.at(now)
	return err
}

// stray says which flag of turns is there without a turn.
func (o once) stray() error {
	var flag string
	switch {
	case o.retry:
		flag = "--retry-failed"
	case o.code != 0:
		flag = "--done-exit-code"
	case o.splay != 0:
		flag = "--splay"
	default:
		return nil
	}
	return cli.Usage("%s: it belongs to --once-per DURATION or --tick EXPRESSION: add one of them, or leave %s out", flag, flag)
}

// checkMisfire checks what belongs to a tick.
func (o once) checkMisfire() error {
	skip := o.misfire == misfireSkip
	switch {
	case o.ticked && strings.TrimSpace(o.tick) == "":
		return o.badTick()
	case o.tz != "" && o.tick == "":
		return cli.Usage("--tz %s: it belongs to --tick EXPRESSION, such as --tick '0 3 * * *'", o.tz)
	case o.misfire != misfireRun && !skip && o.misfire != "":
		return cli.Usage("--misfire %q: want %s or %s", o.misfire, misfireRun, misfireSkip)
	case skip && o.tick == "":
		return cli.Usage("--misfire skip: it belongs to --tick EXPRESSION: a turn of --once-per is in time until the next one begins")
	case o.graced && !skip:
		return cli.Usage("--misfire-grace %v: it belongs to --misfire skip: add that, or leave --misfire-grace out", o.grace)
	case skip && (o.grace < time.Second || o.grace > maxPer):
		return cli.Usage("--misfire-grace %v: want 1s to 366d", o.grace)
	}
	return nil
}

// macros are the expressions without five fields.
var macros = []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}

// due is a turn as a call sees it.
type due struct {
	at    time.Time // tells it from others: see [turns.Turn]
	since time.Time // from when on it is due
	next  time.Time // from when on the one after it is; zero when there is none
}

// at returns the turn that a wall clock is in.
//
// The turns of a tick are told apart by what a clock on the wall of its zone shows, without the
// zone's offset. So a time that comes twice, when clocks are set back, is one turn; and one that is
// left out, when they are set forward, is due from then on.
func (o once) at(wall time.Time) (due, error) {
	if o.tick == "" {
		at := wall.Truncate(o.per).UTC()
		return due{at, at, at.Add(o.per)}, nil
	}
	zone, err := time.LoadLocation(o.tz)
	if err != nil || o.tz == "Local" {
		return due{}, cli.Usage("--tz %q: want a name of the time zone database, such as Europe/Berlin or UTC", o.tz)
	}
	if len(strings.Fields(o.tick)) != 5 && !slices.Contains(macros, o.tick) || !gronx.IsValid(o.tick) {
		return due{}, o.badTick()
	}
	shown := shownBy(wall.In(zone))
	at, err := gronx.PrevTickBefore(o.tick, shown, true)
	if err != nil {
		return due{}, cli.Usage("--tick %q: its time never comes: want a day of the month that the month has: %w", o.tick, err)
	}
	at = at.Truncate(time.Minute)
	d := due{at: at, since: moment(at, zone)}
	if next, err := gronx.NextTickAfter(o.tick, shown, false); err == nil {
		d.next = moment(next.Truncate(time.Minute), zone)
	}
	return d, nil
}

// badTick says what is wrong with the expression.
func (o once) badTick() error {
	const want = "want minute, hour, day, month and weekday, as in '0 3 * * *', or one of"
	fields := strings.Fields(o.tick)
	switch {
	case len(fields) == 6 && gronx.IsValid(strings.Join(fields[1:], " ")):
		return cli.Usage("--tick %q: it has 6 fields: %s %s: leave the seconds out: --tick '%s'", o.tick, want, strings.Join(macros, ", "), strings.Join(fields[1:], " "))
	case strings.HasPrefix(o.tick, "@"):
		return cli.Usage("--tick %q: it is no name of a time: %s %s", o.tick, want, strings.Join(macros, ", "))
	case len(fields) != 5:
		return cli.Usage("--tick %q: it has %d of 5 fields: %s %s; put it in quotes, so that the shell leaves each * alone", o.tick, len(fields), want, strings.Join(macros, ", "))
	}
	for i, field := range fields {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = field
		if !gronx.IsValid(strings.Join(alone, " ")) {
			mended := strings.Join(slices.Concat(fields[:i], []string{strings.TrimSuffix(strings.ToLower(field), "-sun") + "-7"}, fields[i+1:]), " ")
			if i == weekday && strings.HasSuffix(strings.ToLower(field), "-sun") && gronx.IsValid(mended) {
				return cli.Usage("--tick %q: %s: sun is 0, the first day, and 7 the last one: write --tick '%s'", o.tick, field, mended)
			}
			return cli.Usage("--tick %q: %s: want the %s, from %s: %s %s", o.tick, field, tickFields[i].name, tickFields[i].bounds, want, strings.Join(macros, ", "))
		}
	}
	return cli.Usage("--tick %q: %s %s", o.tick, want, strings.Join(macros, ", "))
}

// tickFields are the fields of an expression, and what each may be.
var tickFields = [...]struct{ name, bounds string }{
	{"minute", "0 to 59"}, {"hour", "0 to 23"}, {"day of the month", "1 to 31"}, {"month", "1 to 12, or jan to dec"}, {"weekday", "0 to 7, or sun to sat"},
}

// weekday is the last of them.
const weekday = len(tickFields) - 1

// shownBy returns what a clock on the wall shows at a moment, written as UTC.
func shownBy(t time.Time) time.Time {
	y, month, d := t.Date()
	h, m, s := t.Clock()
	return time.Date(y, month, d, h, m, s, 0, time.UTC)
}

// moment returns the first moment at which a clock on the wall of a zone shows at, or a later time
// where it leaves at out.
func moment(at time.Time, zone *time.Location) time.Time {
	var first time.Time
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := at.Add(near).In(zone).Zone()
		t := at.Add(-time.Duration(offset) * time.Second).In(zone)
		_, changes := t.ZoneBounds()
		for _, t := range []time.Time{t, changes} {
			if !t.IsZero() && !shownBy(t).Before(at) && (first.IsZero() || t.Before(first)) {
				first = t
			}
		}
	}
	return first.UTC()
}

// zone is what tells a turn's calendar.
func (o once) zone() string {
	if o.tick == "" {
		return ""
	}
	return cmp.Or(o.tz, "UTC")
}

// delay is how long a call waits before its start. It depends on the name, so that all machines
// wait alike, and a job comes after the same time each day. The wait ends before the turn does.
func (o once) delay(name string, now time.Time) time.Duration {
	d, err := o.at(now)
	if err != nil || o.splay <= 0 {
		return 0
	}
	within := o.splay
	if !d.next.IsZero() {
		within = min(within, max(d.next.Sub(now), 0))
	}
	sum := sha256.Sum256([]byte(name))
	part, _ := bits.Mul64(uint64(within), binary.BigEndian.Uint64(sum[:8])) // below within
	return time.Duration(part & math.MaxInt64)
}

// begin begins the turn that now is in, under the term of t. It returns the turn that stands in the
// way, or how late it is if that is too late; then CMD must not be run. delayed is how long the
// call has waited of its own will.
func (o once) begin(ctx context.Context, st store.Store, name string, t turns.Turn, now time.Time, delayed time.Duration) (done *turns.Turn, late time.Duration, err error) {
	d, err := o.at(now)
	if err != nil {
		return nil, 0, err
	}
	t.At, t.Zone, t.Begun, t.Next = d.at, o.zone(), now.UTC(), d.next
	if late = now.Sub(d.since) - delayed; o.misfire != misfireSkip || late <= o.grace {
		done, err = turns.Begin(ctx, st, name, t, o.retry)
		return done, 0, err
	}
	all, err := turns.Load(ctx, st, name)
	if err != nil {
		return nil, 0, err
	}
	return turns.InTheWay(all, t, o.retry), late, nil
}

// describe says for people which turn stood in the way.
func describe(t turns.Turn, now time.Time) string {
	how := "it did not end in order"
	if t.Code != nil {
		how = fmt.Sprintf("exit code %d", *t.Code)
	}
	at := output.At(t.At, now)
	if t.Zone != "" {
		at = t.At.Format("2006-01-02 15:04 ") + t.Zone
	}
	return fmt.Sprintf("the turn of %s was begun %s by %s: %s", at, output.Ago(t.Begun, now), t.Holder, how)
}

// putOff waits before the start.
func (j *Job) putOff(ctx context.Context) error {
	if j.Opts.delayed = j.Opts.delay(j.Name, j.App.Clock.Wall()); j.Opts.delayed == 0 {
		return nil
	}
	j.Words.Say("%s: its start is put off by %s (--splay %v)", j.Name, output.Roughly(j.Opts.delayed), j.Opts.splay)
	return clock.Sleep(ctx, j.App.Clock, j.Opts.delayed)
}

// begin begins the turn under h. It returns true if CMD is not to run, and then the error of the
// run.
func (j *Job) begin(h Hold) (bool, error) {
	if !j.Opts.given {
		return false, nil
	}
	now := j.App.Clock.Wall()
	t := turns.Turn{Token: h.Token(), Holder: j.m.Holder()}
	done, late, err := j.Opts.once.begin(h.Context(), j.st, j.Name, t, now, j.Opts.delayed)
	if err == nil && done == nil && late == 0 {
		return false, nil
	}
	if err := j.release(h); err != nil {
		j.Words.Say("%s", cli.OneLine(err))
	}
	switch {
	case err != nil:
		return true, fmt.Errorf("%s: its turn can't be begun, and %s was not run: %w", j.Name, j.Argv[0], err)
	case done != nil:
		j.Words.Say("%s was not run: %s", j.Argv[0], describe(*done, now))
	default:
		j.Words.Say("%s was not run: it is %s late for its turn (--misfire skip, and --misfire-grace is %v)", j.Argv[0], output.Roughly(late), j.Opts.grace)
	}
	if j.Opts.code != 0 {
		return true, cli.Exit(j.Opts.code, nil)
	}
	return true, nil
}

// end writes down how CMD has ended in its turn. If that fails, the turn has no outcome.
func (j *Job) end(h Hold, code int) {
	if !j.Opts.given {
		return
	}
	ctx, cancel := clock.WithTimeout(h.Context(), j.App.Clock, j.Timing.TTL)
	defer cancel()
	if err := turns.End(ctx, j.st, j.Name, h.Token(), code, j.App.Clock.Wall()); err != nil {
		j.Words.Say("the exit code %d of this turn is not written down: %s", code, cli.OneLine(err))
	}
}
