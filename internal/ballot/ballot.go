// Package ballot is the record of an election. The record lists who stands, and what operators
// want: pauses, and that a leader steps down. Package election writes it; the server, the command
// and a sweep read it.
package ballot

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
)

// Prefix begins the keys of ballots; the name of the election follows.
const Prefix = kinds.Elections

// MaxCandidates is how many candidates a ballot has room for.
const MaxCandidates = 50

// Format is that of a [Ballot].
const Format = 1

// Ballot is the data of an election's record.
type Ballot struct {
	Format int    `json:"v"`
	Pause  *Pause `json:"pause,omitempty"` // the one that ends last
	// All, if there are several; versions that know one only lose them with their next write.
	Pauses     []Pause     `json:"pauses,omitempty"`
	Order      *Order      `json:"order,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`

	Unused time.Time `json:"unused,omitzero"` // since when it says nothing, as a sweep found
}

// Order tells the leader of a term to step down.
type Order struct {
	Token fence.Token `json:"token"` // of the term; another one doesn't obey
	// Owner id of the successor; "" is the next candidate in order.
	To string `json:"to,omitempty"`
	By string `json:"by,omitempty"`
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

// Parse reads an election's record. One that isn't stored says nothing. The error matches
// [store.ErrCorrupt] when the record can't be read.
func Parse(rec store.Record) (Ballot, error) {
	b := Ballot{Format: Format}
	if len(rec.Data) == 0 {
		return b, nil
	}
	if err := json.Unmarshal(rec.Data, &b); err != nil {
		return Ballot{}, fmt.Errorf("%s: %w: its data: %w", rec.Key, store.ErrCorrupt, err)
	}
	if b.Format != Format {
		return Ballot{}, unreadableError{fmt.Errorf("%s: its data have format %d: this version reads format %d", rec.Key, b.Format, Format)}
	}
	return b, nil
}

// unreadableError matches [store.ErrCorrupt].
type unreadableError struct{ error }

func (unreadableError) Is(target error) bool { return target == store.ErrCorrupt }

// Find returns the place of the candidate of that session, or -1.
func (b Ballot) Find(session string) int {
	return slices.IndexFunc(b.Candidates, func(o Candidate) bool { return o.Session == session })
}

// Others reports whether a candidate other than that of session may lead.
func (b Ballot) Others(session string) bool {
	return slices.ContainsFunc(b.Candidates, func(o Candidate) bool { return o.Session != session && !o.Ineligible })
}

// Around returns the sessions of the other candidates, beginning with the one before session on the
// list and going up, from the first to the last.
func (b Ballot) Around(session string) []string {
	i := max(b.Find(session), 0)
	var keys []string
	for n := 1; n <= len(b.Candidates); n++ {
		if key := b.Candidates[(i-n+len(b.Candidates))%len(b.Candidates)].Session; key != session {
			keys = append(keys, key)
		}
	}
	return keys
}

// AsWanted reports whether the list says of me what it is to say, as far as there is room, and
// names none of those whose sessions are over.
func (b Ballot) AsWanted(me Candidate, over map[string]bool) bool {
	for _, o := range b.Candidates {
		if over[o.Session] || o.Session == me.Session && o.Ineligible != me.Ineligible {
			return false
		}
	}
	return b.Find(me.Session) >= 0 || len(b.Candidates) >= MaxCandidates
}

// Update lets f change what the record of an election says, as [store.Update] does. The record is
// in use then.
func Update(ctx context.Context, st store.Store, name string, f func(*Ballot) (write bool, err error)) error {
	return edit(ctx, st, name, func(b *Ballot) (bool, error) {
		b.Unused = time.Time{}
		return f(b)
	})
}

// edit is Update without that.
func edit(ctx context.Context, st store.Store, name string, f func(*Ballot) (bool, error)) error {
	return store.Update(ctx, st, Prefix+name, func(rec *store.Record) (bool, error) {
		b, err := Parse(*rec)
		if err != nil {
			return false, err
		}
		if write, err := f(&b); err != nil || !write {
			return false, err
		}
		rec.Data, err = json.Marshal(b)
		return err == nil, err
	})
}
