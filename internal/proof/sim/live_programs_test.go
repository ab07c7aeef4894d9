package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// program wants names, holds them and lets go of them, in every way there is, until the calm. Then it wants one once more,
// and has to get it.
func (p *process) program(rng *rand.Rand) {
	w := p.w
	for !w.isCalm() {
		pause(rng, p.ttl/2)
		p.running()
		key := w.keys[rng.IntN(len(w.keys))]
		switch rng.IntN(6) {
		case 0:
			p.try(rng, key)
		case 1, 2:
			p.acquire(rng, key, time.Duration(rng.Int64N(int64(3*p.ttl))))
		case 3:
			p.runUnder(rng, key)
		default:
			p.useSession(rng)
		}
	}
	key := w.keys[rng.IntN(len(w.keys))]
	w.wants(key, 1)
	defer w.wants(key, -1)
	for {
		p.running()
		l, err := p.manager().Acquire(context.Background(), key)
		if err == nil {
			w.announce(p, l)
			pause(rng, p.ttl/4)
			p.release(rng, l)
			return
		}
		if !errors.Is(err, lease.ErrClosed) {
			w.violated("%v, in the calm: %v", p, err)
			return
		}
		if p.isOver() {
			return
		}
		pause(rng, time.Second) // it is being restarted
	}
}

// isOver reports whether the run was given up.
func (p *process) isOver() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.w.wrong > 0
}

func pause(rng *rand.Rand, most time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(most)))) }

func (p *process) try(rng *rand.Rand, key string) {
	if l, err := p.manager().TryAcquire(context.Background(), key); err == nil {
		p.use(rng, l)
	}
}

func (p *process) acquire(rng *rand.Rand, key string, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if l, err := p.manager().Acquire(ctx, key); err == nil {
		p.use(rng, l)
	}
}

func (p *process) runUnder(rng *rand.Rand, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(3*p.ttl))))
	defer cancel()
	_ = p.manager().Run(ctx, key, func(ctx context.Context, l *lease.Lease) error {
		p.w.announce(p, l)
		for range rng.IntN(8) {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(time.Duration(rng.Int64N(int64(p.ttl / 3)))):
				p.running()
				p.write(l)
			}
		}
		return nil
	})
	p.running()
}

// useSession holds some names under one session, and ends it and them in any order.
func (p *process) useSession(rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), p.ttl)
	s, err := p.manager().OpenSession(ctx)
	cancel()
	if err != nil {
		return
	}
	p.running()
	var wg sync.WaitGroup
	for range 1 + rng.IntN(2) {
		key, rng := p.w.keys[rng.IntN(len(p.w.keys))], rand.New(rand.NewPCG(rng.Uint64(), 1))
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.Int64N(int64(2*p.ttl))))
			defer cancel()
			if l, err := s.Acquire(ctx, key); err == nil {
				p.use(rng, l)
			}
		})
	}
	if rng.IntN(3) > 0 {
		wg.Wait()
	} else {
		pause(rng, p.ttl)
	}
	p.running()
	_ = s.Close(context.Background())
	if s.Check() == nil || s.Context().Err() == nil {
		p.w.violated("%v: the session %s is valid after Close", p, s.Key())
	}
	wg.Wait()
}

// use works under a lease, and lets go of it in some way.
func (p *process) use(rng *rand.Rand, l *lease.Lease) {
	p.w.announce(p, l)
	for range rng.IntN(10) {
		pause(rng, p.ttl/3)
		p.running()
		if !p.write(l) {
			break
		}
	}
	if rng.IntN(4) == 0 { // a request that is under way for long, as of a process that was stopped after its Check
		token, late := l.Token(), time.Duration(rng.Int64N(int64(2*p.ttl)))
		p.w.wg.Go(func() {
			time.Sleep(late)
			p.w.mu.Lock()
			defer p.w.mu.Unlock()
			_ = p.w.admit(l, token)
		})
	}
	p.release(rng, l)
}

// release lets go, in one of the ways that there are.
func (p *process) release(rng *rand.Rand, l *lease.Lease) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.running()
	switch rng.IntN(6) {
	case 0:
		other := p.w.nodes[rng.IntN(len(p.w.nodes))].manager().Holder()
		if p.w.isCalm() || other == l.Holder() || l.HandOver(ctx, other) != nil {
			_ = l.Release(ctx)
		}
	case 1:
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _ = l.Release(ctx) })
		}
		wg.Wait()
	case 2:
		cancel() // which must not keep the release from the store
		_ = l.Release(ctx)
	default:
		_ = l.Release(ctx)
	}
	if l.Check() == nil || l.Context().Err() == nil || l.Left() != 0 {
		p.w.violated("%v: %v is valid after it was let go", p, l)
	}
}

// write is a request to what l guards that arrives at once. It reports false when the lease is over.
func (p *process) write(l *lease.Lease) bool {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.Check() != nil {
		return false
	}
	if err := w.admit(l, l.Token()); err != nil && time.Now().After(w.excused[l.Name()]) {
		w.broke("%v is valid and is refused: %v", p, err)
	}
	return true
}

// admit is the guard. w.mu is held.
func (w *live) admit(l *lease.Lease, token fence.Token) error {
	before := w.marks[l.Name()]
	mark, err := before.Admit(l.Name(), l.Holder(), token)
	if err == nil && token < before.Token {
		w.broke("the guard of %s admits token %d after %d", l.Name(), token, before.Token)
	}
	w.marks[l.Name()] = mark
	return err
}
