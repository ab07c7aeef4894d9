package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// How long one check may take, or a brief one. They are there to end what hangs, and long enough
// for a machine that is busy with other things. An engine that heeds no context is left alone after
// grace.
const (
	limit   = 5 * time.Minute
	briefly = time.Minute
	grace   = 10 * time.Second
)

// limited returns the context of a check. It ends after half of the time that go test leaves, if
// that is less than limit, so that each check that hangs is named before go test gives up.
func limited(t testing.TB) (context.Context, context.CancelFunc) {
	within := limit
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			within = min(within, time.Until(end)/2-grace)
		}
	}
	return context.WithTimeout(t.Context(), within)
}

// errHangs is of a check that has not come back.
var errHangs = errors.New("it hangs")

// bounded returns what do returns, or, when ctx has been done for grace and do has not come back,
// an error that shows what it waits for. do goes on then, and what it has to say is lost.
func bounded(ctx context.Context, logf func(string, ...any), do func(logf func(string, ...any)) error) error {
	var mu sync.Mutex
	left := false
	ended := make(chan error, 1)
	go func() {
		ended <- do(func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			if !left { // a test that is over can't log
				logf(format, args...)
			}
		})
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	select {
	case err := <-ended:
		return err
	case <-last.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	left = true
	return fmt.Errorf("%w: a call of the engine has not returned, %v after its context ended. A call that waits has to end with its context; "+
		"none may keep a lock while it yields to its caller. What waits:\n\n%s", errHangs, grace, waiters())
}

// waiters are the stacks of the goroutines that a check began.
func waiters() string {
	buf := make([]byte, 1<<20)
	var ours []string
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, "/storetest.") && !strings.Contains(stack, "storetest.waiters(") {
			ours = append(ours, stack)
		}
	}
	return strings.Join(ours, "\n\n")
}
