package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/shard"
)

// ShardSpace is a sharded space.
type ShardSpace struct {
	Name      string
	Hashed    bool // ranges of 64-bit hashes of keys; else names
	Slices    int
	Unowned   int             // slices that nobody owns
	Moving    int             // slices that are to go to another worker
	Assigner  string          // holder's id of the worker or server that assigns; "" for none
	Placement shard.Placement // which worker may own what
}

// ShardWorker is a worker of a sharded space.
type ShardWorker struct {
	Name, Holder, Session string
	Address, Zone         string
	Capacity              float64
	Labels                map[string]string
	Slices                int // how many it owns
	Coming                int // how many are to come to it
	Going                 int // how many are to leave it
	// Load is that of its slices, in what it reports, a second; 0 when it reports none.
	Load    float64
	Leaving bool // it ends
	Drained bool // an operator has it own nothing
	Silent  bool // its session is over, or was not renewed for its TTL
	Since   time.Time
}

// ShardSlice is a slice of a sharded space.
type ShardSlice struct {
	ID              string      // its name, or its range
	Token           fence.Token // 0 if nobody ever owned it
	Worker, Address string      // of its owner; "" when nobody owns it
	Holder, Session string      // of its owner
	Next            string      // the name of the worker that it is to go to
	Asked           string      // split, merge or remove
	Load            float64     // in what its owner reports, a second; 0 when that isn't known
}

// ShardChange is a change of who owns a slice.
type ShardChange struct {
	Time   time.Time // by the wall clock of who made it; for people
	Slice  string
	Token  fence.Token
	Why    string // given, passed on, freed, taken, split or merged
	Worker string // the owner from then on; "" for nobody
	Before string // the owner before
}

// ShardSpaces returns the spaces that the caller may read, in the order of their names.
func (c *Client) ShardSpaces(ctx context.Context) ([]ShardSpace, error) {
	var w api.ShardSpaces
	err := c.read(ctx, "spaces", "/v1/shards", nil, &w)
	var all []ShardSpace
	for _, one := range w.Spaces {
		all = append(all, spaceOf(one))
	}
	return all, err
}

// ShardSpace returns a space with its workers, the oldest first. The error matches
// [store.ErrNotFound] when there is no such space.
func (c *Client) ShardSpace(ctx context.Context, space string) (ShardSpace, []ShardWorker, error) {
	var w api.ShardStatus
	err := c.read(ctx, space, spacePath(space), url.Values{"limit": {"1"}}, &w)
	var all []ShardWorker
	for _, one := range w.Workers {
		all = append(all, workerOf(one))
	}
	return spaceOf(w.ShardSpace), all, err
}

// ShardSlices returns the slices of a space, in the order of the map. It asks for 10,000 at a time:
// those of different answers are of different times. The error is that of [Client.ShardSpace].
func (c *Client) ShardSlices(ctx context.Context, space string) ([]ShardSlice, error) {
	var all []ShardSlice
	for q := (url.Values{}); ; {
		var w api.ShardStatus
		if err := c.read(ctx, space, spacePath(space), q, &w); err != nil {
			return nil, err
		}
		for _, one := range w.List {
			all = append(all, sliceOf(one))
		}
		if w.Next == "" {
			return all, nil
		}
		q.Set("after", w.Next)
	}
}

// ShardLookup returns the slice of a key: the slice of that name, or in a hashed space that of any
// key. It may be late. The error matches [shard.ErrNoSlice] when there is no such name, and
// [store.ErrNotFound] when there is no such space.
func (c *Client) ShardLookup(ctx context.Context, space, key string) (ShardSlice, error) {
	var w api.ShardSlice
	err := c.read(ctx, space, spacePath(space)+"/lookup", url.Values{"key": {key}}, &w)
	return sliceOf(w), err
}

// ShardHistory returns the last changes of who owns what in a space, the newest first.
func (c *Client) ShardHistory(ctx context.Context, space string) ([]ShardChange, error) {
	var w api.ShardHistory
	err := c.read(ctx, space, spacePath(space)+"/history", nil, &w)
	var all []ShardChange
	for _, one := range w.Changes {
		all = append(all, ShardChange(one))
	}
	return all, err
}

