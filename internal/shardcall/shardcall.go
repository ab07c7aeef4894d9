// Package shardcall finds the worker to send a request to, and the next one after a refusal, for
// the transports of shard/shardhttp and shard/shardgrpc.
package shardcall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/shard"
)

// DefaultWait is how long a request waits for a worker that owns its key, or serves it.
const DefaultWait = 10 * time.Second

// A worker that is to own a slice may hear of that later than the router.
const (
	pauseMin = 2 * time.Millisecond
	pauseMax = 250 * time.Millisecond
)

// Call is one request. It isn't safe for concurrent use. End frees what it uses.
type Call struct {
	Router *shard.Router
	Key    string
	Wait   time.Duration // bounds all waits together; 0 is DefaultWait, and less is none

	bounded context.Context
	cancel  context.CancelFunc
	refused int
	last    string // address of the worker that refused last
	pauses  int    // that were made for it
}

// pause returns how long to wait for another worker than the one that has just refused: ever
// longer, but for a worker that was not asked before, which may be about to serve the key.
func (c *Call) pause(address string) time.Duration {
	if address != c.last {
		c.last, c.pauses = address, 0
	}
	d := min(pauseMin<<min(c.pauses, 16), pauseMax)
	c.pauses++
	return d
}

// waiting returns a context that ends Wait after the first call's first reason to wait.
func (c *Call) waiting(ctx context.Context) context.Context {
	if c.bounded == nil {
		within := c.Wait
		if within == 0 {
			within = DefaultWait
		}
		c.bounded, c.cancel = clock.WithTimeout(ctx, clock.System(), max(within, 0))
	}
	return c.bounded
}

// End frees what the call uses.
func (c *Call) End() {
	if c.cancel != nil {
		c.cancel()
	}
}

// First returns where to send the request first. While nobody owns the key, it waits for an owner.
// When the time is over, or the name isn't in the space, the error matches [shard.ErrWrongOwner];
// the error of a read of the store is in its chain. When ctx is done, it returns the cause.
func (c *Call) First(ctx context.Context) (shard.Route, error) {
	if route, ok := c.Router.Lookup(c.Key); ok && route.Address != "" {
		return route, nil
	}
	route, unread := c.Router.Refresh(ctx, c.Key)
	if unread == nil && route.Address != "" {
		return route, nil
	}
	if errors.Is(unread, shard.ErrWrongOwner) {
		unread = nil // it was read that nobody owns the key
	}
	waiting := c.waiting(ctx)
	for {
		var err error
		if route, err = c.Router.Await(waiting, c.Key, route); err == nil && route.Address == "" {
			continue
		}
		switch {
		case err == nil:
			return route, nil
		case ctx.Err() != nil:
			return shard.Route{}, context.Cause(ctx)
		case errors.Is(err, shard.ErrNoSlice):
			return shard.Route{}, fmt.Errorf("%w: %w", shard.ErrWrongOwner, err)
		case unread != nil:
			return shard.Route{}, fmt.Errorf("%w: %w", shard.ErrWrongOwner, unread)
		}
		return shard.Route{}, shard.ErrWrongOwner
	}
}

// Next returns where to send a request that the worker of asked has refused, or that couldn't be
// sent there. named is the owner that the worker has named, if any. Next waits until another
// attempt makes sense, and reports false when there is no time left.
func (c *Call) Next(ctx context.Context, asked shard.Route, named string) (shard.Route, bool) {
	n := c.refused
	c.refused++
	if n == 0 && named != "" && named != asked.Address { // the worker may know more than the router
		return shard.Route{Address: named}, true
	}
	waiting := c.waiting(ctx)
	if n < 2 {
		if now, err := c.Router.Refresh(waiting, c.Key); err == nil && now.Address != asked.Address && now.Address != "" {
			return now, true
		}
	}
	pause, cancel := clock.WithTimeout(waiting, clock.System(), c.pause(asked.Address))
	defer cancel()
	if route, ok := c.Router.Lookup(c.Key); ok && route.Address == asked.Address && asked.Session == "" {
		asked = route // a worker had named it before the router knew
	}
	now, err := c.Router.Await(pause, c.Key, asked)
	if err != nil || now.Address == "" {
		now = asked
		if route, ok := c.Router.Lookup(c.Key); ok && route.Address != "" {
			now = route
		}
	}
	return now, waiting.Err() == nil
}
