package lease_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// Of a session's leases eight are followed, each once. One that is over leaves its place to another.
func TestALeaseThatIsOverIsNotFollowed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Unsafe = true // until it is noticed
		n := w.Node(lease.Options{})
		s := n.Open()
		var leases []*lease.Lease
		enlist := func(count, waits int) {
			t.Helper()
			for range count {
				leases = append(leases, n.Under(s, fmt.Sprint("job/", len(leases))))
			}
			before := n.Net.Count(faulty.Wait)
			time.Sleep(ttl / 4)
			if got := n.Net.Count(faulty.Wait) - before; got != waits {
				t.Fatalf("%d waits for %d more, so that they are %d; want %d", got, count, len(leases), waits)
			}
		}
		enlist(6, 6)
		enlist(3, 2)
		for _, l := range leases {
			release(t, l)
		}
		leases = leases[:0]
		synctest.Wait()
		enlist(8, 8)
		for _, l := range leases {
			w.Wipe(l.Name())
			synctest.Wait()
			if l.Check() == nil {
				t.Errorf("%s: that its record is gone is not noticed at once", l)
			}
		}
	})
}
