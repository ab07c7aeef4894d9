package dr

import (
	"strings"
	"testing"
)

// TestAlike: a store that fails all the time is said once, and whatever else makes a role is said each time.
func TestAlike(t *testing.T) {
	const reset = "passive: the store can't be asked: read tcp 127.0.0.1:41234->10.0.0.1:443: connection reset by peer"
	for other, want := range map[string]bool{
		strings.Replace(reset, "41234", "39998", 1):           true,
		strings.Replace(reset, "reset by peer", "refused", 1): false,
		"passive: another instance holds the lease":           false,
		"active (term 1795302660131)":                         false,
	} {
		if alike(reset, other) != want {
			t.Errorf("%q: want %t", other, want)
		}
	}
}
