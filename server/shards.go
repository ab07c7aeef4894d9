package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/internal/shardview"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// shardRoutes are the operations on sharded spaces.
var shardRoutes = []route{
	{http.MethodGet, "/v1/shards", "list spaces", Read, (*Server).spaces, nil},
	{http.MethodGet, "/v1/shards/{space}", "show space", Read, (*Server).space, []string{"after", "limit"}},
	{http.MethodGet, "/v1/shards/{space}/lookup", "look up key", Read, (*Server).lookUp, []string{"key"}},
	{http.MethodGet, "/v1/shards/{space}/history", "show moves", Read, (*Server).moves, nil},
	{http.MethodPost, "/v1/shards/{space}/move", "move slice", Handoff, (*Server).moveSlice, nil},
	{http.MethodPost, "/v1/shards/{space}/drain", "drain worker", Handoff, (*Server).drainWorker, nil},
	{http.MethodPost, "/v1/shards/{space}/split", "split slice", Handoff, (*Server).splitSlice, nil},
	{http.MethodPost, "/v1/shards/{space}/merge", "merge slices", Handoff, (*Server).mergeSlices, nil},
	{http.MethodPost, "/v1/shards/{space}/workers", "join space", Acquire, (*Server).joinSpace, nil},
	{http.MethodPut, "/v1/shards/{space}/workers/{id}", "step", Acquire, (*Server).stepWorker, nil},
}

// ofSpace begins all that is named in a space: rights on a space are rights on those names.
func ofSpace(space string) string { return space + "/*" }

// inSpace notes the space of a request, and whether the caller may do that in it.
func (c *call) inSpace(action Action) (string, error) {
	space := c.r.PathValue("space")
	c.event.Name = space
	if err := shardmap.CheckSpace(space); err != nil {
		return "", api.Invalid("space", space, "1 to 64 printable bytes without a slash, and no dot at the beginning")
	}
	return space, c.may(action, ofSpace(space))
}

// noted is an error of the call about a space or what is in it.
func noted(space string, err error) error {
	if err == nil || !errors.Is(err, store.ErrNotFound) || errors.As(err, new(*api.Problem)) {
		return err
	}
	return api.NewProblem(api.CodeNotFound, "there is no space %s: GET /v1/shards lists those that there are", space)
}

func (s *Server) spaces(c *call) (any, error) {
	answer := api.ShardSpaces{Spaces: []api.ShardSpace{}}
	may := func(space string) bool { return c.caller.May(Read, ofSpace(space)) }
	for one, err := range shardview.Spaces(c.r.Context(), s.st, may) {
		if err != nil {
			return nil, err
		}
		c.patience.extend(0)
		answer.Spaces = append(answer.Spaces, one)
	}
	return answer, nil
}

func (s *Server) space(c *call) (any, error) {
	space, err := c.inSpace(Read)
	if err != nil {
		return nil, err
	}
	q, limit := c.r.URL.Query(), maxPage
	if q.Has("limit") {
		text := q.Get("limit")
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return nil, api.Invalid("limit", text, "a number from 1 to "+strconv.Itoa(maxPage))
		}
	}
	v, err := shardview.Read(c.r.Context(), s.st, space, s.obs)
	if err != nil {
		return nil, noted(space, err)
	}
	answer, err := v.Status(q.Get("after"), limit)
	if err != nil {
		return nil, api.Invalid("after", q.Get("after"), "the next of the page before")
	}
	return answer, nil
}

func (s *Server) lookUp(c *call) (any, error) {
	space, err := c.inSpace(Read)
	if err != nil {
		return nil, err
	}
	key := c.r.URL.Query().Get("key")
	if key == "" {
		return nil, api.Invalid("key", "", "the name of a slice, or any key of a hashed space")
	}
	slice, err := shardview.Lookup(c.r.Context(), s.st, space, key)
	if err != nil {
		return nil, noted(space, err)
	}
	return slice, nil
}

func (s *Server) moves(c *call) (any, error) {
	space, err := c.inSpace(Read)
	if err != nil {
		return nil, err
	}
	changes, err := shardview.History(c.r.Context(), s.st, space)
	if err != nil {
		return nil, noted(space, err)
	}
	return api.ShardHistory{Space: space, Changes: changes}, nil
}

// sliceOrder is what an operator wants of a slice.
type sliceOrder struct {
	space  string
	key    string // in a space of names
	hash   uint64 // in a hashed space
	hashed bool
	wait   time.Duration
	leave  func()
}

// ordered reads which slice an order is for, and how long the caller waits. The caller calls leave.
func (s *Server) ordered(c *call, slice string, wait *api.Seconds) (o sliceOrder, err error) {
	if o.space, err = c.inSpace(Handoff); err != nil {
		return o, err
	}
	c.event.Note = slice
	if slice == "" {
		return o, api.Invalid("slice", "", "the name of a slice, or in a hashed space its range, or a hash in it as 0x…")
	}
	if o.wait, err = within("wait", wait, 0, 0, s.opts.MaxWait); err != nil {
		return o, err
	}
	if o.key, o.hash, o.hashed, err = shardview.Target(c.r.Context(), s.st, o.space, slice); err != nil {
		if o.hashed {
			return o, api.Invalid("slice", slice, "16 hexadecimal digits, fewer behind 0x, or a slice such as 4000000000000000-7fffffffffffffff")
		}
		return o, noted(o.space, err)
	}
	o.leave, err = s.enter(c, o.wait)
	return o, err
}

