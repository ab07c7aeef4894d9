package chapter9

import (
	"context"
	"errors"
	"time"
)

// ErrHeld says that another owner has the lock, ErrLost that the caller doesn't have it any more.
var (
	ErrHeld = errors.New("another owner has the lock")
	ErrLost = errors.New("the lock is not this owner's any more")
)

// Held is one term of a lock.
type Held struct {
	Key     string
	Version int64 // rises from term to term, so a resource can compare it
	session any   // what the service ends the lock with
}

// Service is what a lock needs of a coordination service.
type Service interface {
	// Create makes the key, which ends by itself ttl after the last sign of life. It is the
	// compare-and-swap: of many callers one succeeds, and the others get ErrHeld.
	Create(ctx context.Context, key, owner string, ttl time.Duration) (Held, error)

	// Renew is a sign of life. It returns ErrLost if the key is of another term, or gone.
	Renew(ctx context.Context, h Held) error

	// Remove deletes the key, whoever made it.
	Remove(ctx context.Context, key string) error

	// RemoveVersion deletes the key if it is still of that term, and returns ErrLost if not.
	RemoveVersion(ctx context.Context, h Held) error

	// Changed blocks until the key is gone or has changed. It may return early.
	Changed(ctx context.Context, key string) error

	// End has the service end the term as it does when no sign of life comes, and returns when it
	// has.
	End(ctx context.Context, h Held) error
}
