package outcome

import (
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Refusal returns the error of a write of key that was refused. sure is the record that is there
// instead, with the store's whole promise, or one without a version where there is none; err is why
// that isn't known. Then the record may show this very write, so its outcome is unknown.
func Refusal(key string, sure store.Record, err error) error {
	switch {
	case err != nil:
		return driver.Unknown(key, err)
	case sure.Version == "":
		return driver.NotFound(key)
	}
	return &store.ConflictError{Current: sure}
}
