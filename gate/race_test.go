//go:build race

package gate_test

import "runtime"

// The proxy sets a timer of no length for each answer that streams. Go's runtime (1.26) runs such timers of a bubble at once, each on
// the thread of its goroutine, and all with one context of the race detector, which two threads at a time crash. The detector finds
// races without two threads.
func init() { runtime.GOMAXPROCS(1) }
