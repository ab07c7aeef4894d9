package drive

import (
	"maps"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Recollection is what outlives one attempt at a name: the observation, so that an abandoned lease
// is noticed by callers who each try only once, and the nonces of terms that were given up, which
// the record may still show.
type Recollection struct {
	Seen    protocol.Seen
	session protocol.Seen // of the record that keeps the name's record alive
	mine    []string

	latest protocol.Latest // the newest version that is known, for terms of holders elsewhere
}

// Observed returns the recollection of a name of which only that is known: its record as it was
// seen, and that of the session which keeps it.
func Observed(rec, session protocol.Seen) Recollection {
	return Recollection{Seen: rec, session: session}
}

// maxOrphans bounds the nonces remembered of one name.
const maxOrphans = 16

// After returns what h leaves behind. A hold begins with what was remembered before it.
func After(h *protocol.Hold) Recollection {
	mine := h.Orphans()
	return Recollection{Seen: h.Seen(), session: h.SeenSession(), mine: mine[max(0, len(mine)-maxOrphans):]}
}

// Look takes over what h has seen.
func (r *Recollection) Look(h *protocol.Hold) {
	r.Seen, r.session = h.Seen(), h.SeenSession()
	r.latest = r.latest.Note(r.Seen.Rec)
}

// Granted takes note of a term that began here: what was known of later versions is of a store that
// has forgotten them.
func (r *Recollection) Granted(rec store.Record) { r.latest = protocol.LatestOf(rec) }

// Orphan remembers the nonces under which h may yet be found in the record. Those that h has begun
// with are known: they must not take the place of what another hold has left behind since.
func (r *Recollection) Orphan(h *protocol.Hold) {
	mine := slices.Clone(r.mine)
	for _, nonce := range h.Orphans() {
		if !slices.Contains(mine, nonce) {
			mine = append(mine, nonce)
		}
	}
	r.mine = mine[max(0, len(mine)-maxOrphans):]
}

// AppendState appends all that decides of what it is remembered for; see
// [protocol.Hold.AppendState].
func (r *Recollection) AppendState(b []byte, names func([]byte, string) []byte) []byte {
	for _, nonce := range r.mine {
		b = names(b, nonce)
	}
	return b
}

// MaxNames bounds the names of one [Memory]. One that is forgotten costs a read, or a wait of one
// TTL, not safety.
const MaxNames = 4096

// Memory is what is remembered of names that aren't held. Its zero value is empty. It is safe for
// concurrent use.
type Memory struct {
	mu    sync.Mutex
	names map[string]Recollection
}

// Recall returns what is remembered of a name.
func (m *Memory) Recall(key string) Recollection {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.names[key]
}

// Remember keeps what a hold leaves behind.
func (m *Memory) Remember(h *protocol.Hold) {
	r := After(h)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.names) >= MaxNames {
		for key := range m.names { // any one
			delete(m.names, key)
			break
		}
	}
	if m.names == nil {
		m.names = map[string]Recollection{}
	}
	m.names[h.Key] = r
}

// Forget forgets a name that is held: its hold knows better.
func (m *Memory) Forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.names, key)
}

// Note takes note of a record that was just read, if there is room.
func (m *Memory) Note(rec store.Record, now clock.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	past, known := m.names[rec.Key]
	if !known && len(m.names) >= MaxNames {
		return
	}
	if m.names == nil {
		m.names = map[string]Recollection{}
	}
	past.Seen = past.Seen.Note(rec, now)
	m.names[rec.Key] = past
}

// Len returns how many names are remembered.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.names)
}

// Clone returns the memory of a clone of the process.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{names: maps.Clone(m.names)}
}
