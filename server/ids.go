package server

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/lease"
)

// maxIDs bounds how many ids one answer has.
const maxIDs = 10_000

// maxSpecified bounds of how many layouts a server makes ids that callers have described. Each is a
// pool, and a number that is kept.
const maxSpecified = 32

// mint makes ids, with a number of the server's own for each layout, which it claims when it is
// first asked for.
type mint struct {
	m     *lease.Manager
	pools map[string]string // by layout
	turn  chan struct{}     // who has it may claim

	mu      sync.Mutex
	closed  bool
	session *lease.Session
	presses map[string]*press // by layout
}

// press makes ids of one layout.
type press struct {
	hold *identity.Hold
	make func(order) ([]string, error)
	stop func() time.Time
}

// order is what a request wants.
type order struct {
	layout   flake.Layout
	n        int
	metadata uint64
	with     bool // metadata was given
}

func newMint(m *lease.Manager, pools map[string]string) *mint {
	return &mint{m: m, pools: pools, turn: make(chan struct{}, 1), presses: map[string]*press{}}
}

// pool returns the name of the pool that the server's number of a layout is from, and its values,
// if they are known.
func (m *mint) pool(l flake.Layout) (string, identity.Values) {
	if pool := m.pools[l.Name()]; pool != "" {
		return pool, identity.Values{}
	}
	return pools.OfLayout(l.Name()), identity.Values{Range: pools.Numbers(l)}
}

// full reports whether the server has numbers for so many layouts that it claims none for this one.
// Those with names always have room.
func (m *mint) full(l flake.Layout) bool {
	if named(l.Name()) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	specified := 0
	for name := range m.presses {
		if !named(name) {
			specified++
		}
	}
	return specified >= maxSpecified
}

// named reports whether a layout's name is that of one of [flake.Layouts], not a specification.
func named(layout string) bool {
	return slices.ContainsFunc(flake.Layouts(), func(l flake.Layout) bool { return l.Name() == layout })
}

func (m *mint) known(layout string) *press {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.presses[layout]
}

// ready returns what makes ids of a layout. instead is one whose hold is lost and whose window is
// over, or nil.
func (m *mint) ready(ctx context.Context, l flake.Layout, instead *press) (*press, error) {
	if p := m.known(l.Name()); p != instead {
		return p, nil
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p := m.known(l.Name()); p != instead {
		return p, nil // somebody else has claimed it meanwhile
	}
	if instead == nil && m.full(l) {
		p := api.NewProblem(api.CodeTooMany, "this server makes ids of %d layouts that have no name already: ask for one of those, or another server", maxSpecified)
		p.Field = "layout"
		return nil, p
	}
	p, err := m.claim(ctx, l)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, lessor.ErrClosed // which ends the session, and the hold with it
	}
	m.presses[l.Name()] = p
	return p, nil
}

// claim claims a number. Who calls it has the turn.
func (m *mint) claim(ctx context.Context, l flake.Layout) (*press, error) {
	s, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	pool, values := m.pool(l)
	// Ids outlast an outage; another server takes another number.
	h, err := identity.Claim(ctx, s, pool, identity.Options{Values: values, Layout: l, Window: defaultWindow})
	if err != nil {
		return nil, err
	}
	var p *press
	if l.Bits() > 64 {
		p, err = newPress[flake.ID96](l, h)
	} else {
		p, err = newPress[flake.ID](l, h)
	}
	if err != nil {
		return nil, errors.Join(err, h.Release(ctx, h.Floor()))
	}
	return p, nil
}

// open returns a session that lives.
func (m *mint) open(ctx context.Context) (*lease.Session, error) {
	m.mu.Lock()
	s, closed := m.session, m.closed
	m.mu.Unlock()
	if closed {
		return nil, lessor.ErrClosed
	}
	if s != nil && s.Check() == nil {
		return s, nil
	}
	s, err := m.m.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = s
	return s, nil
}

func newPress[T flake.Value](l flake.Layout, h *identity.Hold) (*press, error) {
	g, err := flake.New[T](l, h.Number(), h, flake.Options{})
	if err != nil {
		return nil, err
	}
	return &press{hold: h, stop: g.Stop, make: func(o order) ([]string, error) {
		if !o.with {
			ids, err := g.NextN(o.n)
			return texts(ids), err
		}
		ids := make([]T, 0, o.n)
		for range o.n {
			id, err := g.NextWith(o.metadata)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return texts(ids), nil
	}}, nil
}

func texts[T flake.Value](ids []T) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		if v, ok := any(id).(interface{ String() string }); ok {
			all[i] = v.String()
		}
	}
	return all
}

