// Package pools names the pools of identities and their values as the records do. The packages
// around identity need these names, and no user does.
package pools

import (
	"fmt"
	"net/url"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/kinds"
)

// KeyPrefix begins the names of the leases of values; the pool and the value follow, each escaped
// as a path element is.
const KeyPrefix = kinds.Values

// MaxSize is how many values a pool has at most.
const MaxSize = 1 << 16

// Key returns the name of the lease of a value.
func Key(pool, value string) string {
	return KeyPrefix + url.PathEscape(pool) + "/" + url.PathEscape(value)
}

// OfLayout returns the name of the pool that the node numbers of an ids' layout, whose text that is
// ([flake.Layout.String]), come from where nothing else is said: `leasehold id next` and a server's
// ids share them.
func OfLayout(layout string) string { return "ids-" + layout }

// Numbers returns the range of the node numbers of a layout, of which a pool has the first
// [MaxSize] if there are more.
func Numbers(l flake.Layout) string {
	return fmt.Sprintf("0-%d", min(l.Nodes(), MaxSize)-1)
}
