package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// Workers of a space that have a session of the server. Each request is one step of package shard,
// and the store has all that there is to know between two: a worker may go on at another server.

// joinSpace makes a session a worker of a space.
func (s *Server) joinSpace(c *call) (any, error) {
	var body api.ShardJoinRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	space, err := c.inSpace(Acquire)
	if err != nil {
		return nil, err
	}
	rec, err := s.sessionRecord(c, body.Session)
	if err != nil {
		return nil, err
	}
	c.event.Holder, c.event.Note = rec.Owner, body.Worker
	for _, name := range body.Shards {
		if err := shardmap.CheckName(name); err != nil {
			p := api.Invalid("shards", name, "names of slices")
			p.Detail = err.Error()
			return nil, p
		}
	}
	if body.Hashed && body.Shards != nil {
		return nil, api.Invalid("shards", "", "no names in a hashed space")
	}
	want := shard.Space{Name: space, Names: body.Shards, Hashed: body.Hashed, Slices: body.Slices, Expect: body.Expect}
	if body.Shards == nil && !body.Hashed { // the space has to be there
		info, err := shard.Describe(c.r.Context(), s.st, space)
		if err != nil {
			return nil, noted(space, err)
		}
		want.Hashed = info.Hashed
	}
	w := shard.Worker{Name: body.Worker, Address: body.Address, Zone: body.Zone, Capacity: body.Capacity, Labels: body.Labels}
	r := shard.Remote{Store: s.st, Space: space, Session: rec.Key}
	switch err := r.Join(c.r.Context(), want, w); {
	case errors.Is(err, store.ErrInvalid):
		return nil, api.NewProblem(api.CodeInvalid, "%v", err)
	case err != nil:
		return nil, err
	}
	defer s.assigning.keep(s, space)()
	c.status = http.StatusCreated
	return s.step(c, r, shard.Step{}, "", 0)
}

// stepWorker takes a step of a worker, and answers what it owns after that; with "wait" once that
// is something else than what the worker has seen.
func (s *Server) stepWorker(c *call) (any, error) {
	var body api.ShardStepRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	space, err := c.inSpace(Acquire)
	if err != nil {
		return nil, err
	}
	if body.Free && !body.Leave {
		return nil, api.Invalid("free", "true", `"leave": true beside it`)
	}
	wait, err := within("wait", body.Wait, 0, 0, s.opts.MaxWait)
	if err != nil {
		return nil, err
	}
	rec, err := s.sessionRecord(c, c.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	c.event.Holder = rec.Owner
	leave, err := s.enter(c, wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	defer s.assigning.keep(s, space)()
	r := shard.Remote{Store: s.st, Space: space, Session: rec.Key}
	return s.step(c, r, shard.Step{Stopped: body.Stopped, Leave: body.Leave, Free: body.Free}, body.Seen, wait)
}

// step takes steps until there is something else to see, or the wait is over.
func (s *Server) step(c *call, r shard.Remote, step shard.Step, seen string, wait time.Duration) (any, error) {
	c.patience.extend(wait)
	ctx, cancel := clock.WithTimeout(c.r.Context(), s.clk, wait)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	for {
		h, err := r.Step(c.r.Context(), step)
		if err != nil {
			return nil, noted(r.Space, err)
		}
		answer, err := s.holding(r, h)
		if err != nil {
			return nil, err
		}
		if answer.Seen != seen || h.Left || ctx.Err() != nil {
			return answer, nil
		}
		if err := r.Await(ctx, h); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
}

// holding is what a worker owns, as it is answered.
func (s *Server) holding(r shard.Remote, h shard.Holding) (*api.ShardHolding, error) {
	answer := &api.ShardHolding{Space: r.Space, Slices: []api.ShardPart{}, Left: h.Left}
	sum := fnv.New128a()
	for _, p := range h.Parts {
		seq := fence.Sequencer{Name: r.Space + "/" + p.ID(), Holder: keyspace.OwnerOf(p.Owner), Token: p.Token}
		signed, err := s.signed(seq)
		if err != nil {
			return nil, err
		}
		answer.Slices = append(answer.Slices, api.ShardPart{Slice: p.ID(), Token: p.Token, Sequencer: signed, Goes: p.Goes, Next: keyspace.OwnerOf(p.Next)})
		_, _ = fmt.Fprintf(sum, "%s\n%d %t\n", p.ID(), p.Token, p.Goes) // it never fails
	}
	answer.Seen = hex.EncodeToString(sum.Sum(nil))
	return answer, nil
}

// assigning is the spaces for which this server assigns: those whose workers have sessions of it.
// Who assigns is decided by a lease, among all servers and all workers that can.
type assigning struct {
	mu     sync.Mutex
	spaces map[string]*assigned
}

// assigned is a space for which this server assigns.
type assigned struct {
	calls int           // of workers, now
	last  clock.Instant // when one was there
}

// assignFor is for how long a server assigns after the last call of a worker.
const assignFor = 2 * time.Minute

// keep has the server assign in a space, until a while after the function that it returns is
// called.
func (a *assigning) keep(s *Server, space string) (leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.spaces[space]
	if of == nil {
		of = &assigned{}
		if s.background.start(func() { a.run(s, space, of) }) {
			if a.spaces == nil {
				a.spaces = map[string]*assigned{}
			}
			a.spaces[space] = of
		}
	}
	of.calls++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		of.calls--
		of.last = s.clk.Now()
	}
}

// idle reports whether nobody needs the assigner any more. It is not found any more then.
func (a *assigning) idle(s *Server, space string, of *assigned) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of.calls > 0 || s.clk.Now() < of.last.Add(assignFor) {
		return false
	}
	delete(a.spaces, space)
	return true
}

func (a *assigning) run(s *Server, space string, of *assigned) {
	ctx, cancel := context.WithCancel(s.closing)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			// What can't be read now is read again.
			_ = shard.Assign(ctx, s.manager, space, nil, nil)
			_ = clock.Sleep(ctx, s.clk, s.manager.TTL()/3) // ctx is looked at above
		}
	})
	for clock.Sleep(ctx, s.clk, assignFor) == nil {
		if a.idle(s, space, of) {
			break
		}
	}
	cancel()
	wg.Wait()
}
