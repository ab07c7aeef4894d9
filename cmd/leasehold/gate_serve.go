package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// gateHeaderBytes bounds the header of a request: cookies and tokens of other programs are in it.
const gateHeaderBytes = 64 << 10

// run serves, and stands for election, until ctx is done.
func (k *gateKeeper) run(ctx context.Context, st store.Store) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	m, err := lease.NewManager(st, lease.Options{
		TTL: k.timing.TTL, Renew: k.timing.Renew(), Name: k.a.values.Get("as"), Info: map[string]string{"command": "gate", "user": whoAmI()},
		Clock: k.a.clk, OnRetry: k.words.retry, OnEvent: k.event,
	})
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	log := k.words.log
	k.opts.Log = log
	slog.SetDefault(log) // what net/http has to say of connections to the program comes through package log
	k.a.hangup.is(func() {
		k.words.say("%s: certificates are read again when they change: nothing to do on SIGHUP", k.name)
	})
	g, err := gate.New(k.opts)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer g.Close()
	servers, err := k.serve(ctx, g, m.Owner(), log, fail)
	if err != nil {
		return err
	}
	defer servers.close()
	watching, stop := context.WithCancel(ctx)
	k.known.kick = make(chan struct{}, 1)
	var watch sync.WaitGroup
	watch.Go(func() { k.watch(watching, st, m.Owner()) })
	watch.Go(func() { k.report(ctx, g) })
	defer watch.Wait()
	defer stop()
	closing := context.AfterFunc(ctx, servers.shut) // new connections are not for one that leaves
	defer closing()
	err = election.Run(ctx, m, k.name, election.Callbacks{
		OnStartedLeading: func(ctx context.Context, term election.Term) {
			k.words.say("%s: passing writes (token %d)", k.name, term.Token)
			cause := g.Open(ctx, term)
			k.words.say("%s: passing reads only: %v", k.name, cause)
		},
		OnNewLeader: func(election.Leader) { k.known.again() },
		OnError:     func(err error) { k.words.retry(k.name, err) },
	}, election.Options{Name: k.a.values.Get("as"), StopWithin: k.o.drain + 2*time.Second})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return cantLead(k.name, err)
}

// report tells a service manager how the gate fares, until ctx ends.
func (k *gateKeeper) report(ctx context.Context, g *gate.Gate) {
	k.manager.Report(ctx, k.a.clk, func(context.Context) (string, error) {
		if g.State().Open {
			return k.name + ": passing writes", nil
		}
		return k.name + ": passing reads only", nil
	})
	k.manager.Stopping(k.name + ": letting go")
}

// event is told what becomes of the session.
func (k *gateKeeper) event(ev lease.Event) {
	if ev.State == lease.StateJeopardy {
		k.words.event(ev)
	}
}

// holderOf is who holds the name, as last read.
type holderOf struct {
	now  atomic.Pointer[gate.Holder]
	kick chan struct{} // it may have changed
}

func (h *holderOf) get() gate.Holder {
	if now := h.now.Load(); now != nil {
		return *now
	}
	return gate.Holder{}
}

