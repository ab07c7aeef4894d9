package identity

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = leasetest.TTL

// wallOffset is how far wall clocks are ahead of the bubble's time: layouts begin later than that.
const wallOffset = 30 * 365 * 24 * time.Hour

type world struct {
	*testing.T
	*leasetest.World
}

// inWorld runs f twice: on a store that vouches for the age of its records, and on one that doesn't.
func inWorld(t *testing.T, f func(t *testing.T, w world)) {
	t.Helper()
	leasetest.RunBoth(t, func(t *testing.T, w *leasetest.World) { f(t, world{t, w}) })
}

type process struct {
	*leasetest.Host
	w world
	m *lease.Manager
	s *lease.Session
}

func (w world) process(plan faulty.Plan) *process {
	w.Helper()
	p := &process{Host: w.Host(plan), w: w}
	p.Clk.StepWall(wallOffset)
	p.m = p.Manage(p.Net, lease.Options{})
	p.open()
	return p
}

// open opens a session, until that works.
func (p *process) open() {
	for {
		var err error
		if p.s, err = p.m.OpenSession(p.w.Context()); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// claim claims a value of the pool "machines".
func (p *process) claim(o Options) *Hold {
	p.w.Helper()
	ctx, cancel := context.WithTimeout(p.w.Context(), 10*ttl)
	defer cancel()
	h, err := Claim(ctx, p.s, "machines", o)
	if err != nil {
		p.w.Fatal(err)
	}
	return h
}

func (p *process) release(h *Hold, used time.Time) {
	p.w.Helper()
	if err := h.Release(p.w.Context(), used); err != nil {
		p.w.Fatal(err)
	}
}

func ranged(r string) Options { return Options{Values: Values{Range: r}} }

func named1(r, name string) Options { return Options{Values: Values{Range: r}, Name: name} }
