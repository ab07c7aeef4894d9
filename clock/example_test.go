package clock_test

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// An instant of this clock still counts when the machine was suspended, or when somebody set the time of day. So it can tell how
// much of a permission is left.
func ExampleSystem() {
	clk := clock.System()
	validUntil := clk.Now().Add(15 * time.Second)

	left := validUntil.Sub(clk.Now())
	fmt.Println(left > 14*time.Second, left <= 15*time.Second)
	// Output: true true
}
