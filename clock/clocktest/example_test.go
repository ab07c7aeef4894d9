package clocktest_test

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

// A jump is what a machine sees that was suspended: nothing in a test has to wait for it.
func ExampleNew() {
	clk := clocktest.New(clock.Instant(time.Hour))
	validUntil := clk.Now().Add(15 * time.Second)

	clk.Jump(20 * time.Second)
	fmt.Println(clk.Now() > validUntil)
	// Output: true
}
