package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// sight is what one look at the store found.
type sight struct {
	names    map[string]store.Record
	sessions map[string]store.Record
	pauses   map[string]*api.Pause   // of elections, by their names; nil for one that isn't paused
	turns    map[string][]turns.Turn // of jobs, by their names
	corrupt  map[string]error        // the names whose records can't be read
	zones    map[candidacy]string    // of candidates that say where they are
}

// candidacy is a session in an election.
type candidacy struct{ election, session string }

// Who reads all records for nobody in particular rests for listRest after so many.
const (
	restAfter = 256
	listRest  = 5 * time.Millisecond
)

// survey reads the names that begin with prefix, and what there is of their elections; of sessions
// it sees those that the prefix covers. What it has read before an error is true all the same. A
// record that can't be read is no error of the others.
//
// A survey that rests does so now and then, so that it doesn't take a core while requests want one.
func (s *Server) survey(ctx context.Context, prefix string, rests bool) (found sight, err error) {
	expected := 0
	if prefix == "" {
		expected = int(s.board.size.Load())
		defer func() { s.board.size.Store(int64(len(found.names))) }()
	}
	found = sight{make(map[string]store.Record, expected), map[string]store.Record{}, map[string]*api.Pause{}, map[string][]turns.Turn{}, map[string]error{}, map[candidacy]string{}}
	prefixes := []string{prefix}
	for _, beside := range []string{kinds.Elections + prefix, turns.Prefix + prefix} {
		if prefix != "" && !keyspace.Reserved(prefix) && driver.CheckPrefix(beside) == nil {
			prefixes = append(prefixes, beside) // else they come with the rest
		}
	}
	for _, p := range prefixes {
		read := 0
		for rec, listErr := range s.st.List(ctx, p) {
			if read++; read%many == 1 {
				heard(ctx)
			}
			if rests && read%restAfter == 0 && clock.Sleep(ctx, s.clk, listRest) != nil {
				return found, context.Cause(ctx)
			}
			var corrupt *store.CorruptError
			switch {
			case errors.As(listErr, &corrupt):
				found.noteCorrupt(corrupt)
			case listErr != nil:
				err = listErr
			default:
				found.note(rec, s.clk.Wall())
			}
		}
	}
	if err == nil {
		found.complete(prefix)
	}
	return found, err
}

// complete adds the names that begin with prefix and have no record of their own.
func (f sight) complete(prefix string) {
	add := func(name string) {
		if _, ok := f.names[name]; !ok && strings.HasPrefix(name, prefix) {
			f.names[name] = store.Record{Key: name}
		}
	}
	for name, p := range f.pauses {
		if p != nil {
			add(name) // it was paused before anybody led
		}
	}
	for name := range f.turns {
		add(name) // its own record was swept
	}
}

func (f sight) note(rec store.Record, now time.Time) {
	name, candidates, pause, stands := readElection(rec, now)
	job, isJob := strings.CutPrefix(rec.Key, turns.Prefix)
	switch {
	case isJob:
		if all, err := turns.Read(rec); err == nil && len(all) > 0 {
			f.turns[job] = all
		}
	case stands:
		f.pauses[name] = pause
		for _, c := range candidates {
			if c.Zone != "" {
				f.zones[candidacy{name, c.Session}] = c.Zone
			}
		}
	case isSession(rec.Key):
		f.sessions[rec.Key] = rec
	case !keyspace.Reserved(rec.Key):
		f.names[rec.Key] = rec
	}
}

func (f sight) noteCorrupt(err *store.CorruptError) {
	if !keyspace.Reserved(err.Key) {
		f.corrupt[err.Key] = err
	}
}

// after returns the names behind that one, in order.
func (f sight) after(name string) []string {
	names := make([]string, 0, len(f.names)+len(f.corrupt))
	for n := range f.names {
		names = append(names, n)
	}
	for n := range f.corrupt {
		if _, ok := f.names[n]; !ok { // paused, and not to be read
			names = append(names, n)
		}
	}
	slices.Sort(names)
	i, known := slices.BinarySearch(names, name)
	if known {
		i++
	}
	return names[i:]
}

// readElection returns the name of an election, who stands, and its pause if there is one now, if
// rec is the record of one.
func readElection(rec store.Record, now time.Time) (name string, stand []ballot.Candidate, p *api.Pause, ok bool) {
	name, ok = strings.CutPrefix(rec.Key, kinds.Elections)
	if !ok {
		return "", nil, nil, false
	}
	state, err := ballot.StateOf(rec, now)
	if err == nil && state.Pause != nil {
		p = new(api.Pause(*state.Pause))
	}
	return name, state.Candidates, p, true
}

// turnMark tells how the last turn of a job stands from how it stood before.
type turnMark struct {
	token fence.Token
	ended bool
}

// latest returns the mark of the last of a job's turns; the zero one if there is none.
func latest(all []turns.Turn) turnMark {
	if len(all) == 0 {
		return turnMark{}
	}
	return turnMark{all[0].Token, all[0].Code != nil}
}
