package protocol

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// Ousted judges a term that a session keeps by its record, rec, which was read while the term
// lasted: whether it is over though the session lives, and why. The record has to name the term's
// owner, token and session. Only another writer, or who deleted it, can make it say anything else:
// the holder writes nothing after its claim until it lets go.
func Ousted(rec, term store.Record) (Cause, error) {
	same := rec.Owner == term.Owner && rec.Token == term.Token
	switch {
	case same && rec.Session == term.Session:
		return NotLost, nil
	case same && rec.Intervention == store.InterventionBroken:
		return CauseBroken, fmt.Errorf("by %s", rec.Note)
	case rec.Version == "":
		return CauseTaken, errors.New("its record is gone: somebody deleted it")
	case rec.Owner == "" && rec.Token >= term.Token:
		return CauseTaken, errors.New("somebody freed it")
	case rec.Token < term.Token:
		return CauseTaken, fmt.Errorf("its record has token %d, of an earlier term: somebody edited it, or put it back from a copy", rec.Token)
	case same:
		return CauseTaken, fmt.Errorf("its record names another session, %q: somebody edited it", rec.Session)
	}
	return CauseTaken, fmt.Errorf("%s holds it under token %d", rec.Owner, rec.Token)
}
