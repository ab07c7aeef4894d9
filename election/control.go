package election

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// prefix begins the keys of control records.
const prefix = kinds.Elections

const (
	format        = 1
	maxText       = 255 // bytes of a candidate's name and zone
	maxReason     = 500 // bytes of who paused, and why
	maxCandidates = 50
	maxPauses     = 10
)

// control is the data of a control record.
type control struct {
	Format     int         `json:"v"`
	Pause      *Pause      `json:"pause,omitempty"`  // the one that ends last
	Pauses     []Pause     `json:"pauses,omitempty"` // all, if there are several; versions before this one lose them with their next write
	Order      *order      `json:"order,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`

	Unused time.Time `json:"unused,omitzero"` // since when it says nothing, as a sweep found
}

// order tells the leader of a term to step down.
type order struct {
	Token fence.Token `json:"token"`        // of the term; another one doesn't obey
	To    string      `json:"to,omitempty"` // owner id of the successor; "" is whoever is next
	By    string      `json:"by,omitempty"`
}

// Candidate is a candidate on the list of an election.
type Candidate struct {
	Session    string    `json:"session"`
	Name       string    `json:"name"`
	Priority   int       `json:"priority,omitempty"`
	Zone       string    `json:"zone,omitempty"`
	Ineligible bool      `json:"ineligible,omitempty"`
	Since      time.Time `json:"since"` // by its wall clock; for people
}

// Owner returns the candidate's owner id.
func (c Candidate) Owner() string { return keyspace.OwnerOf(c.Session) }

func checkName(name string) error {
	if err := driver.CheckKey(prefix + name); err != nil || name == "" || keyspace.Reserved(name) {
		want := fmt.Sprintf("the name of an election: 1 to %d bytes of printable UTF-8 that don't begin with a dot", store.MaxKey-len(prefix))
		return &store.InvalidError{Field: "name", Value: fmt.Sprintf("%.60q", name), Want: want}
	}
	return nil
}

// readControl reads a control record. One that isn't stored says nothing.
func readControl(rec store.Record) (control, error) {
	c := control{Format: format}
	if len(rec.Data) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(rec.Data, &c); err != nil {
		return control{}, fmt.Errorf("%s: %w: its data: %w", rec.Key, store.ErrCorrupt, err)
	}
	if c.Format != format {
		return control{}, unreadableError{fmt.Errorf("%s: its data have format %d: this version reads format %d", rec.Key, c.Format, format)}
	}
	return c, nil
}

// unreadableError matches [store.ErrCorrupt].
type unreadableError struct{ error }

func (unreadableError) Is(target error) bool { return target == store.ErrCorrupt }

func (c control) find(session string) int {
	return slices.IndexFunc(c.Candidates, func(o Candidate) bool { return o.Session == session })
}

// others reports whether a candidate other than that of session may lead.
func (c control) others(session string) bool {
	return slices.ContainsFunc(c.Candidates, func(o Candidate) bool { return o.Session != session && !o.Ineligible })
}

// successor returns the owner id of the candidate that is called to, by its name or its owner id.
// The error matches [ErrNoCandidate] when there is none that may lead.
func (c control) successor(name, to string) (owner string, err error) {
	i := slices.IndexFunc(c.Candidates, func(o Candidate) bool { return (o.Name == to || o.Owner() == to) && !o.Ineligible })
	if i < 0 {
		return "", fmt.Errorf("%s: candidate %q: %w", name, to, ErrNoCandidate)
	}
	return c.Candidates[i].Owner(), nil
}

// change lets f change what the control record says, as [store.Update] does. The record is in use
// then.
func change(ctx context.Context, st store.Store, name string, f func(*control) (bool, error)) error {
	return edit(ctx, st, name, func(c *control) (bool, error) {
		c.Unused = time.Time{}
		return f(c)
	})
}

// edit is change without that.
func edit(ctx context.Context, st store.Store, name string, f func(*control) (bool, error)) error {
	return store.Update(ctx, st, prefix+name, func(rec *store.Record) (bool, error) {
		c, err := readControl(*rec)
		if err != nil {
			return false, err
		}
		if write, err := f(&c); err != nil || !write {
			return false, err
		}
		rec.Data, err = json.Marshal(c)
		return err == nil, err
	})
}

// rank says how much a candidate is preferred: the lower, the more; by zone first.
func (o Options) rank(c Candidate) [2]int {
	zone := slices.Index(o.Zones, c.Zone)
	if zone < 0 {
		zone = len(o.Zones)
	}
	return [2]int{zone, -c.Priority}
}

// prefers reports whether a is preferred to b.
func (o Options) prefers(a, b Candidate) bool {
	x, y := o.rank(a), o.rank(b)
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) < 0
}

// preferred returns the best of the other candidates that may lead, if it is better than the one of
// session.
func (o Options) preferred(c control, session string) (best Candidate, better bool) {
	best = Candidate{Session: session, Zone: o.Zone, Priority: o.Priority}
	for _, other := range c.Candidates {
		if other.Session != session && !other.Ineligible && o.prefers(other, best) {
			best, better = other, true
		}
	}
	return best, better
}

// ahead returns how many of the other candidates that may lead are better than the one of session.
func (o Options) ahead(c control, session string) (n int) {
	me := Candidate{Zone: o.Zone, Priority: o.Priority}
	for _, other := range c.Candidates {
		if other.Session != session && !other.Ineligible && o.prefers(other, me) {
			n++
		}
	}
	return n
}

// around returns the sessions of the other candidates, beginning with the one before session on the
// list and going up, from the first to the last.
func (c control) around(session string) []string {
	i := max(c.find(session), 0)
	var keys []string
	for n := 1; n <= len(c.Candidates); n++ {
		if key := c.Candidates[(i-n+len(c.Candidates))%len(c.Candidates)].Session; key != session {
			keys = append(keys, key)
		}
	}
	return keys
}
