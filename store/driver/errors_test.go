package driver_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Every error matches its own sentinel and no other, wrapped or not, and says which record it is about.
func TestErrors(t *testing.T) {
	sentinels := []error{store.ErrNotFound, store.ErrConflict, store.ErrInvalid, store.ErrUnknownOutcome, store.ErrCorrupt, store.ErrClosed, io.EOF}
	for _, tt := range []struct {
		err  error
		want []error
		says string
	}{
		{driver.NotFound("billing"), []error{store.ErrNotFound}, "billing: record not found"},
		{driver.Unknown("billing", io.EOF), []error{store.ErrUnknownOutcome, io.EOF}, "EOF"},
		{driver.Corrupt("billing", io.EOF), []error{store.ErrCorrupt, io.EOF}, "EOF"},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
			for _, sentinel := range sentinels {
				if got := errors.Is(err, sentinel); got != slices.Contains(tt.want, sentinel) {
					t.Errorf("errors.Is(%v, %v) = %v", err, sentinel, got)
				}
			}
			if !strings.Contains(err.Error(), "billing") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v: want it to say %q", err, tt.says)
			}
		}
	}
}
