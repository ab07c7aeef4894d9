package lock

import (
	"context"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
)

// The kinds of lock that have a roster. A mutex has one only if somebody wanted it to be fair.
const (
	KindMutex     = kindMutex
	KindRW        = kindRW
	KindSemaphore = kindSemaphore
)

// KeyPrefix begins the keys of rosters that are beside the record of their name, which follows: those of fair mutexes, and those of all
// locks that were written before names had kinds.
const KeyPrefix = prefix

// State is what the roster of a lock says, for people: to hold a share takes a session.
type State struct {
	Kind    string      // "" when the name has no roster
	Limit   int         // of the weights of all holders
	Token   fence.Token // of the last share that was granted
	Held    []Share
	Waiting []Share   // in the order in which they are served
	Unused  time.Time // since when nobody is on the roster, by the wall clock of the [Prune] that found so; zero if it is in use
}

// Share is one hold of a lock, or one who waits for it. It may be that of a process that has died, until somebody needs its
// place.
type Share struct {
	Owner   string // owner id
	Session string // key of the session that keeps it
	Weight  int    // a writer has the whole limit
	Slot    int    // of a holder; see [Hold.Slot]
	Token   fence.Token
	Since   time.Time // by its wall clock: when it began to wait
}

// Read returns the state of the lock of that name. It blocks until the store has answered or ctx is done.
func Read(ctx context.Context, st store.Store, name string) (State, error) {
	rec, err := store.Load(ctx, st, name)
	if err != nil {
		return State{}, err
	}
	return Beside(ctx, st, rec)
}

// Beside is [Read] where the name's own record is known. A mutex that isn't fair has no state but that, and neither has an election.
func Beside(ctx context.Context, st store.Store, rec store.Record) (State, error) {
	if rec.Kind.Shared() {
		return StateOf(rec)
	}
	key := prefix + rec.Key
	if store.CheckKey(key) != nil {
		return State{}, nil
	}
	beside, err := loadBeside(ctx, st, key)
	if err != nil {
		return State{}, err
	}
	state, err := StateOf(beside)
	if rec.Kind != "" && state.Kind != kindMutex {
		return State{}, err // of a time when names had no kinds
	}
	return state, err
}

// StateOf returns what a roster's record says. One that can't be read is an error that matches [store.ErrCorrupt].
func StateOf(rec store.Record) (State, error) {
	r, err := readRoster(rec)
	return State{Kind: r.Kind, Limit: r.Limit, Token: rec.Token, Held: shares(r.Held), Waiting: shares(r.Queue), Unused: r.Unused}, err
}

// Prune takes those off the roster in the record under that key, a name or what is beside it, whose sessions are over; over says so of a session's key, and it has to be so
// for good. A roster that nobody is left on is noted to be unused since now, the time of day, until somebody uses it again. It
// blocks until the store has answered or ctx is done. After an error that matches [store.ErrUnknownOutcome] it can be called again.
func Prune(ctx context.Context, st store.Store, key string, over func(session string) bool, now time.Time) error {
	return store.Update(ctx, st, key, func(rec *store.Record) (bool, error) {
		if !hasRoster(*rec) {
			return false, nil // it has become another kind
		}
		r, err := readRoster(*rec)
		if err != nil || r.Kind == "" {
			return false, err
		}
		write := r.drop(over)
		if len(r.Held)+len(r.Queue) == 0 && r.Unused.IsZero() {
			r.Unused, write = now.UTC(), true
		}
		return write, r.encode(rec)
	})
}

// hasRoster reports whether the data of a record are a roster's.
func hasRoster(rec store.Record) bool { return rec.Kind.Shared() || strings.HasPrefix(rec.Key, prefix) }

func shares(all []entry) []Share {
	var out []Share
	for _, e := range all {
		out = append(out, Share{
			Owner: keyspace.OwnerOf(e.Session), Session: e.Session, Weight: e.Weight, Slot: e.Slot, Token: e.Token, Since: e.Since,
		})
	}
	return out
}
