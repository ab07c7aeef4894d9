package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// once is how often CMD may run, on all machines together.
type once struct {
	per   time.Duration // of each turn, where there is no tick
	tick  string        // a cron expression: a turn begins at each of its times
	tz    string        // where tick is; "" is UTC
	given bool          // per or tick was given
	retry bool          // a turn that failed is not done
	code  int           // the exit code where the turn was done before
}

// The bounds of a turn.
const (
	minPer = time.Second
	maxPer = 366 * 24 * time.Hour
)

func (o *once) add(f *pflag.FlagSet) {
	cli.DurationVar(f, &o.per, "once-per", 0, "run CMD once in each turn of that `length`, on one of all machines that call: 1h turns begin at the hour, 24h at midnight UTC, 168h on Monday")
	f.StringVar(&o.tick, "tick", "", "as --once-per, with turns that begin at the times of a cron `expression`: '0 3 * * *'")
	f.StringVar(&o.tz, "tz", "", "with --tick: the time `zone` of the expression, such as Europe/Berlin (default UTC)")
	f.BoolVar(&o.retry, "retry-failed", false, "with --once-per or --tick: run CMD again in a turn in which it has failed, or was lost")
	f.IntVar(&o.code, "done-exit-code", 0, "with --once-per or --tick: the exit code if the turn was done before")
}

func (o once) check(s sharing, restart bool, now time.Time) error {
	switch {
	case !o.given && o.retry:
		return cli.Usage("--retry-failed: it belongs to --once-per DURATION or --tick EXPRESSION")
	case !o.given && o.code != 0:
		return cli.Usage("--done-exit-code: it belongs to --once-per DURATION or --tick EXPRESSION")
	case o.tz != "" && o.tick == "":
		return cli.Usage("--tz: it belongs to --tick EXPRESSION")
	case !o.given:
		return nil
	case o.tick != "" && o.per != 0:
		return cli.Usage("--once-per and --tick exclude each other: give one")
	case o.tick == "" && (o.per < minPer || o.per > maxPer):
		return cli.Usage("--once-per %v: want %v to %v", o.per, minPer, maxPer)
	case o.code < 0 || o.code > 255:
		return cli.Usage("--done-exit-code %d: want 0 to 255", o.code)
	case s.shared || s.limitGiven:
		return cli.Usage("--once-per and --tick: they are for a name that one run holds alone: leave --shared and --slots out")
	case restart && !o.retry:
		return cli.Usage("--restart: with --once-per or --tick, CMD runs again in its turn only with --retry-failed: add that, or leave --restart out")
	}
	_, err := o.at(now)
	return err
}

// turnPrefix begins the keys of the records of turns; the name follows.
const turnPrefix = ".turn/"

// turn is the last turn of a name in which CMD was begun. It is the data of a record beside that of
// the name, since nobody but its holder may change the latter. The token fences it: a holder of an earlier term can't
// change what a later one has begun.
type turn struct {
	At     time.Time   `json:"at"`             // when the turn begins, as the calendar of Zone has it, written as UTC: what tells it from all others
	Zone   string      `json:"zone,omitempty"` // of a tick
	Token  fence.Token `json:"token"`
	Holder string      `json:"holder"`
	Begun  time.Time   `json:"begun"`          // by the holder's wall clock, for people
	Code   *int        `json:"code,omitempty"` // CMD's exit code; nil while it runs, and for ever if it was lost
}

type turnData struct {
	Format int   `json:"v"`
	Turn   *turn `json:"turn,omitempty"`
}

const turnFormat = 1

// macros are the expressions without five fields.
var macros = []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}

// at returns the turn that a wall clock is in.
//
// The turns of a tick are told apart by what a clock on the wall of its zone shows, without the zone's offset. So a
// time that comes twice, when clocks are set back, is one turn; and one that is left out, when they are set forward, is due from then on.
func (o once) at(wall time.Time) (time.Time, error) {
	if o.tick == "" {
		return wall.Truncate(o.per).UTC(), nil
	}
	zone, err := time.LoadLocation(o.tz)
	if err != nil || o.tz == "Local" {
		return time.Time{}, cli.Usage("--tz %q: want a name of the time zone database, such as Europe/Berlin, which has to be installed (tzdata)", o.tz)
	}
	if len(strings.Fields(o.tick)) != 5 && !slices.Contains(macros, o.tick) || !gronx.IsValid(o.tick) {
		return time.Time{}, cli.Usage("--tick %q: want minute, hour, day, month and weekday, as in '0 3 * * *', or one of %s", o.tick, strings.Join(macros, ", "))
	}
	y, month, d := wall.In(zone).Date()
	h, m, s := wall.In(zone).Clock()
	at, err := gronx.PrevTickBefore(o.tick, time.Date(y, month, d, h, m, s, 0, time.UTC), true)
	if err != nil {
		return time.Time{}, cli.Usage("--tick %q: it has had no time yet: %w", o.tick, err)
	}
	return at.Truncate(time.Minute), nil
}

