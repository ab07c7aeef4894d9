// Package storetest is the whole truth about a store. An engine is right when [Run] passes on it,
// against the real server.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) storetest.Instance {
//			table := newTable(t)
//			return storetest.Instance{
//				Open:   func(ctx context.Context) (store.Store, error) { return engine.Open(ctx, table) },
//				HasAge: true,
//			}
//		})
//	}
//
// The suite does through store/faulty what a network does to requests. An engine that talks to a
// server also gives the hooks Cut and Heal, which do it to the engine's real connections.
// [RunFailovers] checks an engine that is replicated, too.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Factory returns an instance with no records in it, whose data nobody else uses. It is called once
// for each check. What it starts it ends by t.Cleanup, which runs after every handle was closed.
type Factory func(t testing.TB) Instance

// Instance is an engine over data of its own.
type Instance struct {
	// Open returns a new handle, with connections of its own if the engine makes any. It is called
	// several times. All handles see the same data. A handle that is opened after the others were
	// closed sees the data again.
	Open func(ctx context.Context) (store.Store, error)

	Pushes   bool // handles implement store.Waiter
	HasAge   bool // the engine vouches for an Age above 0, within 30 s of a write at the latest
	Volatile bool // the data are gone when the last handle is closed
	Slow     bool // a write takes milliseconds: checks repeat things less often

	// Cut makes the server unreachable for every handle that is open, so that requests hang or
	// fail. Heal ends that. Both are nil, or neither is.
	Cut, Heal func() error

	// Detach cuts off the servers that would replace the primary, or the leader, when it dies.
	// Writes from then on reach the primary alone. Attach ends that, and nothing is lost. FailOver,
	// after a Detach, makes the primary die and the other server take its place, for every handle.
	// All three are nil unless the engine is replicated.
	Detach, Attach, FailOver func() error

	// Majority says that Detach cuts off the leader from a majority that elects another leader by
	// itself. Every second handle, beginning with the first, is cut off with the old leader.
	// FailOver then ends the cut.
	Majority bool

	// Clock is the clock of the managers that checks have on the engine; [clock.System] when nil.
	Clock clock.Clock
}

// patience is how long an engine may take for what it should do at once: long enough for a machine
// that is busy with other things.
const patience = 30 * time.Second

// Run checks the engine, each property in a subtest of its own. It takes a few seconds with a fast
// engine. A check that hangs fails after 5 min, or half of the time that is left before go test's
// own -timeout: it says what waits, and the other checks go on.
func Run(t *testing.T, factory Factory) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			inst := factory(t)
			if c.needs != nil {
				if why := c.needs(inst); why != "" {
					t.Log("does not apply: ", why)
					return
				}
			}
			ctx, cancel := limited(t)
			defer cancel()
			if err := c.try(ctx, inst, t.Logf); err != nil {
				t.Error(err)
			}
		})
	}
}

// check is one property of an engine. It returns an error that says what is wrong, so that the
// suite can be tested on engines that are wrong.
type check struct {
	name  string
	needs func(Instance) string // why the check doesn't apply to an instance; "" when it does
	run   func(ctx context.Context, e *env) error
	brief bool // it takes no time on any engine: who hangs on it is waited for briefly
}

