package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// The defaults.
const (
	DefaultTTL     = 15 * time.Second
	DefaultMaxWait = time.Hour
	DefaultMaxBody = 256 << 10

	DefaultStoreTimeout = 5 * time.Second

	DefaultMaxWaiting = 50_000

	DefaultMaxNames      = 100_000
	DefaultMaxSessions   = 1000
	DefaultMaxBytes      = 64 << 20
	DefaultMaxSessionTTL = 24 * time.Hour
)

// Action is what a request is about to do, in the terms of a policy.
type Action string

// The actions.
const (
	Read    Action = "read"    // look at a name
	Acquire Action = "acquire" // take, renew and release it
	Break   Action = "break"   // end the hold of another
	Handoff Action = "handoff" // have the leader hand over to another candidate
	Pause   Action = "pause"   // keep candidates from leading, and resume
	Assign  Action = "assign"  // have values of a pool, and ids
	Metrics Action = "metrics" // see /metrics, which names nothing
	// Read and write the store's records themselves: what package client's store does.
	Records Action = "records"
)

// Event is a request that was answered.
type Event struct {
	Time    time.Time
	Caller  string
	Remote  string // address
	Action  Action
	Op      string // "acquire", "renew", "release", …
	Name    string
	Holder  string
	Token   fence.Token
	Outcome string // "ok", or the code of the problem
	// The request's other parameters and reason; of a session's renewal, what was lost.
	Note     string
	Waited   time.Duration
	Duration time.Duration

	stale  bool   // verify: the term isn't the current one
	reason string // of a change of ownership that an operator ordered
}

const outcomeOK = "ok"

// Options of a [Server].
type Options struct {
	Clock   clock.Clock // [clock.System] by default
	Version string      // of the program, for the metrics

	TTL     time.Duration // of a lease, if the request has none: 15 s by default
	MaxTTL  time.Duration // the longest that a request may ask for: 366 days by default
	MaxWait time.Duration // 1 h by default
	MaxBody int64         // bytes: 256 KiB by default

	// StoreTimeout is the time within which the store has to answer: 5 s by default, 10 ms to 1 h.
	// When the store does not answer in time, the request is answered with 503, or with 504 if a
	// write may have been done. A list may take longer while it makes progress. A wait has its own
	// end, and this time after it. The store may still carry out what was cancelled.
	StoreTimeout time.Duration

	// MaxWaiting is how many requests of one caller may wait or watch at a time: 50,000 by default.
	// One more is answered with 429. A caller without a name is the address that it comes from, so
	// everybody behind a proxy is one.
	MaxWaiting int

	// MaxNames, MaxSessions and MaxBytes bound what one caller may have by this server at a time:
	// names held or asked for (100,000 by default), sessions (1,000), and bytes of the records of
	// both (64 MiB). A record counts about 512 bytes and its info. Requests beyond that are
	// answered with 429. The counts are in memory: after a restart, a hold counts from its next
	// renewal.
	MaxNames, MaxSessions, MaxBytes int
	// The longest TTL of a session: 24 h by default, and MaxTTL at most.
	MaxSessionTTL time.Duration
	// MaxRate is how many requests a second of one caller are served, with a burst of twice as
	// many; 0 for any number.
	MaxRate float64

	// Keys, if set, sign the sequencers that the server returns, and verify those that come back.
	Keys *fence.Keys

	// RDLM, if set, has the server speak RDLM's protocol, too, at /locks, /resources and /: see
	// package compat/rdlm.
	RDLM *rdlm.Options

	// IDPools are the pools that the server's own numbers in ids come from, by their layout, as
	// [flake.ParseLayout] reads it: otherwise "ids-" and the layout.
	IDPools map[string]string

	// Authenticate returns the sender of a request. An error is answered with 401, and one that
	// matches [ErrAuthUnavailable] with 503. It may block while it asks others, and ends with the
	// request's context. By default it is [Anybody].
	Authenticate func(*http.Request) (Caller, error)
	// Logins, if set, returns the issuers with which people can log in on the page. With wait, it
	// may block while it asks issuers for their endpoints, and ends with the context; otherwise it
	// returns what is known.
	Logins func(ctx context.Context, wait bool) []Login
	// LocalNames refuses requests whose Host is neither an address nor localhost. It is for a
	// server without authentication that listens on loopback only. There, a page whose name was
	// made to lead to this machine (DNS rebinding) could do everything.
	LocalNames bool
	// TrustedProxies are the addresses of proxies in front, whose header X-Forwarded-For is
	// believed. The client is the last address in it that isn't a trusted proxy's. Without any, the
	// client is the address of the connection.
	TrustedProxies []netip.Prefix
	// Collectors add metrics to /metrics besides the server's own.
	Collectors []prometheus.Collector
	// Journal, if set, is told what becomes of names, and asked for it by GET /v1/history. The
	// server looks at the whole store once a second for it. OnJournal, if set, is called with a
	// *[JournalError] when the journal fails, and with nil when it works again. It must not block.
	Journal   Journal
	OnJournal func(error)
	// OnEvent, if set, is called for every request to /v1 when it has been answered. It must not
	// block.
	OnEvent func(Event)
}

