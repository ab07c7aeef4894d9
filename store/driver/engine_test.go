package driver_test

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// What the example shows is a right engine.
func TestTheExampleConforms(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Instance {
		db := &table{rows: map[string]row{}}
		return storetest.Instance{Open: func(context.Context) (store.Store, error) { return &engine{db: db}, nil }, Volatile: true}
	})
}
