// Package turns is the record of a job's turns: of the spans of time in each of which a command is
// to run once, on one of several machines. The record is beside that of the job's name, since
// nobody but its holder may change the latter. The command writes it; the server reads it, too.
package turns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Prefix begins the keys of the records; the name follows.
const Prefix = kinds.Turns

// Most is how many turns a record keeps.
const Most = 8

// Turn is a turn in which the command was begun. Its token fences it: a holder of an earlier term
// can't change what a later one has begun.
type Turn struct {
	// When the turn begins, as the calendar of Zone has it, written as UTC: tells it from all
	// others.
	At     time.Time   `json:"at"`
	Zone   string      `json:"zone,omitempty"` // of a tick; "" is UTC
	Token  fence.Token `json:"token"`
	Holder string      `json:"holder"`
	Begun  time.Time   `json:"begun"`          // by the holder's wall clock, for people
	Ended  time.Time   `json:"ended,omitzero"` // likewise
	// The exit code; nil while the command runs, and for ever if it was lost.
	Code *int `json:"code,omitempty"`
	// The moment at which the turn after this one begins, for people.
	Next time.Time `json:"next,omitzero"`
}

// Failed reports whether a turn may be run again where failures are retried. Its holder no longer
// has the name.
func (t Turn) Failed() bool { return t.Code == nil || *t.Code != 0 }

// data is what a record carries. A field that a version doesn't know is lost when that version
// begins a turn.
type data struct {
	Format int    `json:"v"`
	Turn   *Turn  `json:"turn,omitempty"` // the last that was begun
	Past   []Turn `json:"past,omitempty"` // those before it, newest first
}

const format = 1

// Read returns the turns of a record, newest first; none of one that isn't stored. The error
// matches [store.ErrCorrupt].
func Read(rec store.Record) ([]Turn, error) {
	d := data{Format: format}
	if len(rec.Data) > 0 {
		if err := json.Unmarshal(rec.Data, &d); err != nil {
			return nil, driver.Corrupt(rec.Key, err)
		}
	}
	if d.Format != format {
		return nil, driver.Corrupt(rec.Key, fmt.Errorf("its last turn is in format %d: this version reads format %d", d.Format, format))
	}
	if d.Turn == nil {
		return nil, nil
	}
	return append([]Turn{*d.Turn}, d.Past...), nil
}

// Load returns the turns of a name, newest first. A name that is too long for turns has none.
func Load(ctx context.Context, st store.Store, name string) ([]Turn, error) {
	if driver.CheckKey(Prefix+name) != nil {
		return nil, nil
	}
	rec, err := store.Load(ctx, st, Prefix+name)
	if err != nil {
		return nil, err
	}
	return Read(rec)
}

// ErrTerm says that a later term has begun a turn, so nothing may be written under this one.
var ErrTerm = errors.New("the term is over")

// change lets f change the turns of a name, unless a later term has begun one. f returns nil to
// change nothing.
func change(ctx context.Context, st store.Store, name string, token fence.Token, f func([]Turn) []Turn) error {
	return store.Update(ctx, st, Prefix+name, func(rec *store.Record) (bool, error) {
		all, err := Read(*rec)
		if err != nil {
			return false, err
		}
		if len(all) > 0 && all[0].Token > token {
			return false, fmt.Errorf("%s: token %d: %w: token %d has begun a turn", name, token, ErrTerm, all[0].Token)
		}
		next := f(all)
		if next == nil {
			return false, nil
		}
		rec.Data, err = json.Marshal(data{format, &next[0], next[1:min(len(next), Most)]})
		return err == nil, err
	})
}

// InTheWay returns the turn that keeps t from being begun, which is t's own or a later one: the
// last one counts, whatever the wall clocks of its holder and of this one say. It returns nil if t
// may be begun. all are the turns of the name; retry lets a failed turn be begun again.
func InTheWay(all []Turn, t Turn, retry bool) *Turn {
	if len(all) == 0 || t.At.After(all[0].At) || t.At.Equal(all[0].At) && retry && all[0].Failed() {
		return nil
	}
	return &all[0]
}

// Begin writes under a term that a turn is begun. Nobody begins it a second time then, unless it is
// to be retried. It returns the turn that stands in the way, if one does.
//
// After an error the turn may have been begun, without the command.
func Begin(ctx context.Context, st store.Store, name string, t Turn, retry bool) (done *Turn, err error) {
	err = change(ctx, st, name, t.Token, func(all []Turn) []Turn {
		done = nil
		if len(all) > 0 && all[0].Token == t.Token { // this very write, which landed
			return nil
		}
		if done = InTheWay(all, t, retry); done != nil {
			return nil
		}
		return slices.Insert(all, 0, t)
	})
	return done, err
}

// End writes down the exit code, and when the command has ended by the holder's wall clock.
func End(ctx context.Context, st store.Store, name string, token fence.Token, code int, now time.Time) error {
	return change(ctx, st, name, token, func(all []Turn) []Turn {
		if len(all) == 0 || all[0].Token != token || all[0].Code != nil {
			return nil
		}
		all[0].Code, all[0].Ended = &code, now.UTC()
		return all
	})
}
