package browsertest

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/server/web/demo"
)

// The demo shows what it is there to show.
func TestDemo(t *testing.T) {
	s := serve(t, nil, server.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		demo.Play(ctx, s.URL, clock.System())
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	p := open(t, desk, s.URL)
	p.state("payments/settlement", "paused")
	p.state("search/leader", "held")
	p.state("deploy/production", "contended")
	p.state("orders/shard-2", "held")
	p.state("reports/nightly", "free")
	p.state("mail/outbox", "broken")
	p.state("db/migrations", "expired")
	p.state("ingest/leader", "in jeopardy")
	p.shot("demo")
	p.fit()
}
