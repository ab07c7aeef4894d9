package protocol

import (
	"errors"
	"slices"

	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
)

// fit sees that the name may be taken as what the hold wants it as, and ends the hold if it may
// not: in use, a name stays what it is. It returns the key of a record that has to be read before
// that is known, or "".
func (h *Hold) fit(s Standing) string {
	rec, wanted := h.rec.Rec, h.Claim.Kind
	switch {
	case wanted == "":
		return ""
	case (rec.Kind.Shared() || rec.Kind == store.KindPool) && !h.recFresh:
		// What was remembered of it says nothing.
		return h.Key
	case rec.Kind == store.KindPool && wanted != rec.Kind:
		h.end(&store.KindError{Name: h.Key, Kind: rec.Kind, Wanted: wanted, Holder: rec.Owner})
		return ""
	case rec.Kind.Shared():
		h.keepOut(rec)
		return ""
	case s == Taken && rec.Kind != "" && rec.Kind != wanted:
		h.end(&store.KindError{Name: h.Key, Kind: rec.Kind, Wanted: wanted, Holder: rec.Owner})
		return ""
	case s == Taken, s == Mine, s == Offered:
		return ""
	}
	key := kinds.Beside(rec, wanted)
	switch {
	case key == "":
	case h.beside == nil || h.beside.Key != key:
		return key
	default:
		h.keepOut(*h.beside)
	}
	return ""
}

// keepOut ends the hold if rec names anybody who is not known to be gone.
func (h *Hold) keepOut(rec store.Record) {
	sessions, kind, err := kinds.Members(rec)
	sessions = slices.DeleteFunc(sessions, func(session string) bool { return h.Gone[session] })
	switch {
	case err != nil:
		h.end(err)
	case len(sessions) > 0:
		h.end(&store.KindError{Name: h.Key, Kind: kind, Wanted: h.Claim.Kind, Members: sessions})
	}
}

// readBeside takes note of the record beside the name's own. A store that has no room for its key
// has none.
func (h *Hold) readBeside(env Env, key string, rec store.Record, err error) {
	if err != nil && !errors.Is(err, store.ErrInvalid) {
		h.failed(env, err)
		return
	}
	h.worked()
	rec.Key = key
	h.beside = &rec
}
