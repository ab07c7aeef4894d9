package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The defaults and bounds of [Options].
const (
	DefaultOlderThan = 30 * 24 * time.Hour
	LeastOlderThan   = time.Hour
	DefaultObserve   = time.Minute
)

const whyAnHour = "a name that is deleted forgets its token, and the next holder's would be lower if its clock is behind by more than that"

// Options of a sweep. The zero value is right for most stores.
type Options struct {
	// OlderThan is the least time for which a name has been free, or a lock or an election unused.
	// The default is 30 days, and an hour the least. No clock of a holder may be behind by that
	// much: see the package's doc.
	OlderThan time.Duration

	// Prefix, if set, limits the sweep to names that begin with it, and to their locks and
	// elections. Sessions are swept only with all names.
	Prefix string

	// Observe bounds how long the sweep watches held names, to see whose holder is gone. The
	// default is a minute.
	Observe time.Duration

	// DryRun changes nothing. It finds the same, and takes as long.
	DryRun bool

	// Clock is where time comes from; [clock.System] by default.
	Clock clock.Clock

	// Tell, if set, is called for each record that is, or would be, changed or deleted. Run's
	// goroutine calls it.
	OnFinding func(Finding)
}

// Action is what a sweep does with a record.
type Action string

// The actions.
const (
	Deleted Action = "deleted"
	Freed   Action = "freed"  // an abandoned hold
	Closed  Action = "closed" // an abandoned session
	Pruned  Action = "pruned" // of members that are gone, or noted as unused
	Kept    Action = "kept"   // it looks like garbage, and isn't
)

// Finding is one record, and what became of it, or would in a dry run.
type Finding struct {
	Key    string
	Action Action
	Why    string
}

func (f Finding) String() string { return fmt.Sprintf("%s %s: %s", f.Action, f.Key, f.Why) }

// Report is what a sweep has done, or would have in a dry run.
type Report struct {
	Records   int            // that were looked at
	Actions   map[Action]int // findings of each kind
	Overtaken int            // records that somebody else changed in between
	Unsettled int            // holds that would have to be watched for longer than Observe
}

func (o Options) check() (Options, error) {
	if o.OlderThan == 0 {
		o.OlderThan = DefaultOlderThan
	}
	if o.OlderThan < LeastOlderThan {
		return o, &store.InvalidError{Field: "OlderThan", Value: o.OlderThan.String(), Want: fmt.Sprintf("%v at least: %s", LeastOlderThan, whyAnHour)}
	}
	if o.Observe == 0 {
		o.Observe = DefaultObserve
	}
	if o.Observe < 0 {
		return o, &store.InvalidError{Field: "Observe", Value: o.Observe.String(), Want: "a duration above 0, or 0, which means " + DefaultObserve.String()}
	}
	if keyspace.Reserved(o.Prefix) {
		return o, &store.InvalidError{
			Field: "Prefix", Value: fmt.Sprintf("%.60q", o.Prefix), Want: "the beginning of names, which have no dot there; what is Leasehold's own is swept with the names",
		}
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, driver.CheckPrefix(o.Prefix)
}

// Run sweeps st. It blocks until the sweep is done, or until ctx is done. It may be stopped at any
// point, and several may run at a time. A failure with one record doesn't keep Run from the others:
// the error then joins all failures. After one that matches [store.ErrUnknownOutcome] the next
// sweep sees the outcome.
func Run(ctx context.Context, st store.Store, opts Options) (Report, error) {
	opts, err := opts.check()
	if err != nil {
		return Report{}, fmt.Errorf("sweep: %w", err)
	}
	s := &sweeper{
		st: st, opts: opts, clk: opts.Clock, began: opts.Clock.Now(), wall: opts.Clock.Wall(),
		sights: map[string]*sight{}, keeps: map[string][]string{}, named: map[string]bool{}, report: Report{Actions: map[Action]int{}},
	}
	s.list(ctx)
	for _, step := range []func(context.Context){s.meetSessions, s.watch, s.vacate, s.tidy, s.forgetSessions, s.forgetNames} {
		if ctx.Err() != nil {
			return s.report, errors.Join(append(s.errs, context.Cause(ctx))...)
		}
		step(ctx)
	}
	return s.report, errors.Join(s.errs...)
}

// sweeper is one Run.
type sweeper struct {
	st    store.Store
	opts  Options
	clk   clock.Clock
	began clock.Instant
	wall  time.Time // when it began

	sights map[string]*sight   // of sessions, and of names that keep themselves, by key
	keeps  map[string][]string // the names that a session keeps, by its key
	beside []string            // keys of records with rosters, and of elections
	stale  []stale             // names that are to be deleted
	named  map[string]bool     // sessions that a record which stays names
	report Report
	errs   []error
}

// stale is a record that is to be deleted.
type stale struct{ key, version, why string }

// cutoff is the time before which a record has to have come to rest.
func (s *sweeper) cutoff() time.Time { return s.wall.Add(-s.opts.OlderThan) }

// list looks at all records once.
func (s *sweeper) list(ctx context.Context) {
	prefixes := []string{s.opts.Prefix}
	if s.opts.Prefix != "" {
		prefixes = append(prefixes, roster.Prefix+s.opts.Prefix, kinds.Elections+s.opts.Prefix)
	}
	for _, prefix := range prefixes {
		if driver.CheckPrefix(prefix) != nil {
			continue // too long for there to be any
		}
		for rec, err := range s.st.List(ctx, prefix) {
			if err != nil {
				s.failed(ctx, err)
				continue
			}
			s.report.Records++
			s.sort(rec)
		}
	}
}

// sort says what a record is.
func (s *sweeper) sort(rec store.Record) {
	switch {
	case keyspace.OwnerOf(rec.Key) != "":
		s.meet(rec).listed = true
	case strings.HasPrefix(rec.Key, roster.Prefix), strings.HasPrefix(rec.Key, kinds.Elections):
		s.beside = append(s.beside, rec.Key)
	case keyspace.Reserved(rec.Key):
	case rec.Kind.Shared() && rec.Owner == "":
		s.beside = append(s.beside, rec.Key)
	case driver.Foreign(rec.Nonce):
		if rec.Owner == "" {
			s.tell(rec.Key, Kept, "another program wrote it")
		}
	case rec.Owner == "":
		s.judgeFree(rec)
	case rec.Session == "":
		s.meet(rec)
	default:
		s.keeps[rec.Session] = append(s.keeps[rec.Session], rec.Key)
	}
}

func (s *sweeper) tell(key string, action Action, why string) {
	s.report.Actions[action]++
	if s.opts.OnFinding != nil {
		s.opts.OnFinding(Finding{Key: key, Action: action, Why: why})
	}
}

// failed takes note of an error, unless it is that ctx is done, which Run tells.
func (s *sweeper) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		s.errs = append(s.errs, err)
	}
}

// did takes note of a write's outcome, and reports whether it was carried out.
func (s *sweeper) did(ctx context.Context, key string, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		s.report.Overtaken++
	default:
		s.failed(ctx, fmt.Errorf("sweep %s: %w", key, err))
	}
	return false
}
