package lease

import (
	"maps"
	"sync"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// MaxCarried bounds what [Session.Carry] lets a renewal carry, in bytes.
const MaxCarried = 2 << 10

// rider is what the renewals of a session carry. It is safe for concurrent use.
type rider struct {
	mu   sync.Mutex
	name string
	text func() string
}

// Carry has each renewal of the session write what text returns into its record, as the entry name
// of [store.Record.Info]: a digest for other programs, at no write of its own. It decides nothing.
// text is called before each renewal, every third of the TTL, by the goroutine that renews: it must
// not block. A text of more than [MaxCarried] bytes, and an empty one, takes the entry away. A
// second call replaces the first.
func (s *Session) Carry(name string, text func() string) {
	s.carried.mu.Lock()
	defer s.carried.mu.Unlock()
	s.carried.name, s.carried.text = name, text
}

// mount adds what is carried to a write of the record. r may be nil.
func (r *rider) mount(act protocol.Action) protocol.Action {
	if r == nil || act.Kind != protocol.Write || act.Rec.Owner == "" {
		return act
	}
	r.mu.Lock()
	name, text := r.name, r.text
	r.mu.Unlock()
	if text == nil {
		return act
	}
	act.Rec.Info = with(act.Rec, name, text())
	return act
}

// with returns the info of a record with another entry.
func with(rec store.Record, name, text string) map[string]string {
	info := make(map[string]string, len(rec.Info)+1)
	maps.Copy(info, rec.Info)
	if delete(info, name); text != "" && len(text) <= MaxCarried {
		info[name] = text
	}
	return info
}
