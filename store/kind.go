package store

import (
	"errors"
	"fmt"
)

// Kind is what a name is. The first use of a name says so, in the name's own record; a name that nobody holds, and that nobody is a
// member of, may become another kind by its next use. Only a pool stays one.
type Kind string

// The kinds. "" is that of a record which no use has said it of: one that another program wrote, or a Leasehold that knew no kinds.
const (
	KindLease     Kind = "lease" // held by one at a time; a mutex is one, too
	KindRW        Kind = "rw"    // a read/write lock
	KindSemaphore Kind = "semaphore"
	KindElection  Kind = "election"
	KindPool      Kind = "pool" // of identities: it has to remember its values when nobody holds one
)

// Shared reports whether several may hold a name of that kind at a time. Then Data lists who does, and Owner is "".
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

// ErrKind is what every *[KindError] matches.
var ErrKind = errors.New("name is of another kind")

// KindError says that a name is in use as another kind than was wanted. It matches [ErrKind]; nothing was written.
type KindError struct {
	Name   string
	Kind   Kind // what it is
	Wanted Kind
	Holder string // owner id of who holds it alone; "" when nobody does

	// Members are the keys of the sessions that share it, wait for a share, or are candidates. Some of them may be gone.
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
