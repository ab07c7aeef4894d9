package lease_test

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// Who has read the record of a name that others had before begins with no write that is refused.
func TestNotice(t *testing.T) {
	leasetest.Run(t, func(t *testing.T, w *world) {
		release(t, w.Node(lease.Options{}).Take("a"))
		n := w.Node(lease.Options{})
		for _, name := range []string{"a", "none"} {
			n.Notice(w.Get(name))
			before := n.Net.Count(faulty.Put)
			l := n.Take(name)
			if n := n.Net.Count(faulty.Put) - before; n != 1 {
				t.Errorf("%s: %d writes", name, n)
			}
			release(t, l)
		}
	})
}
