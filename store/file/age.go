package file

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// boot names the stretch of time in which readings of clock.System are comparable: "<boot>/<time namespace>". It is
// "" where the operating system gives the boot no name; there no Age is known.

// age returns how long ago, at least, a row was written that bears the boot and the time of its writer, for a reader at
// now in the boot here.
func age(here, there string, now, written clock.Instant) time.Duration {
	hereBoot, _, known := strings.Cut(here, "/")
	thereBoot, _, named := strings.Cut(there, "/")
	switch {
	case !known || !named:
		return 0
	case hereBoot != thereBoot: // the file is used on one machine only, and that has been started anew
		return store.Forever
	case here != there: // alive perhaps, on a clock with another origin
		return 0
	}
	return max(now.Sub(written), 0)
}
