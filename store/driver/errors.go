package driver

import (
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// NotFound returns an error for key that matches [store.ErrNotFound].
func NotFound(key string) error { return fmt.Errorf("%s: %w", key, store.ErrNotFound) }

// Unknown returns an error for a write to key whose outcome is unknown. It matches
// [store.ErrUnknownOutcome] and its cause.
func Unknown(key string, cause error) error {
	return fmt.Errorf("%s: %w: %w", key, store.ErrUnknownOutcome, cause)
}

// Corrupt returns an error for a stored row that can't be read: a *[store.CorruptError].
func Corrupt(key string, cause error) error { return &store.CorruptError{Key: key, Err: cause} }