// make makes ids. A hold that is lost is as good as any until its window is over; then there is
// another number.
func (m *mint) make(ctx context.Context, o order) (ids []string, node uint64, err error) {
	var over *press
	var window *flake.WindowError
	for {
		p, err := m.ready(ctx, o.layout, over)
		if err != nil && over != nil {
			err = errors.Join(window, err)
		}
		if err != nil {
			return nil, 0, err
		}
		ids, err = p.make(o)
		switch {
		case err == nil:
			return ids, p.hold.Number(), nil
		case errors.As(err, &window) && over == nil && p.hold.Check() != nil:
			over = p
		default:
			return nil, 0, err
		}
	}
}

// close gives the numbers back, with the times up to which they were used.
func (m *mint) close() error {
	m.mu.Lock()
	m.closed = true
	s, presses := m.session, m.presses
	m.mu.Unlock()
	ctx := context.Background()
	var errs []error
	for _, p := range presses {
		used := p.stop()
		if p.hold.Check() == nil {
			errs = append(errs, p.hold.Release(ctx, used))
		}
	}
	if s != nil {
		errs = append(errs, s.Close(ctx))
	}
	return errors.Join(append(errs, m.m.Close())...)
}

func (s *Server) ids(c *call) (any, error) {
	o, err := s.order(c)
	if err != nil {
		return nil, err
	}
	c.event.Name = "ids/" + o.layout.Name()
	if err := c.may(Assign, c.event.Name); err != nil {
		return nil, err
	}
	made, err := inTime(c, c.event.Name, func(ctx context.Context) (api.IDs, error) {
		ids, node, err := s.mint.make(ctx, o)
		return api.IDs{Layout: o.layout.Name(), Node: node, IDs: ids}, err
	})
	if err != nil {
		return nil, noIDs(err)
	}
	return made, nil
}

// noIDs is the problem of ids that can't be made.
func noIDs(err error) error {
	var window *flake.WindowError
	var ahead *flake.AheadError
	var exhausted *flake.ExhaustedError
	switch {
	case errors.Is(err, flake.ErrStopped):
		return lessor.ErrClosed
	case errors.As(err, &window), errors.As(err, &ahead), errors.As(err, &exhausted), errors.Is(err, identity.ErrExhausted), errors.Is(err, identity.ErrAhead):
		return api.NewProblem(api.CodeNoIDs, "%v", err)
	case errors.Is(err, identity.ErrUndeclared), errors.Is(err, identity.ErrMismatch), errors.As(err, new(*flake.OverflowError)):
		return api.NewProblem(api.CodeInternal, "the server's pool of numbers: %v", err)
	}
	return err
}

// layoutOf returns the layout that a text names or describes.
func layoutOf(text string) (flake.Layout, error) {
	l, err := flake.ParseLayout(text)
	if err != nil {
		p := api.Invalid("layout", text, "a layout")
		p.Detail = err.Error()
		return flake.Layout{}, p
	}
	return l, nil
}

// order reads what a caller wants.
func (s *Server) order(c *call) (order, error) {
	name, q := c.r.PathValue("layout"), c.r.URL.Query()
	l, err := layoutOf(name)
	if err != nil {
		return order{}, err
	}
	o := order{layout: l, n: 1}
	if text := q.Get("n"); text != "" {
		if o.n, err = strconv.Atoi(text); err != nil || o.n < 1 || o.n > maxIDs {
			return o, api.Invalid("n", text, "a number from 1 to "+strconv.Itoa(maxIDs))
		}
	}
	if text := q.Get("metadata"); text != "" {
		width := o.layout.Width(flake.Metadata)
		o.metadata, err = strconv.ParseUint(text, 0, 64)
		switch {
		case width == 0:
			return o, api.Invalid("metadata", text, "none: the layout "+name+" has no bits for it")
		case err != nil || o.metadata>>width != 0:
			return o, api.Invalid("metadata", text, "a number of at most "+strconv.Itoa(width)+" bits")
		}
		o.with = true
	}
	return o, nil
}
