package engines

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// dialer returns locks through a client of its own.
type dialer func(t testing.TB, srv *servers.Server) locker

// A floor is the least that a lease of an engine can be made of: two conditional writes of what says who holds the name, by the same client,
// with nothing around them. It locks nothing that anybody else wants.

// floorValue is about what says who holds a name: owner, token, time to live, since when, host and process.
var floorValue = strings.Repeat("x", 300)

var errRefused = errors.New("refused, though nobody else wants it")

// swapping returns locks that are taken and given back by one swap each. A swap writes the value under a name if that has the version old, the
// zero value if it isn't stored, and returns the next version.
func swapping[V any](swap func(ctx context.Context, name string, old V) (V, error)) locker {
	run, versions := strings.ToLower(rand.Text()), sync.Map{} // versions by name
	change := func(ctx context.Context, name string) error {
		was, _ := versions.Load(name)
		old, _ := was.(V)
		next, err := swap(ctx, run+name, old)
		if err == nil {
			versions.Store(name, next)
		}
		return err
	}
	return func(ctx context.Context, name string) (func() error, error) {
		return func() error { return change(ctx, name) }, change(ctx, name)
	}
}
