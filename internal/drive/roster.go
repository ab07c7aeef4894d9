package drive

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Member is a lease that a session keeps.
type Member interface {
	comparable
	Name() string
	Token() fence.Token
}

// Roster is what one session keeps, and hears of it. Its zero value is that of a session that keeps
// nothing yet. It is safe for concurrent use.
type Roster[L Member] struct {
	mu      sync.Mutex
	members map[string]L
	// Terms that an operator broke before their claims were known to have landed.
	missed map[string]fence.Token
	over   bool
}

// Entry is what a session makes of a lease that was just acquired under it.
type Entry[L Member] struct {
	Over   bool // the session is over, and the lease with it
	Broken bool // an operator broke it before the claim was known to have landed
	// Another term of the name: an operator ended it, and the notice of that is on its way.
	Older   L
	Another bool // there is an Older
}

// Enlist adds a lease that was just acquired.
func (r *Roster[L]) Enlist(l L) (e Entry[L]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := l.Name()
	last := l
	older, another := r.members[key]
	if another && older.Token() > l.Token() {
		last, older = older, l // which comes late
	}
	e.Broken = r.missed[key] == l.Token()
	delete(r.missed, key)
	if e.Over = r.over; e.Over {
		return e
	}
	if r.members == nil {
		r.members = map[string]L{}
	}
	r.members[key] = last
	e.Older, e.Another = older, another
	return e
}

// Member returns the lease of that key, and whether there is one.
func (r *Roster[L]) Member(key string) (l L, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok = r.members[key]
	return l, ok
}

// Members returns the leases, in no order.
func (r *Roster[L]) Members() []L {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.members))
}

// Forget takes a lease out that was let go.
func (r *Roster[L]) Forget(l L) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.members[l.Name()] == l {
		delete(r.members, l.Name())
	}
}

// Close ends the session, and returns the leases that end with it.
func (r *Roster[L]) Close() (ended []L) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.members)) {
		ended = append(ended, r.members[key])
	}
	r.over, r.members = true, nil
	return ended
}

// notice is what an operator tells a session: leases of it that were broken, by key, with their
// tokens.
type notice struct {
	Broken map[string]fence.Token `json:"broken"`
}

// ReadNotice returns the leases that a notice on a session's record says were broken, with their
// tokens. A notice that can't be read, or that names none, is an error: any lease of the session
// may have been broken.
func ReadNotice(data []byte) (map[string]fence.Token, error) {
	var n notice
	if err := json.Unmarshal(data, &n); err != nil {
		return nil, fmt.Errorf("%.60q tells of broken leases: %w", data, err)
	}
	if len(n.Broken) == 0 {
		return nil, fmt.Errorf("%.60q tells of broken leases, and names none", data)
	}
	return n.Broken, nil
}

// WriteNotice returns the notice that says so of some leases; nil for none.
func WriteNotice(broken map[string]fence.Token) []byte {
	if len(broken) == 0 {
		return nil
	}
	data, _ := json.Marshal(notice{broken}) // a map of names and numbers has a text
	return data
}

// Told returns the leases that a notice says were broken, which are over. It remembers those whose
// claims are still on their way. Where the notice can't be read, which it says by an error, any
// lease of the session may have been broken.
func (r *Roster[L]) Told(data []byte) (broken []L, err error) {
	told, err := ReadNotice(data)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(told)) {
		token := told[key]
		l, ok := r.members[key]
		if !ok || l.Token() < token {
			if r.missed == nil {
				r.missed = map[string]fence.Token{}
			}
			r.missed[key] = token
		}
		if ok && l.Token() == token {
			broken = append(broken, l)
		}
	}
	return broken, nil
}

// Clone returns the roster of a clone of the process, whose leases twin knows.
func (r *Roster[L]) Clone(twin func(L) L) *Roster[L] {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Roster[L]{members: maps.Clone(r.members), missed: maps.Clone(r.missed), over: r.over}
	for key, l := range c.members {
		c.members[key] = twin(l)
	}
	return c
}

// Notify returns the record of a session with a notice that rec, which it keeps, was broken: it is
// written before rec is. It reports false when the session need not be told. What the session was
// told before, and has not met yet, stays.
func Notify(session, rec store.Record, note, nonce string) (store.Record, bool) {
	if !protocol.NeedsNotice(session, rec.Owner) {
		return store.Record{}, false
	}
	told, err := ReadNotice(session.Data)
	if err != nil { // there is none that the session has not met
		told = map[string]fence.Token{}
	}
	told[rec.Key] = rec.Token
	return protocol.Noticed(session, note, WriteNotice(told), nonce), true
}
