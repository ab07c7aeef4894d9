package memory_test

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(testing.TB) storetest.Instance {
		db := memory.NewDB(memory.Options{})
		return storetest.Instance{
			Open:   func(context.Context) (store.Store, error) { return db.Open(), nil },
			Pushes: true,
			HasAge: true,
		}
	})
}
