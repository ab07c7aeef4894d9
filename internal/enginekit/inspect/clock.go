package inspect

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store/driver"
)

// skewed is a difference of clocks that is worth a look.
const skewed = time.Second

// Clock returns the finding of how far a server's wall clock is from this machine's, of an engine
// whose records have an age by the server's clock where ClockStep is more than 0. trip is how long
// the answer took.
func Clock(offset, trip, clockStep time.Duration) driver.Finding {
	f := driver.Finding{What: "clock", Status: driver.StatusOK}
	f.Detail = fmt.Sprintf("the server's is %v from the one here, give or take %v", offset.Round(time.Millisecond), trip.Round(time.Millisecond))
	if clockStep > 0 {
		f.Detail += fmt.Sprintf("; ages hold while it isn't set by more than %v", clockStep)
	}
	if offset.Abs() > skewed+trip {
		f.Status, f.Advice = driver.StatusWarn, "run a time daemon on both; no lease depends on it, but new tokens of a store that lost records and the opt-in Age do"
	}
	return f
}