// MoveShard has the owner of a slice hand it over to a worker, by name, address or holder's id, and
// returns the slice once it has come, or wait is over. A slice of a hashed space is a range, or a
// hash in it as 0x…. After an error that matches [store.ErrUnknownOutcome] the order may stand. The
// call may be repeated. The error matches [shard.ErrNoWorker] or [shard.ErrNoSlice] when there is
// no such worker or slice.
func (c *Client) MoveShard(ctx context.Context, space, slice, worker string, wait time.Duration) (ShardSlice, error) {
	return c.orderSlice(ctx, space, "move", wait, func(wait *api.Seconds) any {
		return api.ShardMoveRequest{Slice: slice, To: worker, Wait: wait}
	})
}

// SplitShard has the owner of a range cut it in two, and returns the upper part once it is there,
// or wait is over. at is the first hash of the upper part, as 0x…; "" is the middle. Else it is as
// [Client.MoveShard]; but a repeated call without at cuts what is left of the range.
func (c *Client) SplitShard(ctx context.Context, space, slice, at string, wait time.Duration) (ShardSlice, error) {
	return c.orderSlice(ctx, space, "split", wait, func(wait *api.Seconds) any {
		return api.ShardSplitRequest{Slice: slice, At: at, Wait: wait}
	})
}

// MergeShards has a range joined with the one after it, and returns the joined one once it is
// there, or wait is over. Else it is as [Client.SplitShard].
func (c *Client) MergeShards(ctx context.Context, space, slice string, wait time.Duration) (ShardSlice, error) {
	return c.orderSlice(ctx, space, "merge", wait, func(wait *api.Seconds) any {
		return api.ShardMergeRequest{Slice: slice, Wait: wait}
	})
}

func (c *Client) orderSlice(ctx context.Context, space, order string, wait time.Duration, body func(*api.Seconds) any) (ShardSlice, error) {
	var w api.ShardSlice
	q := request{method: http.MethodPost, path: spacePath(space) + "/" + order}
	err := c.answered(ctx, effort{what: space, wait: wait, write: true}, q, func(wait time.Duration) any { return body(seconds(wait)) }, &w)
	return sliceOf(w), err
}

// DrainWorker has a worker hand over all that it owns, and own nothing until undo is true, and
// returns the worker once it owns nothing, or wait is over. The call may be repeated.
func (c *Client) DrainWorker(ctx context.Context, space, worker string, undo bool, wait time.Duration) (ShardWorker, error) {
	var w api.ShardWorker
	q := request{method: http.MethodPost, path: spacePath(space) + "/drain"}
	err := c.answered(ctx, effort{what: space, wait: wait, write: true}, q, func(wait time.Duration) any {
		return api.ShardDrainRequest{Worker: worker, Undo: undo, Wait: seconds(wait)}
	}, &w)
	return workerOf(w), err
}

func spacePath(space string) string { return "/v1/shards/" + segment(space) }

func spaceOf(w api.ShardSpace) ShardSpace {
	s := ShardSpace{Name: w.Space, Hashed: w.Hashed, Slices: w.Slices, Unowned: w.Unowned, Moving: w.Moving, Assigner: w.Assigner}
	if p := w.Placement; p != nil {
		s.Placement = shard.Placement{Max: p.Max, Zones: p.SpreadZones}
		for _, pin := range p.Pins {
			s.Placement.Pins = append(s.Placement.Pins, shard.Pin(pin))
		}
	}
	return s
}

func workerOf(w api.ShardWorker) ShardWorker {
	return ShardWorker{
		Name: w.Worker, Holder: w.Holder, Session: w.Session, Address: w.Address, Zone: w.Zone, Capacity: w.Capacity, Labels: w.Labels,
		Slices: w.Slices, Coming: w.Coming, Going: w.Going, Load: w.Load, Leaving: w.Leaving, Drained: w.Drained, Silent: w.Silent, Since: w.Since,
	}
}

func sliceOf(w api.ShardSlice) ShardSlice {
	return ShardSlice{
		ID: w.Slice, Token: w.Token, Worker: w.Worker, Address: w.Address, Holder: w.Holder, Session: w.Session, Next: w.Next, Asked: w.Asked, Load: w.Load,
	}
}
