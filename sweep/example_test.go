package sweep_test

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/store/memory"
	"github.com/leasehold/leasehold/sweep"
)

// Look at what a sweep would delete, without deleting it.
func ExampleRun() {
	st := memory.New(memory.Options{}) // or any other engine
	defer st.Close()

	report, err := sweep.Run(context.Background(), st, sweep.Options{DryRun: true})
	fmt.Println(report.Records, "records,", report.Unsettled, "unsettled,", err)
	// Output: 0 records, 0 unsettled, <nil>
}
