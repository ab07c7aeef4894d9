//go:build !linux

package engines

import (
	"testing"
	"time"
)

// spent is processor time, which is only counted on Linux.
type spent struct{ clients, servers time.Duration }

func spending(*testing.B) spent { return spent{} }
