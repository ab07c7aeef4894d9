package lease

import (
	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// sightings returns what keeps this manager's observations for other processes; nil when nothing
// does. Where the store vouches for ages nothing has to.
func (m *Manager) sightings() *sightings.Book {
	if m.opts.Sightings == nil || store.Describe(m.run.Store).Age {
		return nil
	}
	return m.opts.Sightings
}

// recall returns what is known of a name: from this process, or else from one before.
func (m *Manager) recall(key string) drive.Recollection {
	past := m.memory.Recall(key)
	book := m.sightings()
	if past.Seen.Known || book == nil {
		return past
	}
	now := m.clk.Now()
	rec := recalled(book, key, now)
	if !rec.Known || rec.Rec.Session == "" {
		return drive.Observed(rec, protocol.Seen{})
	}
	return drive.Observed(rec, recalled(book, rec.Rec.Session, now))
}

// recalled returns a sighting. Its record has no version: it is read before anything is done about
// it.
func recalled(book *sightings.Book, key string, now clock.Instant) protocol.Seen {
	rec, since, known := book.Recall(key, now)
	return protocol.Seen{Rec: rec, Since: since, Known: known}
}

// remember keeps what an attempt that came to nothing has seen.
func (m *Manager) remember(h *protocol.Hold) {
	m.memory.Remember(h)
	book := m.sightings()
	if book == nil {
		return
	}
	for _, seen := range []protocol.Seen{h.Seen(), h.SeenSession()} {
		if seen.Known && seen.Rec.Version != "" && seen.Rec.Owner != m.owner {
			book.Note(seen.Rec, seen.Since)
		}
	}
}