// done returns the slice once it is as was ordered, or as it is when the wait is over.
func (s *Server) done(c *call, o sliceOrder, ok func(shard.Entry) bool) (any, error) {
	c.ordered = true
	c.patience.extend(o.wait)
	ctx, cancel := clock.WithTimeout(c.r.Context(), s.clk, o.wait)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	if o.wait > 0 {
		if _, err := shard.Await(ctx, s.st, o.space, o.key, o.hash, ok); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	c.patience.extend(0)
	e, err := shard.Await(c.r.Context(), s.st, o.space, o.key, o.hash, func(shard.Entry) bool { return true })
	if err != nil {
		return nil, err
	}
	members, err := shard.Members(c.r.Context(), s.st, o.space)
	if err != nil {
		return nil, err
	}
	c.event.Token = e.Token
	return shardview.Shown(e, members), nil
}

// moveSlice has the owner of a slice hand it over to a worker.
func (s *Server) moveSlice(c *call) (any, error) {
	var body api.ShardMoveRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	o, err := s.ordered(c, body.Slice, body.Wait)
	if err != nil {
		return nil, err
	}
	defer o.leave()
	m, err := shard.Find(c.r.Context(), s.st, o.space, body.To)
	if err != nil {
		return nil, err
	}
	if m.Leaving || m.Drained {
		return nil, api.NewProblem(api.CodeNoWorker, "worker %s of space %s is to own nothing: it is leaving, or drained", m.Name, o.space)
	}
	c.event.Note, c.event.Holder = body.Slice+" to "+m.Name, m.Holder
	if err := shard.RequestMoveHash(c.r.Context(), s.st, o.space, o.key, o.hash, m.Session); err != nil {
		return nil, err
	}
	return s.done(c, o, func(e shard.Entry) bool { return e.Owner == m.Session })
}

// splitSlice has the owner of a range cut it in two.
func (s *Server) splitSlice(c *call) (any, error) {
	var body api.ShardSplitRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	o, e, err := s.orderedRange(c, body.Slice, body.Wait)
	if err != nil {
		return nil, err
	}
	defer o.leave()
	o.hash = e.From + (e.To-e.From)/2 + 1
	if body.At != "" {
		if o.hash, err = shardmap.ParseHash(body.At); err != nil {
			return nil, api.Invalid("at", body.At, "a hash, as 0x…")
		}
	}
	if o.hash <= e.From || o.hash > e.To {
		return nil, api.Invalid("at", body.At, "a hash inside of "+e.ID()+", and not its first")
	}
	if err := shard.RequestSplit(c.r.Context(), s.st, o.space, o.hash); err != nil {
		return nil, err
	}
	return s.done(c, o, func(now shard.Entry) bool { return now.From == o.hash })
}

// mergeSlices has the owner of a range join it with the range after it.
func (s *Server) mergeSlices(c *call) (any, error) {
	var body api.ShardMergeRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	o, e, err := s.orderedRange(c, body.Slice, body.Wait)
	if err != nil {
		return nil, err
	}
	defer o.leave()
	o.hash = e.From
	if err := shard.RequestMerge(c.r.Context(), s.st, o.space, e.From); err != nil {
		return nil, s.unmerged(body.Slice, err)
	}
	return s.done(c, o, func(now shard.Entry) bool { return now.To > e.To })
}

// unmerged is the problem of a range that has none after it that it could be joined with.
func (s *Server) unmerged(slice string, err error) error {
	if !errors.Is(err, store.ErrInvalid) {
		return err
	}
	p := api.Invalid("slice", slice, "a range that is followed by another one in its record of the map")
	p.Detail = err.Error()
	return p
}

// orderedRange is [Server.ordered] for a range of a hashed space, which it returns.
func (s *Server) orderedRange(c *call, slice string, wait *api.Seconds) (o sliceOrder, e shard.Entry, err error) {
	if o, err = s.ordered(c, slice, wait); err != nil {
		return o, e, err
	}
	if !o.hashed {
		err = api.NewProblem(api.CodeOtherSpace, "%s is a space of names, which have no parts", o.space)
	} else {
		e, err = shard.LookupHash(c.r.Context(), s.st, o.space, o.hash)
	}
	if err != nil {
		o.leave()
	}
	return o, e, err
}

// drainLook is the pause between two looks at what a worker still owns.
const drainLook = 250 * time.Millisecond

// drainWorker has a worker hand over all that it owns, or lets it own slices again. It answers how
// the worker is then, or when the wait is over.
func (s *Server) drainWorker(c *call) (any, error) {
	var body api.ShardDrainRequest
	if err := c.read(&body); err != nil {
		return nil, err
	}
	space, err := c.inSpace(Handoff)
	if err != nil {
		return nil, err
	}
	wait, leave, err := s.enterFor(c, body.Wait)
	if err != nil {
		return nil, err
	}
	defer leave()
	m, err := shard.Find(c.r.Context(), s.st, space, body.Worker)
	if err != nil {
		return nil, noted(space, err)
	}
	c.event.Holder = m.Holder
	if err := shard.Drain(c.r.Context(), s.st, space, m.Session, !body.Undo); err != nil {
		return nil, err
	}
	c.ordered = true
	for until := s.clk.Now().Add(wait); ; {
		c.patience.extend(0)
		v, err := shardview.Read(c.r.Context(), s.st, space, s.obs)
		if err != nil {
			return nil, err
		}
		w, there := v.Worker(m.Session)
		if !there { // it has left meanwhile
			w = api.ShardWorker{Worker: m.Name, Holder: m.Holder, Session: m.Session, Capacity: m.Capacity, Since: m.Since}
		}
		if body.Undo || w.Slices == 0 || s.clk.Now() >= until || s.closing.Err() != nil {
			return w, nil
		}
		c.patience.extend(drainLook)
		if err := clock.Sleep(c.r.Context(), s.clk, drainLook); err != nil {
			return nil, err
		}
	}
}
