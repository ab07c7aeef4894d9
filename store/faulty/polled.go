package faulty

import (
	"context"

	"github.com/leasehold/leasehold/store"
)

// Polled returns inner without its push, like an engine that has to be asked. It promises what
// inner does beside that. It owns inner: closing it closes inner.
func Polled(inner store.Store) store.Store { return polled{inner} }

type polled struct{ store.Store }

// Properties implements [store.Describer].
func (p polled) Properties() store.Properties {
	props := store.Describe(p.Store)
	props.Push = false
	return props
}

// Confirm implements [store.Confirmer].
func (p polled) Confirm(ctx context.Context, key string) (store.Record, error) {
	return store.Confirm(ctx, p.Store, key)
}