// Server serves the leases of one store over HTTP. It is an [http.Handler].
type Server struct {
	st   store.Store
	opts Options
	clk  clock.Clock
	reg  *lessor.Registry
	obs  *lease.Observer // of what is shown: it remembers since when a record stands
	rdlm *rdlm.Handler   // nil if it isn't spoken

	waiting *quota
	tally   *tally
	rates   *rates
	manager *lease.Manager // takes what is assigned, and the server's own numbers
	mint    *mint
	metrics *metrics
	census  *census
	latency *latency
	margins *margins

	background background // of requests
	assigning  assigning  // of sharded spaces
	board      *board
	rolls      rolls           // of the instances of pairs
	chronicle  *chronicle      // nil without a journal
	id         string          // of this server, among those that ever ran
	drains     atomic.Bool     // it is about to close
	closing    context.Context // done when the server closes: streams and waits end
	stop       context.CancelFunc
}

// New returns a server over st, which it doesn't own. It does no I/O. Its errors name the option
// that is wrong. Close it when it is done with.
func New(st store.Store, opts Options) (*Server, error) {
	if st == nil {
		return nil, errors.New("server: New needs a store")
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	latency := newLatency(opts.Clock)
	st = latency.over(st)
	s := &Server{
		st: st, latency: latency, margins: newMargins(), opts: opts, clk: opts.Clock,
		reg: lessor.New(st, lessor.Options{Clock: opts.Clock}), obs: lease.NewObserver(st, lease.ObserverOptions{Clock: opts.Clock}),
	}
	s.waiting, s.rates = newQuota(opts.MaxWaiting), newRates(opts.Clock, opts.MaxRate)
	s.tally = newTally(opts.Clock, usage{opts.MaxNames, opts.MaxSessions, opts.MaxBytes})
	if opts.RDLM != nil {
		s.rdlm = s.newRDLM(*opts.RDLM)
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	var err error
	if s.manager, err = lease.NewManager(st, lease.Options{Name: "server", Clock: opts.Clock}); err == nil {
		s.mint = newMint(s.manager, opts.IDPools)
		s.census = &census{s: s}
		s.metrics, err = newMetrics(s)
	}
	if err != nil {
		s.stop()
		return nil, errors.Join(err, s.reg.Close())
	}
	s.board, s.id, s.chronicle = newBoard(s), strings.ToLower(rand.Text()[:13]), newChronicle(s, opts.Journal)
	s.chronicle.start()
	return s, nil
}

func (o *Options) complete() error {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Authenticate == nil {
		o.Authenticate = func(*http.Request) (Caller, error) { return Anybody, nil }
	}
	for _, d := range []struct {
		field      string
		value      *time.Duration
		otherwise  time.Duration
		least, max time.Duration
	}{
		{"TTL", &o.TTL, DefaultTTL, store.MinTTL, store.MaxTTL},
		{"MaxTTL", &o.MaxTTL, store.MaxTTL, store.MinTTL, store.MaxTTL},
		{"MaxSessionTTL", &o.MaxSessionTTL, min(DefaultMaxSessionTTL, cmp.Or(o.MaxTTL, store.MaxTTL)), store.MinTTL, store.MaxTTL},
		{"StoreTimeout", &o.StoreTimeout, DefaultStoreTimeout, 10 * time.Millisecond, time.Hour},
		{"MaxWait", &o.MaxWait, DefaultMaxWait, time.Millisecond, store.MaxTTL},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
		if *d.value < d.least || *d.value > d.max {
			return fmt.Errorf("server: %s %v: want %v to %v", d.field, *d.value, d.least, d.max)
		}
	}
	if err := o.completePools(); err != nil {
		return err
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxBody < 0 {
		return fmt.Errorf("server: MaxBody %d: want a number of bytes", o.MaxBody)
	}
	return o.completeQuotas()
}

// completePools has each layout by its name, whatever it was called.
func (o *Options) completePools() error {
	pools := map[string]string{}
	for text, pool := range o.IDPools {
		l, err := layoutOf(text)
		if err != nil {
			return fmt.Errorf("server: IDPools: %w", err)
		}
		if other, twice := pools[l.Name()]; twice && other != pool {
			return fmt.Errorf("server: IDPools: the layout %s has two pools, %s and %s: want one", l.Name(), other, pool)
		}
		pools[l.Name()] = pool
	}
	o.IDPools = pools
	return nil
}

// completeQuotas settles how much one caller may have.
func (o *Options) completeQuotas() error {
	for _, n := range []struct {
		field     string
		value     *int
		otherwise int
	}{
		{"MaxWaiting", &o.MaxWaiting, DefaultMaxWaiting}, {"MaxNames", &o.MaxNames, DefaultMaxNames},
		{"MaxSessions", &o.MaxSessions, DefaultMaxSessions}, {"MaxBytes", &o.MaxBytes, DefaultMaxBytes},
	} {
		if *n.value == 0 {
			*n.value = n.otherwise
		}
		if *n.value < 0 {
			return fmt.Errorf("server: %s %d: want a number above 0", n.field, *n.value)
		}
	}
	if !(o.MaxRate >= 0) { // not a number isn't either
		return fmt.Errorf("server: MaxRate %v: want a number of requests a second, or 0 for any", o.MaxRate)
	}
	return nil
}

// Waiting returns how many requests wait for a name here.
func (s *Server) Waiting() int { return s.reg.QueuedInAll() }

// Drain makes the server report that it isn't ready from now on, so that clients send it no more.
// It continues to serve until [Server.Close].
func (s *Server) Drain() { s.drains.Store(true) }

// Close ends all waits and streams, whose requests are answered, and refuses later requests. It
// blocks until running requests at the store have ended. Granted leases stay granted.
func (s *Server) Close() error {
	s.stop()
	s.board.close()
	s.chronicle.wait()
	s.background.close()
	return errors.Join(s.mint.close(), s.reg.Close())
}

// lease shows a record.
func (s *Server) lease(rec store.Record) api.Lease {
	l := api.Lease{Name: rec.Key, State: state(rec), Holder: rec.Owner, Token: rec.Token, Waiters: s.reg.Queued(rec.Key)}
	if rec.Kind != store.KindLease {
		l.Kind = rec.Kind
		if rec.Kind.Shared() {
			shareOut(&l, rec)
		}
	}
	if rec.Owner == "" {
		return l
	}
	ttl, acquired := api.Seconds(rec.TTL), rec.Acquired
	l.TTL, l.Acquired, l.Session, l.Info, l.Note = &ttl, &acquired, rec.Session, lessor.Shown(rec.Info), rec.Note
	if rec.Session == "" {
		observe(&l, s.obs.Saw(rec))
	}
	return l
}

// observe has a lease say how long it lasts, and since when there is no sign of life.
func observe(l *api.Lease, seen lease.Status) {
	left := api.Seconds(seen.ExpiresIn)
	l.ExpiresIn = &left
	if silent := api.Seconds(seen.SilentFor()); silent > 0 {
		l.Silent = &silent
	}
	if seen.Standing == lease.NameExpired {
		l.State = api.StateExpired
	}
}

// shareOut shows who shares a name.
func shareOut(l *api.Lease, rec store.Record) {
	shared, err := roster.StateOf(rec)
	if err != nil {
		l.State, l.Problem = api.StateBad, api.ProblemOf(err)
		return
	}
	if shared.Kind == roster.Semaphore {
		l.Limit = shared.Limit
	}
	for _, h := range shared.Held {
		l.State, l.Holders = api.StateHeld, append(l.Holders, api.ShareOf(shared, h))
	}
}

func state(rec store.Record) api.State {
	switch {
	case rec.Kind == store.KindPool:
		return api.StatePool
	case rec.Owner == "":
		return api.StateFree
	case rec.Intervention == store.InterventionBroken:
		return api.StateBroken
	case rec.Intervention == store.InterventionHandedOver:
		return api.StateHanded
	}
	return api.StateHeld
}
