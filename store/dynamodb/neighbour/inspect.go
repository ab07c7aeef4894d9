package neighbour

import (
	"context"

	"github.com/leasehold/leasehold/store"
)

// Inspect implements [store.Inspector].
func (s *Store) Inspect(ctx context.Context) []store.Finding { return nil }
