package open

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
)

const (
	// refusedAfter is how long a client has for its first answer before it is looked at whether
	// anybody is there at all.
	refusedAfter = 200 * time.Millisecond
	// refusedLimit bounds that look.
	refusedLimit = time.Second
)

// unlessRefused calls first, the first request of a client that tries again and again, and ends it
// when all addresses refuse connections: that is known at once, and the error says so.
func unlessRefused(ctx context.Context, addrs []string, first func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var look sync.WaitGroup
	look.Go(func() {
		if clock.Sleep(ctx, clock.System(), refusedAfter) == nil {
			if err := refused(ctx, addrs); err != nil {
				cancel(err)
			}
		}
	})
	err := first(ctx)
	if err != nil && errors.Is(context.Cause(ctx), syscall.ECONNREFUSED) {
		err = context.Cause(ctx)
	}
	cancel(nil)
	look.Wait()
	return err
}

// refused returns the error of the first address if each of them refuses connections. It blocks for
// a second at most.
func refused(ctx context.Context, addrs []string) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), refusedLimit)
	defer cancel()
	errs := make([]error, len(addrs))
	var all sync.WaitGroup
	for i, addr := range addrs {
		all.Go(func() {
			var conn net.Conn
			if conn, errs[i] = (&net.Dialer{}).DialContext(ctx, "tcp", addr); errs[i] == nil {
				_ = conn.Close()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
	}
	return errs[0]
}
