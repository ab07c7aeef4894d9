package storetest

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/leasehold/leasehold/store"
)

// tracesReach: the trace in a caller's context reaches a client of net/http if, and only if, the
// engine says that it uses one.
func tracesReach(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	var asked atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { asked.Store(true) }})
	if _, err := mustPut(traced, s, held("traced", 1)); err != nil {
		return err
	}
	if says := store.Describe(s).OverHTTP; says != asked.Load() {
		return fmt.Errorf("Properties say OverHTTP %t; that a Put asked a client of net/http for a connection is %t", says, asked.Load())
	}
	return nil
}
