package leaseotel_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/leaseotel"
	"github.com/leasehold/leasehold/store/memory"
)

// A program gives its manager the hooks, and flushes them at its end, before it shuts the providers
// down.
func Example() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter() // a program has an OTLP exporter here
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	telemetry, err := leaseotel.New(leaseotel.Config{TracerProvider: provider})
	if err != nil {
		fmt.Println(err)
		return
	}
	st := memory.New(memory.Options{})
	defer st.Close()
	manager, err := lease.NewManager(st, telemetry.Options(lease.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = manager.Run(ctx, "nightly-report", func(context.Context, *lease.Lease) error {
		fmt.Println("working")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	_ = manager.Close()
	_ = telemetry.Flush(ctx)
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	_ = provider.Shutdown(ctx)
	// Output:
	// working
	// leasehold acquire
	// leasehold term
	// leasehold release
}
