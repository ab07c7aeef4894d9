package storetest_test

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
	"github.com/leasehold/leasehold/store/storetest"
)

// The conformance test of an engine: each check gets data of its own, and opens several handles on it.
func ExampleRun() {
	TestConformance := func(t *testing.T) {
		storetest.Run(t, func(testing.TB) storetest.Instance {
			st := memory.New(memory.Options{}) // yours: a table or a folder for each check
			return storetest.Instance{
				Open:     func(context.Context) (store.Store, error) { return st, nil },
				Pushes:   true,
				HasAge:   true,
				Volatile: true,
			}
		})
	}
	_ = TestConformance
}
