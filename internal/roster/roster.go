// Package roster is the record of a lock that several may hold at a time, or that is served in
// order. The record lists who holds what, and who waits. Package lock writes it; the server, the
// command and a sweep read it.
package roster

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
)

// Prefix begins the keys of rosters that are beside the record of their name, which follows: those
// of fair mutexes, and those of all locks that were written before names had kinds.
const Prefix = kinds.Locks

// MaxShares is how many holders and waiters a roster has room for.
const MaxShares = 100

// Roster is the data of a lock's record: who holds what, and who waits.
type Roster struct {
	Format int        `json:"v"`
	Kind   store.Kind `json:"kind"`
	Limit  int        `json:"limit"` // of the weights of all holders
	// By SetLimit: who names another limit follows this one.
	Set   bool    `json:"set,omitempty"`
	Held  []Entry `json:"held,omitempty"`
	Queue []Entry `json:"queue,omitempty"` // in the order in which they came

	Unused time.Time `json:"unused,omitzero"` // since when nobody is on it, as a sweep found
}

// Entry is one holder or waiter.
type Entry struct {
	ID      string      `json:"id"` // of one acquisition, never used again
	Session string      `json:"session"`
	Weight  int         `json:"weight"`
	Slot    int         `json:"slot"` // of a holder: the least that was free
	Token   fence.Token `json:"token,omitempty"`
	Since   time.Time   `json:"since"` // by its wall clock; for people
}

// Format is that of a [Roster].
const Format = 1

// The kinds of lock that have a roster. A mutex has one only if somebody wanted it to be fair; a
// record has no such kind.
const (
	Mutex     store.Kind = "mutex"
	RW                   = store.KindRW
	Semaphore            = store.KindSemaphore
)

// Parse reads a lock's record. One that isn't stored is an empty roster.
func Parse(rec store.Record) (Roster, error) {
	var r Roster
	if len(rec.Data) == 0 {
		return Roster{Format: Format}, nil
	}
	if err := json.Unmarshal(rec.Data, &r); err != nil {
		return Roster{}, fmt.Errorf("%s: %w: its roster: %w", rec.Key, store.ErrCorrupt, err)
	}
	if r.Format != Format {
		return Roster{}, fmt.Errorf("%s: %w: its roster has format %d: this version reads format %d", rec.Key, store.ErrCorrupt, r.Format, Format)
	}
	if r.Free() < 0 || len(r.Held)+len(r.Queue) > MaxShares {
		return Roster{}, fmt.Errorf("%s: %w: %d holders of weight %d over a limit of %d", rec.Key, store.ErrCorrupt, len(r.Held), r.Limit-r.Free(), r.Limit)
	}
	return r, nil
}

// Write puts the roster into the record, as one that is in use.
func (r Roster) Write(rec *store.Record) error {
	r.Unused = time.Time{}
	return r.Encode(rec)
}

// Encode puts the roster into the record as it is.
func (r Roster) Encode(rec *store.Record) (err error) {
	rec.Data, err = json.Marshal(r)
	return err
}

// Free returns what is left of the limit.
func (r Roster) Free() int {
	free := r.Limit
	for _, e := range r.Held {
		free -= e.Weight
	}
	return free
}

// Find returns the place of an entry in a list, or -1.
func Find(list []Entry, id string) int {
	return slices.IndexFunc(list, func(e Entry) bool { return e.ID == id })
}

// Before returns the entries that id has to wait for: all holders, and who is before it in the
// queue, or the whole queue if it isn't in it.
func (r Roster) Before(id string) []Entry {
	queue := r.Queue
	if i := Find(queue, id); i >= 0 {
		queue = queue[:i]
	}
	return slices.Concat(r.Held, queue)
}

// Line returns who is before id in the queue, the nearest first: all of the queue if id isn't in
// it.
func (r Roster) Line(id string) []Entry {
	line := slices.Clone(r.Queue)
	if i := Find(line, id); i >= 0 {
		line = line[:i]
	}
	slices.Reverse(line)
	return line
}

// Grants reports whether e may be a holder now.
func (r Roster) Grants(e Entry) bool {
	i := Find(r.Queue, e.ID)
	return r.fits(e.Weight) && len(r.Held) < MaxShares && (i == 0 || i < 0 && len(r.Queue) == 0)
}

func (r Roster) fits(weight int) bool { return weight <= r.Free() }

// Grant makes e a holder.
func (r *Roster) Grant(e Entry, t fence.Token) {
	r.Remove(e.ID)
	e.Token, e.Slot = t, 0
	for slices.ContainsFunc(r.Held, func(h Entry) bool { return h.Slot == e.Slot }) {
		e.Slot++
	}
	r.Held = append(slices.Clone(r.Held), e)
}

// Remove takes an entry off the roster.
func (r *Roster) Remove(id string) { r.delete(func(e Entry) bool { return e.ID == id }) }

// Drop takes off those whose sessions are over, and reports whether there were any.
func (r *Roster) Drop(over func(session string) bool) bool {
	return r.delete(func(e Entry) bool { return over(e.Session) })
}

func (r *Roster) delete(which func(Entry) bool) bool {
	n := len(r.Held) + len(r.Queue)
	r.Held = slices.DeleteFunc(slices.Clone(r.Held), which)
	r.Queue = slices.DeleteFunc(slices.Clone(r.Queue), which)
	return len(r.Held)+len(r.Queue) < n
}
