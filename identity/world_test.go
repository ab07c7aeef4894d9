package identity

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// wallOffset is how far wall clocks are ahead of the bubble's time: layouts begin later than that.
const wallOffset = 30 * 365 * 24 * time.Hour

// world is one database and the processes that use it, in virtual time.
type world struct {
	*testing.T
	db      *memory.DB
	ageless bool // the store vouches for no Age
}

// inWorld runs f twice: on a store that vouches for the age of its records, and on one that doesn't.
func inWorld(t *testing.T, f func(t *testing.T, w world)) {
	t.Helper()
	for _, ageless := range []bool{false, true} {
		t.Run(fmt.Sprintf("ageless=%t", ageless), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, world{t, memory.NewDB(memory.Options{Clock: clock.NewFake(0)}), ageless}) })
		})
	}
}

// process is one, with a clock of its own.
type process struct {
	w    world
	m    *lease.Manager
	s    *lease.Session
	net  *faulty.Store
	clk  *clock.Fake
	dead atomic.Bool
}

func (w world) process(plan faulty.Plan) *process {
	w.Helper()
	p := &process{w: w, clk: clock.NewFake(0)}
	st := store.Store(w.db.Open())
	if w.ageless {
		st = faulty.Ageless(st)
	}
	p.net = faulty.Wrap(st, func(op faulty.Op) faulty.Fault {
		switch {
		case p.dead.Load():
			return faulty.Fault{Drop: true}
		case plan != nil:
			return plan(op)
		}
		return faulty.Fault{}
	})
	p.clk.StepWall(wallOffset)
	var err error
	if p.m, err = lease.NewManager(p.net, lease.Options{TTL: ttl, Clock: p.clk}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := errors.Join(p.m.Close(), p.net.Close()); err != nil {
			w.Error(err)
		}
	})
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
