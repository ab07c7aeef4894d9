package client

import (
	"maps"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
)

// kept is what this client's sessions keep, as it knows that: a renewal names it, so that any
// server on the store looks at it.
type kept struct {
	mu       sync.Mutex
	sessions map[string]*keeping // by id
}

type keeping struct {
	until  clock.Instant // when the session is over, unless it is renewed
	leases map[string]fence.Token
}

// renewed takes note of a session that was opened or renewed, and forgets those that are over.
func (k *kept) renewed(s Session, now clock.Instant) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.sessions, func(_ string, of *keeping) bool { return of.until <= now })
	of := k.sessions[s.ID]
	if of == nil {
		of = &keeping{leases: map[string]fence.Token{}}
		if k.sessions == nil {
			k.sessions = map[string]*keeping{}
		}
		k.sessions[s.ID] = of
	}
	of.until = s.ValidUntil
}

func (k *kept) over(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.sessions, session)
}

// add takes note of a lease that a session keeps.
func (k *kept) add(session, name string, token fence.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.sessions[session]; of != nil {
		of.leases[name] = token
	}
}

// remove takes out a lease that was let go.
func (k *kept) remove(session, name string, token fence.Token) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.sessions[session]; of != nil && of.leases[name] == token {
		delete(of.leases, name)
	}
}

// named returns what a renewal of the session names; nil to leave that to the server, which looks
// at what it has granted then.
func (k *kept) named(s Session) map[string]fence.Token {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.sessions[s.ID]
	if !s.looks || of == nil || len(of.leases) == 0 || len(of.leases) > api.MaxNamed {
		return nil
	}
	return maps.Clone(of.leases)
}
