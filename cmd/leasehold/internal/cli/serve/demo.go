package serve

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold/server/web/demo"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// stage opens the store that a demo plays on: it is gone with this process.
func (a *app) stage() store.Store { return memory.New(memory.Options{Clock: a.Clock}) }

// play has the demo's actors act at the server, until stop, which waits for them to leave.
func (a *app) play(ctx context.Context, url string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { demo.Play(ctx, url, a.Clock) })
	return func() {
		cancel()
		wg.Wait()
	}
}
