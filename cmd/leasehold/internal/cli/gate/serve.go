package gate

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/serve"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
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
		TTL: k.timing.TTL, Renew: k.timing.Renew(), Name: k.a.Values.Get("as"), Info: map[string]string{"command": "gate", "user": cli.WhoAmI()},
		Clock: k.a.Clock, OnRetry: k.words.Retry, OnEvent: k.event,
	})
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	log := k.words.Log
	k.opts.Log = log
	// What net/http has to say of connections to the program comes through package log.
	slog.SetDefault(log)
	k.a.Hangup.Is(func() {
		k.words.Say("%s: certificates are read again when they change: nothing to do on SIGHUP", k.name)
	})
	g, err := gate.New(k.opts)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer g.Close()
	servers, err := k.serve(ctx, g, m.Holder(), log, fail)
	if err != nil {
		return err
	}
	defer servers.Close()
	watching, stop := context.WithCancel(ctx)
	k.known.kick = make(chan struct{}, 1)
	var watch sync.WaitGroup
	watch.Go(func() { k.watch(watching, st, m.Holder()) })
	watch.Go(func() { k.report(ctx, g) })
	defer watch.Wait()
	defer stop()
	closing := context.AfterFunc(ctx, servers.Shut) // new connections are not for one that leaves
	defer closing()
	err = election.Run(ctx, m, k.name, election.Callbacks{
		OnStartedLeading: func(ctx context.Context, term election.Term) {
			k.a.About(term.Sequencer())
			defer k.a.About(fence.Sequencer{Name: k.name})
			k.words.Say("%s: passing writes (token %d)", k.name, term.Token)
			cause := g.Open(ctx, term)
			k.words.Say("%s: passing reads only: %v", k.name, cause)
		},
		OnNewLeader: func(election.Leader) { k.known.again() },
		OnError:     func(err error) { k.words.Retry(k.name, err) },
	}, election.Options{Name: k.a.Values.Get("as"), StopWithin: k.o.drain + 2*time.Second})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return hold.CantLead(k.name, err)
}

// report tells a service manager how the gate fares, until ctx ends.
func (k *gateKeeper) report(ctx context.Context, g *gate.Gate) {
	k.manager.Report(ctx, k.a.Clock, func(context.Context) (string, error) {
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
		k.words.Event(ev)
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
		limited, cancel := clock.WithTimeout(ctx, k.a.Clock, k.timing.TTL/3)
		state, err := election.ReadState(limited, st, k.name)
		cancel()
		if err == nil {
			k.known.now.Store(holder(state, me, k.a.Clock.Wall()))
		}
		timer := clock.NewTimer(k.a.Clock, k.timing.TTL/3)
		select {
		case <-timer.C:
		case <-k.known.kick:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func holder(state election.State, me string, now time.Time) *gate.Holder {
	switch l := state.Leader; {
	case l.Owner != "" && l.Owner != me:
		return &gate.Holder{Owner: l.Owner, Token: l.Token, Since: l.Since}
	case state.Pause != nil:
		return &gate.Holder{Note: view.PauseText(view.Pause(*state.Pause), now)}
	}
	return &gate.Holder{Retry: serve.Soon}
}

// serve begins to listen, and to serve.
func (k *gateKeeper) serve(ctx context.Context, g *gate.Gate, me string, log *slog.Logger, fail context.CancelCauseFunc) (*serve.Servers, error) {
	s := &serve.Servers{Clock: k.a.Clock, Drain: k.o.drain + serve.Soon}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(k.o.server.Cert == "")
	front := &http.Server{
		Handler: g, TLSConfig: serve.ServerTLS(k.server), Protocols: &protocols, MaxHeaderBytes: gateHeaderBytes, IdleTimeout: serve.IdleLimit,
		ReadHeaderTimeout: serve.HeaderLimit, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	url, err := s.Listen(ctx, "listen", k.o.listen, front, k.o.server.Cert != "", fail)
	if err != nil {
		return nil, err
	}
	k.words.Say("%s: serving %s on %s", k.name, k.opts.Upstream.Redacted(), url)
	if k.o.admin == "" {
		return s, nil
	}
	admin := &http.Server{Handler: k.admin(g, me), ReadHeaderTimeout: serve.HeaderLimit, ReadTimeout: serve.HeaderLimit, WriteTimeout: serve.HeaderLimit, IdleTimeout: serve.IdleLimit}
	if url, err = s.Listen(ctx, "admin", k.o.admin, admin, false, fail); err != nil {
		s.Close()
		return nil, err
	}
	k.words.Say("%s: serving the state on %s", k.name, url)
	return s, nil
}

// State is what /state says.
type State struct {
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
		state := State{
			Name: k.name, Active: s.Open, Me: me, Holder: h.Owner, Token: h.Token, Left: s.Left.Seconds(), InFlight: s.InFlight,
			Reads: s.Reads, Writes: s.Writes, Refused: s.Refused, Cut: s.Cut,
		}
		if s.Term.Token != 0 {
			state.Holder, state.Token = s.Term.Holder, s.Term.Token
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = output.WriteJSON(w, state, false) // whoever has gone needs no answer
	})
	return mux
}
