package protocol

import (
	"math"
	"testing"
)

func TestMargin(t *testing.T) {
	for rho, want := range map[float64]float64{0: 0, 0.01: 0.0198, 0.0833: 0.1538, 0.11: 0.1982} {
		if got := LeastMargin(rho); math.Abs(got-want) > 0.0001 {
			t.Errorf("Margin(%v) = %v, want %v", rho, got, want)
		}
		// Holder slow, taker fast: the holder stops first, or at the same time.
		if holder, taker := (1-LeastMargin(rho))/(1-rho), 1/(1+rho); holder > taker+1e-12 {
			t.Errorf("Margin(%v): the holder stops at %v, the taker begins at %v", rho, holder, taker)
		}
	}
}