// zone is what tells a turn's calendar.
func (o once) zone() string {
	if o.tick == "" {
		return ""
	}
	return cmp.Or(o.tz, "UTC")
}

// failed reports whether a turn may be run again with --retry-failed. Its holder has the name no more.
func (t turn) failed() bool { return t.Code == nil || *t.Code != 0 }

func (t turn) describe(now time.Time) string {
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

func readTurn(rec store.Record) (last *turn, err error) {
	d := turnData{Format: turnFormat}
	if len(rec.Data) > 0 {
		err = json.Unmarshal(rec.Data, &d)
	}
	if err != nil {
		return nil, driver.Corrupt(rec.Key, err)
	}
	if d.Format != turnFormat {
		return nil, driver.Corrupt(rec.Key, fmt.Errorf("its last turn is in format %d: this version reads format %d", d.Format, turnFormat))
	}
	return d.Turn, nil
}

// errTerm says that a later term has begun a turn, so nothing may be written under this one.
var errTerm = errors.New("the term is over")

// changeTurn lets f change the last turn of a name, unless a later term has begun one.
func changeTurn(ctx context.Context, st store.Store, name string, token fence.Token, f func(*turn) *turn) error {
	return store.Update(ctx, st, turnPrefix+name, func(rec *store.Record) (bool, error) {
		last, err := readTurn(*rec)
		if err != nil {
			return false, err
		}
		if last != nil && last.Token > token {
			return false, fmt.Errorf("%s: token %d: %w: token %d has begun a turn", name, token, errTerm, last.Token)
		}
		next := f(last)
		if next == nil {
			return false, nil
		}
		rec.Data, err = json.Marshal(turnData{turnFormat, next})
		return err == nil, err
	})
}

// beginTurn writes under a term that the turn is begun. Nobody begins it a second time then, unless it is to
// be retried. It returns the turn that stands in the way instead, which is this one or a later one: the last
// one counts, whatever the wall clocks of its holder and of this one say.
//
// After an error the turn may have been begun, without CMD.
func beginTurn(ctx context.Context, st store.Store, name string, t turn, retry bool) (done *turn, err error) {
	err = changeTurn(ctx, st, name, t.Token, func(last *turn) *turn {
		done = nil
		switch {
		case last == nil || t.At.After(last.At):
			return &t
		case last.Token == t.Token: // this very write, which landed
			return nil
		case t.At.Equal(last.At) && retry && last.failed():
			return &t
		}
		done = last
		return nil
	})
	return done, err
}

// endTurn writes down CMD's exit code.
func endTurn(ctx context.Context, st store.Store, name string, token fence.Token, code int) error {
	return changeTurn(ctx, st, name, token, func(last *turn) *turn {
		if last == nil || last.Token != token || last.Code != nil {
			return nil
		}
		last.Code = &code
		return last
	})
}

// begin begins the turn under h. It returns true if CMD is not to run, and then the error of the run.
func (j *Job) begin(h Hold) (bool, error) {
	if !j.Opts.given {
		return false, nil
	}
	now := j.App.Clock.Wall()
	at, err := j.Opts.at(now)
	var done *turn
	if err == nil {
		t := turn{At: at, Zone: j.Opts.zone(), Token: h.Token(), Holder: j.m.Holder(), Begun: now.UTC()}
		done, err = beginTurn(h.Context(), j.st, j.Name, t, j.Opts.retry)
	}
	if err == nil && done == nil {
		return false, nil
	}
	if err := j.release(h); err != nil {
		j.Words.Say("%s", cli.OneLine(err))
	}
	if err != nil {
		return true, fmt.Errorf("%s: its turn can't be begun, and %s was not run: %w", j.Name, j.Argv[0], err)
	}
	j.Words.Say("%s was not run: %s", j.Argv[0], done.describe(now))
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
	if err := endTurn(ctx, j.st, j.Name, h.Token(), code); err != nil {
		j.Words.Say("the exit code %d of this turn is not written down: %s", code, cli.OneLine(err))
	}
}
