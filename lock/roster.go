package lock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
)

// prefix begins the keys of rosters that are beside the record of their name.
const prefix = kinds.Locks

// MaxShares is how many holders and waiters a roster has room for.
const MaxShares = 100

// roster is the data of a lock's record: who holds what, and who waits.
type roster struct {
	Format int     `json:"v"`
	Kind   string  `json:"kind"`
	Limit  int     `json:"limit"`         // of the weights of all holders
	Set    bool    `json:"set,omitempty"` // by SetLimit: who names another limit follows this one
	Held   []entry `json:"held,omitempty"`
	Queue  []entry `json:"queue,omitempty"` // in the order in which they came

	Unused time.Time `json:"unused,omitzero"` // since when nobody is on it, as a sweep found
}

// entry is one holder or waiter.
type entry struct {
	ID      string      `json:"id"` // of one acquisition, never used again
	Session string      `json:"session"`
	Weight  int         `json:"weight"`
	Slot    int         `json:"slot"` // of a holder: the least that was free
	Token   fence.Token `json:"token,omitempty"`
	Since   time.Time   `json:"since"` // by its wall clock; for people
}

const format = 1

// Kinds of lock, as their rosters name them.
const (
	kindMutex     = "mutex"
	kindRW        = string(store.KindRW)
	kindSemaphore = string(store.KindSemaphore)
)

// readRoster reads a lock's record. One that isn't stored is an empty roster.
func readRoster(rec store.Record) (roster, error) {
	var r roster
	if len(rec.Data) == 0 {
		return roster{Format: format}, nil
	}
	if err := json.Unmarshal(rec.Data, &r); err != nil {
		return roster{}, fmt.Errorf("%s: %w: its roster: %w", rec.Key, store.ErrCorrupt, err)
	}
	if r.Format != format {
		return roster{}, fmt.Errorf("%s: %w: its roster has format %d: this version reads format %d", rec.Key, store.ErrCorrupt, r.Format, format)
	}
	if r.free() < 0 || len(r.Held)+len(r.Queue) > MaxShares {
		return roster{}, fmt.Errorf("%s: %w: %d holders of weight %d over a limit of %d", rec.Key, store.ErrCorrupt, len(r.Held), r.Limit-r.free(), r.Limit)
	}
	return r, nil
}

// write puts the roster into the record, as one that is in use.
func (r roster) write(rec *store.Record) error {
	r.Unused = time.Time{}
	return r.encode(rec)
}

func (r roster) encode(rec *store.Record) (err error) {
	rec.Data, err = json.Marshal(r)
	return err
}

func (r roster) free() int {
	free := r.Limit
	for _, e := range r.Held {
		free -= e.Weight
	}
	return free
}

func find(list []entry, id string) int {
	return slices.IndexFunc(list, func(e entry) bool { return e.ID == id })
}

// before returns the entries that id has to wait for: all holders, and who is before it in the queue, or the whole queue if it
// isn't in it.
func (r roster) before(id string) []entry {
	queue := r.Queue
	if i := find(queue, id); i >= 0 {
		queue = queue[:i]
	}
	return slices.Concat(r.Held, queue)
}

// line returns who is before id in the queue, the nearest first: all of the queue if id isn't in it.
func (r roster) line(id string) []entry {
	line := slices.Clone(r.Queue)
	if i := find(line, id); i >= 0 {
		line = line[:i]
	}
	slices.Reverse(line)
	return line
}

// grants reports whether e may be a holder now.
func (r roster) grants(e entry) bool {
	i := find(r.Queue, e.ID)
	return r.fits(e.Weight) && len(r.Held) < MaxShares && (i == 0 || i < 0 && len(r.Queue) == 0)
}

func (r roster) fits(weight int) bool { return weight <= r.free() }

// grant makes e a holder.
func (r *roster) grant(e entry, t fence.Token) {
	r.remove(e.ID)
	e.Token, e.Slot = t, 0
	for slices.ContainsFunc(r.Held, func(h entry) bool { return h.Slot == e.Slot }) {
		e.Slot++
	}
	r.Held = append(slices.Clone(r.Held), e)
}

// remove takes an entry off the roster.
func (r *roster) remove(id string) { r.delete(func(e entry) bool { return e.ID == id }) }

// drop takes off those whose sessions are over, and reports whether there were any.
func (r *roster) drop(over func(session string) bool) bool {
	return r.delete(func(e entry) bool { return over(e.Session) })
}

func (r *roster) delete(which func(entry) bool) bool {
	n := len(r.Held) + len(r.Queue)
	r.Held = slices.DeleteFunc(slices.Clone(r.Held), which)
	r.Queue = slices.DeleteFunc(slices.Clone(r.Queue), which)
	return len(r.Held)+len(r.Queue) < n
}
