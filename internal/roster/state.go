package roster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// State is the roster of a lock, for people. To hold a share takes a session.
type State struct {
	Kind    store.Kind  // "" when the name has no roster
	Limit   int         // of the weights of all holders
	Token   fence.Token // of the last share that was granted
	Held    []Share
	Waiting []Share // in the order in which they are served
	// Since when the roster is empty, by the wall clock of the [Prune] that found so; zero if it is
	// in use.
	Unused time.Time
}

// Share is a holder of a lock, or a waiter for it. Its process may have died: it stays until its
// place is needed.
type Share struct {
	Owner   string // owner id
	Session string // key of the session that keeps it
	Weight  int    // a writer has the whole limit
	Slot    int    // of a holder; see lock.Hold.Slot
	Token   fence.Token
	Since   time.Time // by its wall clock: when it began to wait
}

// Load returns the state of the lock of that name. It blocks until the store has answered or ctx is
// done.
func Load(ctx context.Context, st store.Store, name string) (State, error) {
	rec, err := store.Load(ctx, st, name)
	if err != nil {
		return State{}, err
	}
	return Beside(ctx, st, rec)
}

// Beside is [Load] where the name's own record is known. A mutex that isn't fair has no other
// state, and neither has an election.
func Beside(ctx context.Context, st store.Store, rec store.Record) (State, error) {
	if rec.Kind.Shared() {
		return StateOf(rec)
	}
	key := Prefix + rec.Key
	if driver.CheckKey(key) != nil {
		return State{}, nil
	}
	beside, err := LoadBeside(ctx, st, key)
	if err != nil {
		return State{}, err
	}
	state, err := StateOf(beside)
	if rec.Kind != "" && state.Kind != Mutex {
		return State{}, err // of a time when names had no kinds
	}
	return state, err
}

// StateOf returns the content of a roster's record. An unreadable record is an error that matches
// [store.ErrCorrupt].
func StateOf(rec store.Record) (State, error) {
	r, err := Parse(rec)
	return State{Kind: r.Kind, Limit: r.Limit, Token: rec.Token, Held: shares(r.Held), Waiting: shares(r.Queue), Unused: r.Unused}, err
}

// Prune removes the members whose sessions are over from the roster in the record under that key.
// The key is a name, or that of a roster apart from it. over reports whether the session of a key
// is over, which has to be final. An empty roster is noted as unused since now, the time of day.
// The note stays until the roster is used again.
//
// Prune blocks until the store has answered or ctx is done. After an error that matches
// [store.ErrUnknownOutcome] it can be called again.
func Prune(ctx context.Context, st store.Store, key string, over func(session string) bool, now time.Time) error {
	return store.Update(ctx, st, key, func(rec *store.Record) (bool, error) {
		if !hasRoster(*rec) {
			return false, nil // it has become another kind
		}
		r, err := Parse(*rec)
		if err != nil || r.Kind == "" {
			return false, err
		}
		write := r.Drop(over)
		if len(r.Held)+len(r.Queue) == 0 && r.Unused.IsZero() {
			r.Unused, write = now.UTC(), true
		}
		return write, r.Encode(rec)
	})
}

// hasRoster reports whether the data of a record are a roster's.
func hasRoster(rec store.Record) bool { return rec.Kind.Shared() || strings.HasPrefix(rec.Key, Prefix) }

func shares(all []Entry) []Share {
	var out []Share
	for _, e := range all {
		out = append(out, Share{
			Owner: keyspace.OwnerOf(e.Session), Session: e.Session, Weight: e.Weight, Slot: e.Slot, Token: e.Token, Since: e.Since,
		})
	}
	return out
}

// LoadBeside reads a record beside that of a name. A store that has no room for its key has none.
func LoadBeside(ctx context.Context, st store.Store, key string) (store.Record, error) {
	rec, err := store.Load(ctx, st, key)
	if errors.Is(err, store.ErrInvalid) {
		return store.Record{Key: key}, nil
	}
	return rec, err
}
