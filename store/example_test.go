package store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// Count runs of a job in a record of its own. Each write replaces the version that was read, so no run is lost.
func ExampleUpdate() {
	ctx := context.Background()
	st := memory.New(memory.Options{}) // or any other engine
	defer st.Close()

	for range 3 {
		err := store.Update(ctx, st, "runs/report", func(rec *store.Record) (write bool, err error) {
			rec.Data = append(rec.Data, '|')
			return true, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	rec, err := store.Load(ctx, st, "runs/report")
	fmt.Printf("%s %v\n", rec.Data, err)

	_, err = st.Put(ctx, store.Record{Key: "runs/report"}) // "" is the version of a key that is not stored
	fmt.Println(errors.Is(err, store.ErrConflict))
	// Output:
	// ||| <nil>
	// true
}