func (h *holderOf) again() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// watch keeps in mind who holds the name, for those whose writes are refused.
func (k *gateKeeper) watch(ctx context.Context, st store.Store, me string) {
	for ctx.Err() == nil {
		limited, cancel := clock.WithTimeout(ctx, k.a.clk, k.timing.TTL/3)
		state, err := election.Read(limited, st, k.name)
		cancel()
		if err == nil {
			k.known.now.Store(holder(state, me, k.a.clk.Wall()))
		}
		timer := clock.NewTimer(k.a.clk, k.timing.TTL/3)
		select {
		case <-timer.C:
		case <-k.known.kick:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// soon is when to try again while the name changes hands.
const soon = time.Second

func holder(state election.State, me string, now time.Time) *gate.Holder {
	switch l := state.Leader; {
	case l.Owner != "" && l.Owner != me:
		return &gate.Holder{Owner: l.Owner, Token: l.Token, Since: l.Since}
	case state.Pause != nil:
		return &gate.Holder{Note: pauseText(pauseView(*state.Pause), now)}
	}
	return &gate.Holder{Retry: soon}
}

// gateServers are the servers of one gate.
type gateServers struct {
	clk    clock.Clock
	drain  time.Duration
	all    []*http.Server
	served sync.WaitGroup
	once   sync.Once
}

// serve begins to listen, and to serve.
func (k *gateKeeper) serve(ctx context.Context, g *gate.Gate, me string, log *slog.Logger, fail context.CancelCauseFunc) (*gateServers, error) {
	s := &gateServers{clk: k.a.clk, drain: k.o.drain + soon}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(k.o.server.cert == "")
	front := &http.Server{
		Handler: g, TLSConfig: serverTLS(k.server), Protocols: &protocols, MaxHeaderBytes: gateHeaderBytes, IdleTimeout: idleLimit,
		ReadHeaderTimeout: headerLimit, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	url, err := s.listen(ctx, "listen", k.o.listen, front, k.o.server.cert != "", fail)
	if err != nil {
		return nil, err
	}
	k.words.say("%s: serving %s on %s", k.name, k.opts.Upstream.Redacted(), url)
	if k.o.admin == "" {
		return s, nil
	}
	admin := &http.Server{Handler: k.admin(g, me), ReadHeaderTimeout: headerLimit, ReadTimeout: headerLimit, WriteTimeout: headerLimit, IdleTimeout: idleLimit}
	if url, err = s.listen(ctx, "admin", k.o.admin, admin, false, fail); err != nil {
		s.close()
		return nil, err
	}
	k.words.say("%s: serving the state on %s", k.name, url)
	return s, nil
}

// listen has a server serve on an address, whose URL it returns.
func (s *gateServers) listen(ctx context.Context, flag, addr string, hs *http.Server, secure bool, fail context.CancelCauseFunc) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("--%s %s: %w: name another address", flag, addr, err)
	}
	s.all = append(s.all, hs)
	scheme, serve := "http", func() error { return hs.Serve(l) }
	if secure {
		scheme, serve = "https", func() error { return hs.ServeTLS(l, "", "") }
	}
	s.served.Go(func() {
		if err := untimely(serve()); err != nil {
			fail(fmt.Errorf("--%s %s: %w", flag, addr, err))
		}
	})
	return scheme + "://" + l.Addr().String(), nil
}

// shut takes no further connections, and gives the requests under way time to end. It blocks until then.
func (s *gateServers) shut() {
	s.once.Do(func() {
		ctx, cancel := clock.WithTimeout(context.Background(), s.clk, s.drain)
		defer cancel()
		for _, hs := range s.all {
			if hs.Shutdown(ctx) != nil {
				_ = hs.Close()
			}
		}
	})
}

// close ends the servers.
func (s *gateServers) close() {
	s.shut()
	s.served.Wait()
}

// gateState is what /state says.
type gateState struct {
	Name     string      `json:"name"`
	Active   bool        `json:"active"` // takes writes
	Me       string      `json:"me"`
	Holder   string      `json:"holder,omitempty"`
	Token    fence.Token `json:"token,omitempty"`
	Left     float64     `json:"left"`
	InFlight int         `json:"writes_in_flight"`
	Reads    uint64      `json:"reads"`
	Writes   uint64      `json:"writes"`
	Refused  uint64      `json:"refused"`
	Cut      uint64      `json:"cut"`
}

// admin serves the gate's own state.
func (k *gateKeeper) admin(g *gate.Gate, me string) http.Handler {
	mux := http.NewServeMux()
	role := func(active bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if g.State().Open != active {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /active", role(true))
	mux.HandleFunc("GET /standby", role(false))
	mux.Handle("GET /metrics", gateMetrics{g, k.name}.handler())
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		s, h := g.State(), k.known.get()
		state := gateState{
			Name: k.name, Active: s.Open, Me: me, Holder: h.Owner, Token: h.Token, Left: s.Left.Seconds(), InFlight: s.InFlight,
			Reads: s.Reads, Writes: s.Writes, Refused: s.Refused, Cut: s.Cut,
		}
		if s.Term.Token != 0 {
			state.Holder, state.Token = s.Term.Holder, s.Term.Token
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = writeJSON(w, state, false) // whoever has gone needs no answer
	})
	return mux
}