// try runs the check and closes the handles that it opened.
func (c check) try(ctx context.Context, inst Instance, logf func(string, ...any)) error {
	within := limit
	if c.brief {
		within = briefly
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return bounded(ctx, logf, func(logf func(string, ...any)) error {
		e := &env{Instance: inst, logf: logf}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		err := c.run(ctx, e)
		cancel()
		err = errors.Join(err, e.closeAll())
		e.waits.Wait()
		return err
	})
}

var checks = []check{
	{name: "RoundTrip", run: roundTrip},
	{name: "RoundTripRandom", run: roundTripRandom},
	{name: "EmptyIsNil", run: emptyIsNil},
	{name: "TTLIsExact", run: ttlIsExact},
	{name: "NoAliasing", run: noAliasing},
	{name: "KeyLimits", run: keyLimits},
	{name: "RecordLimits", run: recordLimits},
	{name: "LargestRecords", run: largestRecords},
	{name: "OddKeys", run: oddKeys},
	{name: "PrefixIsLiteral", run: prefixIsLiteral},

	{name: "CreateRace", run: createRace},
	{name: "Contention", run: contention},
	{name: "ConflictCarriesCurrent", run: conflictCarriesCurrent},
	{name: "PutOfMissing", run: putOfMissing},
	{name: "DeleteChecksVersion", run: deleteChecksVersion},
	{name: "VersionsAreNeverReused", run: versionsAreNeverReused},
	{name: "OtherVersionsNeverMatch", run: otherVersionsNeverMatch},
	{name: "ReadsAreLinearizable", run: readsAreLinearizable},
	{name: "ReadsUnderWrites", run: readsUnderWrites},
	{name: "EverythingAtOnce", run: everythingAtOnce},

	{name: "TracesReach", run: tracesReach},

	{name: "ListThousands", run: listThousands},
	{name: "ListUnderChange", run: listUnderChange},
	{name: "ListBreak", run: listBreak},
	{name: "ListBodyUsesStore", run: listBodyUsesStore, brief: true},
	{name: "ListCancel", run: listCancel},

	{name: "DoneContext", run: doneContext},
	{name: "CancelledWrites", run: cancelledWrites},
	{name: "LostReply", run: lostReply},
	{name: "RepeatedRequest", run: repeatedRequest},
	{name: "LateRequest", run: lateRequest},
	{name: "CutAndHeal", run: cutAndHeal},

	{name: "Pushes", run: pushes},
	{name: "WaitAtOnce", run: waitAtOnce},
	{name: "WaitForChange", run: waitForChange},
	{name: "WaitPingPong", run: waitPingPong},
	{name: "WaitHammer", run: waitHammer},
	{name: "WaitMany", run: waitMany},
	{name: "WaitOtherKeys", run: waitOtherKeys},
	{name: "WaitCancel", run: waitCancel},
	{name: "WaitClose", run: waitClose},

	{name: "AgeIsLowerBound", run: ageIsLowerBound},
	{name: "AgeGrows", needs: needsAge, run: ageGrows},
	{name: "AgeStartsAnew", needs: needsAge, run: ageStartsAnew},

	{name: "Reopen", run: reopen},
	{name: "ReopenAll", needs: needsDurable, run: reopenAll},
	{name: "Closed", run: closed},
	{name: "CloseUnderUse", run: closeUnderUse},

	{name: "Unreplicated", needs: needsReplica, run: unreplicated},
	{name: "Failover", needs: needsReplica, run: failover},
}

func needsAge(inst Instance) string {
	if inst.HasAge {
		return ""
	}
	return "the engine does not vouch for ages"
}

func needsReplica(inst Instance) string {
	if inst.Detach != nil {
		return ""
	}
	return "the engine is not replicated here"
}

func needsDurable(inst Instance) string {
	if inst.Volatile {
		return "the data are gone with the last handle"
	}
	return ""
}

// env is what a check works with: an instance and the handles that the check has opened.
type env struct {
	Instance
	logf    func(format string, args ...any)
	mu      sync.Mutex
	handles []store.Store
	waits   sync.WaitGroup // the Waits that a check has begun
}

// open returns a handle that is closed at the end of the check.
func (e *env) open(ctx context.Context) (store.Store, error) {
	s, err := e.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	e.own(s)
	return s, nil
}

// own has s closed at the end of the check.
func (e *env) own(s store.Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handles = append(e.handles, s)
}

// openAll returns n handles.
func (e *env) openAll(ctx context.Context, n int) ([]store.Store, error) {
	handles := make([]store.Store, n)
	for i := range handles {
		s, err := e.open(ctx)
		if err != nil {
			return nil, err
		}
		handles[i] = s
	}
	return handles, nil
}

func (e *env) closeAll() error {
	var errs []error
	for _, s := range e.handles {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// times returns how often to repeat something: often, or seldom with a slow engine.
func (e *env) times(often, seldom int) int {
	if e.Slow {
		return seldom
	}
	return often
}
