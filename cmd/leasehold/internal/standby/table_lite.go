//go:build lite

package standby

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
)

// TableOpener returns [OpenTable].
func TableOpener(func()) func(context.Context, admiral.Config) (store.Store, error) {
	return OpenTable
}

// CheckRegion passes: [OpenTable] says what this build lacks.
func CheckRegion(context.Context, admiral.Config) error { return nil }

// OpenTable fails: this build has no client for DynamoDB. With a store of another kind, standby
// works.
func OpenTable(_ context.Context, cfg admiral.Config) (store.Store, error) {
	return nil, fmt.Errorf("table %s: this is leasehold-lite, which has no DynamoDB: install the full program, leasehold, or name another store", cfg.TableName)
}
