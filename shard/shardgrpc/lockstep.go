package shardgrpc

import (
	// If this package is missing, the program mixes modules of two minor versions of Leasehold:
	// require all of them at one.
	_ "github.com/leasehold/leasehold/internal/lockstep/dev"
)
