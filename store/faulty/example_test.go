package faulty_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// The answer to the first write is lost: it was done, and its caller can't know.
func ExampleWrap() {
	ctx := context.Background()
	st := faulty.Wrap(memory.New(memory.Options{}), func(op faulty.Op) faulty.Fault {
		return faulty.Fault{LoseReply: op.Kind == faulty.Put && op.Nth == 1}
	})
	defer st.Close()

	_, err := st.Put(ctx, store.Record{Key: "billing", Data: []byte("invoice 1")})
	fmt.Println("unknown outcome:", errors.Is(err, store.ErrUnknownOutcome))
	rec, err := st.Get(ctx, "billing")
	fmt.Printf("%s %v\n", rec.Data, err)
	// Output:
	// unknown outcome: true
	// invoice 1 <nil>
}
