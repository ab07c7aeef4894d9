package store

import (
	"errors"
	"fmt"
)

// Kind is what a name is. The first use of a name writes the kind into the name's own record. When
// nobody holds a name and nobody is a member of it, its next use may make it another kind. Only a
// pool stays a pool.
type Kind string

// The kinds. A record that no use has given a kind has "": another program wrote it, or a Leasehold
// that knew no kinds.
const (
	KindLease     Kind = "lease" // held by one at a time; a mutex is a lease, too
	KindRW        Kind = "rw"    // a read/write lock
	KindSemaphore Kind = "semaphore"
	KindElection  Kind = "election"
	KindPool      Kind = "pool" // of identities: it remembers its values when nobody holds one
)

// Shared reports whether several may hold a name of that kind at a time. Then Data lists the
// holders, and Owner is "".
func (k Kind) Shared() bool { return k == KindRW || k == KindSemaphore }

// phrase is a kind in a sentence.
func (k Kind) phrase() string {
	switch k {
	case "", KindLease:
		return "a lease"
	case KindRW:
		return "a read/write lock"
	case KindElection:
		return "an election"
	case KindPool:
		return "a pool of identities"
	}
	return "a " + string(k)
}

// ErrKind is the error that every *[KindError] matches.
var ErrKind = errors.New("name is of another kind")

// KindError is the error for a name that is in use as another kind than the wanted one. It matches
// [ErrKind]. Nothing was written.
type KindError struct {
	Name   string
	Kind   Kind // what the name is
	Wanted Kind
	Holder string // owner id of the holder who has the name alone; "" when nobody has

	// Members are the keys of the sessions that share the name, wait for a share, or are
	// candidates. Some of them may be gone.
	Members []string
}

func (e *KindError) Error() string {
	if e.Kind == KindPool {
		return fmt.Sprintf("%s is %s, not %s: choose another name", e.Name, e.Kind.phrase(), e.Wanted.phrase())
	}
	who := many(len(e.Members), "holder or waiter", "holders and waiters")
	switch {
	case e.Holder != "":
		who = "held by " + e.Holder
	case e.Kind == KindElection:
		who = many(len(e.Members), "candidate", "candidates")
	}
	return fmt.Sprintf("%s is %s, %s, not %s: use it as what it is, choose another name, or wait until nobody uses it",
		e.Name, e.Kind.phrase(), who, e.Wanted.phrase())
}

func many(n int, one, more string) string {
	if n == 1 {
		return "with one " + one
	}
	return fmt.Sprintf("with %d %s", n, more)
}

// Is reports whether target is [ErrKind].
func (e *KindError) Is(target error) bool { return target == ErrKind }
