package election

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/store"
)

// The errors of [SetPause] and [Resume], to branch on with [errors.Is].
var (
	ErrNotPaused = errors.New("the election is not paused, or not by that id")
	ErrPauses    = errors.New("several pauses") // it was not said which one is meant
	ErrTooMany   = errors.New("too many pauses")
)

// Pause says who paused an election, why, and until when.
type Pause struct {
	// Identifies it among the pauses of the election; [SetPause] makes one, of six characters.
	ID     string
	By     string
	Reason string
	Since  time.Time // by that one's wall clock

	// Until is when the pause ends by itself, by the same clock: [MinPause] to [MaxPause] after
	// Since. Zero is never: the pause lasts until [Resume].
	//
	// A candidate that is present when the pause is set counts its length on its own clock, from
	// when it learns of the pause. So no wrong wall clock shortens the pause. A candidate that
	// comes later uses the time of day, and waits no longer than that length. If its wall clock is
	// ahead of that of the caller of [SetPause], it campaigns earlier by the difference.
	//
	// So an end is for liveness. For the guarantee that nobody acts meanwhile, use a pause without
	// an end, or the tokens. Two never lead at once in any case: a leader needs the lease.
	Until time.Time
}

// The bounds of how long a pause that ends by itself lasts.
const (
	MinPause = time.Second
	MaxPause = 365 * 24 * time.Hour
)

// Over reports whether the pause has ended by itself, if it is now.
func (p Pause) Over(now time.Time) bool { return ballot.Pause(p).Over(now) }

// String returns who paused the election, why and until when.
func (p Pause) String() string { return ballot.Pause(p).String() }

func (p Pause) check() error {
	length := p.Until.Sub(p.Since)
	switch {
	case p.By == "":
		return &store.InvalidError{Field: "by", Value: `""`, Want: "who pauses it"}
	case len(p.By)+len(p.Reason) > maxReason:
		return tooLong("reason", p.By+": "+p.Reason)
	case p.Since.IsZero():
		return &store.InvalidError{Field: "since", Value: p.Since.String(), Want: "the time of day"}
	case !p.Until.IsZero() && (length < MinPause || length > MaxPause):
		return &store.InvalidError{
			Field: "until", Value: p.Until.Format(time.RFC3339Nano), Want: fmt.Sprintf("%v to %v after since, or none", MinPause, MaxPause),
		}
	}
	return nil
}

// SetPause keeps every candidate from leading until [Resume], or until the pause ends by itself.
// The leader steps down when it learns of the pause, at the latest when its validity ends, and no
// candidate campaigns. Nobody leads until all pauses are over.
//
// p needs the caller's name, and since when it is paused, which is the time of day. A pause
// replaces the one of its ID if p has an ID. Otherwise it replaces the one of the same By and
// Reason, unless neither has an end. So SetPause can be called again. All other pauses stay.
//
// It blocks until the store has answered or ctx is done. The error matches [ErrNotPaused] when
// there is no pause of that ID, and [ErrTooMany] when there are ten others. After an error that
// matches [store.ErrUnknownOutcome] the election may be paused, and SetPause can be called again.
func SetPause(ctx context.Context, st store.Store, name string, p Pause) error {
	if err := checkName(name); err != nil {
		return err
	}
	p.Since, p.Until = p.Since.UTC().Round(0), p.Until.UTC().Round(0)
	if err := p.check(); err != nil {
		return err
	}
	given := p.ID
	if given == "" {
		p.ID = strings.ToLower(rand.Text()[:6])
	}
	return ballot.Update(ctx, st, name, func(b *ballot.Ballot) (bool, error) {
		all := slices.DeleteFunc(b.AllPauses(), func(q ballot.Pause) bool { return q.Forgotten(p.Since) })
		i := slices.IndexFunc(all, func(q ballot.Pause) bool {
			return q.ID == given && given != "" || q.By == p.By && q.Reason == p.Reason && given == ""
		})
		switch {
		case i < 0 && given != "":
			return false, fmt.Errorf("%s: pause %q: %w", name, given, ErrNotPaused)
		case i < 0 && len(all) >= maxPauses:
			return false, fmt.Errorf("%s: %w: %s; end one first", name, ErrTooMany, listPauses(all))
		case i < 0:
			all = append(all, ballot.Pause(p))
		case all[i].Equal(ballot.Pause(p)), all[i].Reason == p.Reason && all[i].By == p.By && all[i].Until.IsZero() && p.Until.IsZero():
			return false, nil
		default:
			all[i] = ballot.Pause(p)
		}
		b.SetPauses(all)
		return true, nil
	})
}

func listPauses(all []ballot.Pause) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = fmt.Sprintf("%s (%s)", p.ID, p)
	}
	return strings.Join(texts, "; ")
}

// AllPauses is the id by which [Resume] ends every pause.
const AllPauses = "*"

// Resume ends the pause of that id, or all with [AllPauses]. With "" it ends the only one. It also
// removes pauses that ended by themselves as long ago as they lasted.
//
// The error matches [ErrNotPaused] when there is no such pause. It matches [ErrPauses], and lists
// them, when there are several and id is "". Resume blocks until the store has answered or ctx is
// done. After an error that matches [store.ErrUnknownOutcome] the pause may be over, and Resume can
// be called again.
func Resume(ctx context.Context, st store.Store, name, id string) error {
	if err := checkName(name); err != nil {
		return err
	}
	var ends func(ballot.Pause) bool
	return ballot.Update(ctx, st, name, func(b *ballot.Ballot) (write bool, err error) {
		all := b.AllPauses()
		if ends == nil {
			if ends, err = ending(all, id, clock.System().Wall()); err != nil {
				return false, fmt.Errorf("%s: %w", name, err)
			}
		}
		left := slices.DeleteFunc(slices.Clone(all), ends)
		b.SetPauses(left)
		return len(left) < len(all), nil
	})
}

// ending returns what [Resume] with that id ends of the pauses there are at now.
func ending(all []ballot.Pause, id string, now time.Time) (func(ballot.Pause) bool, error) {
	// A candidate may count another's for longer.
	one := func(p ballot.Pause) bool { return p.ID == id || p.Forgotten(now) }
	every := func(ballot.Pause) bool { return true }
	switch last := slices.DeleteFunc(slices.Clone(all), func(p ballot.Pause) bool { return p.Over(now) }); {
	case id == AllPauses && len(all) > 0, id == "" && len(last) == 0 && len(all) > 0:
		return every, nil
	case id == "" && len(last) > 1:
		return nil, fmt.Errorf("%w: %s: say which, or all", ErrPauses, listPauses(last))
	case id == "" && len(last) == 1:
		id = last[0].ID
		return one, nil
	case slices.ContainsFunc(all, func(p ballot.Pause) bool { return p.ID == id }):
		return one, nil
	}
	return nil, ErrNotPaused
}
