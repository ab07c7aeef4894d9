package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/accept"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/journal"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/policy"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/systemd"
	"github.com/leasehold/leasehold/internal/tlsfiles"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

// lockServer is one call of serve.
type lockServer struct {
	a       *app
	o       Options
	opts    server.Options
	log     *slog.Logger
	tls     *tlsfiles.File[tls.Config] // nil without TLS
	policy  *policy.Policy             // nil if everybody may do everything
	audit   *audit                     // nil for none
	manager *systemd.Manager           // nil for none
	journal *journal.Journal           // nil for none
	passing string                     // the folder of a demo's journal; "" for none
}

// spareHeap is memory that is never touched, and so never the machine's. The collector of garbage,
// which counts it as in use, lets as much garbage lie before it begins, and runs a few times a
// second under load, not tens of times: without waiters the server's own heap is next to nothing.
const spareHeap = 32 << 20

// spareProcessor is one more than Go would take, for the file engine: its sync keeps one from
// everything else until the runtime notices that it is blocked. On two cores, 512 clients get a
// fifth more done with it. It returns what takes it away again; GOMAXPROCS in the environment
// decides alone.
func spareProcessor(st store.Store) (undo func()) {
	if os.Getenv("GOMAXPROCS") != "" || store.Describe(st).Engine != "file" {
		return func() {}
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	return runtime.SetDefaultGOMAXPROCS
}

// run serves st until ctx ends, and then for as long as it takes to end what is under way.
func (s *lockServer) run(ctx context.Context, st store.Store) (err error) {
	spare := make([]byte, spareHeap)
	defer runtime.KeepAlive(spare)
	defer spareProcessor(st)()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w: name another address", s.o.Listen, err)
	}
	defer func() { _ = l.Close() }() // it is, but after an error
	limits := s.o.limits()
	limits.Log = s.log
	line := accept.New(l, limits)
	s.opts.Collectors = []prometheus.Collector{line, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
	access := s.access()
	srv, err := server.New(st, s.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	last := &lastRequests{}
	hs := &http.Server{
		Handler: last.answer(access(srv)), ConnState: last.follow, ReadHeaderTimeout: HeaderLimit, IdleTimeout: IdleLimit, MaxHeaderBytes: HeaderBytes, TLSConfig: ServerTLS(s.tls),
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	admin, err := s.serveAdmin(ctx, srv, fail)
	if err != nil {
		return err
	}
	var own sync.WaitGroup
	defer own.Wait()
	defer admin()
	own.Go(func() {
		if s.tls == nil {
			fail(untimely(hs.Serve(line)))
		} else {
			fail(untimely(hs.ServeTLS(line, "", "")))
		}
	})
	what, url := s.announce(l.Addr())
	own.Go(func() { s.checkTrust(ctx) })
	if s.o.Demo {
		defer s.a.play(ctx, url)()
	}
	own.Go(func() {
		s.manager.Report(ctx, s.a.Clock, func(ctx context.Context) (string, error) {
			return fmt.Sprintf("serving %s on %s; %d wait", what, url, srv.Waiting()), srv.Ready(ctx)
		})
	})
	<-ctx.Done()
	s.end(ctx, srv, hs, line, last)
	return context.Cause(ctx)
}

// announce says what is served, where and to whom.
func (s *lockServer) announce(addr net.Addr) (what, url string) {
	what, url = open.Redact(s.a.Values.Get("store")), "http://"+addr.String()
	if s.o.Demo {
		what = "a demo"
	}
	if s.tls != nil {
		url = "https://" + addr.String()
	}
	s.log.Info(fmt.Sprintf("serving %s on %s", what, url))
	switch {
	case s.o.Demo || s.o.known():
	case s.o.Anybody:
		s.log.Warn(fmt.Sprintf("everybody who reaches %s may take and end any lease: nobody has to say who they are", addr))
	default:
		s.log.Info("only this machine is served, since nobody has to say who they are: see --policy and --client-ca")
	}
	return what, url
}

// checkTrust says who of those whose tokens the policy trusts can't answer yet: that keeps their
// callers out, and nobody else.
func (s *lockServer) checkTrust(ctx context.Context) {
	if s.policy == nil {
		return
	}
	for _, t := range s.policy.Check(ctx) {
		switch {
		case t.Err == nil || ctx.Err() != nil:
		case t.Login:
			s.log.Warn("nobody can log in on the page with that issuer: " + cli.OneLine(t.Err))
		default:
			s.log.Warn("callers that " + t.What + " names are refused until it answers: " + cli.OneLine(t.Err))
		}
	}
}

// end finishes what is under way. New connections are refused, but for the time in which others are
// told not to come. Every request that was accepted is answered.
func (s *lockServer) end(ctx context.Context, srv *server.Server, hs *http.Server, line *accept.Listener, last *lastRequests) {
	why := context.Cause(ctx)
	ctx = context.WithoutCancel(ctx)
	srv.Drain()
	s.manager.Stopping(fmt.Sprintf("ending; %d wait", srv.Waiting()))
	if s.o.DrainDelay > 0 && errors.As(why, new(*cli.SignalError)) {
		s.log.Info(fmt.Sprintf("ending in %v (%v), and not ready for more", s.o.DrainDelay, why))
		_ = clock.Sleep(ctx, s.a.Clock, s.o.DrainDelay) // ctx has no end
	}
	s.log.Info(fmt.Sprintf("ending (%v); who waits is told to come again", why), "waiting", srv.Waiting())
	last.begin()
	if err := srv.Close(); err != nil { // those who wait are answered
		s.log.Warn("ending: " + cli.OneLine(err))
	}
	limited, cancel := clock.WithTimeout(ctx, s.a.Clock, s.o.Drain)
	defer cancel()
	line.Finish(limited)
	last.wait(limited, s.a.Clock)
	if hs.Shutdown(limited) != nil {
		s.log.Warn(fmt.Sprintf("requests have not ended within %v, and are broken off", s.o.Drain))
		_ = hs.Close()
	}
}

// serveAdmin serves what says how the server fares on an address of its own, if there is to be one,
// until the function that it returns is called.
func (s *lockServer) serveAdmin(ctx context.Context, srv *server.Server, fail context.CancelCauseFunc) (end func(), err error) {
	if s.o.Admin == "" {
		return func() {}, nil
	}
	servers := &Servers{Clock: s.a.Clock, Drain: Soon}
	hs := &http.Server{Handler: srv.State(), ReadHeaderTimeout: HeaderLimit, ReadTimeout: HeaderLimit, WriteTimeout: StallLimit, IdleTimeout: IdleLimit}
	url, err := servers.Listen(ctx, "admin", s.o.Admin, hs, false, fail)
	if err != nil {
		return nil, err
	}
	s.log.Info("serving the state on " + url)
	return servers.Close, nil
}

// reloads reports whether there is anything to read again.
func (s *lockServer) reloads() bool { return s.policy != nil || s.tls != nil || s.audit.reopens() }

// reload reads again what stands in files, and says what came of it.
func (s *lockServer) reload() {
	s.manager.Reloading(func() {
		did := false
		read := func(what, done string, again func() error) {
			did = true
			if err := again(); err != nil {
				s.log.Error(fmt.Sprintf("%s; the %s from before stays in force", cli.OneLine(err), what))
				return
			}
			s.log.Info("the " + what + " was " + done)
		}
		if s.policy != nil {
			read("policy", "read again", s.policy.Reload)
		}
		if s.tls != nil {
			read("certificate", "read again", s.tls.Reload)
		}
		if s.audit.reopens() {
			read("audit log", "opened again", s.audit.reopen)
		}
		if !did {
			s.log.Info("there is nothing to read again")
		}
	})
}

// TLS returns the configuration of TLS, nil if there is to be none.
func (o Options) TLS(log *slog.Logger) (*tlsfiles.File[tls.Config], error) {
	if o.Cert == "" {
		return nil, nil //nolint:nilnil // no TLS is no configuration
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if o.ClientCA != "" {
		base.ClientAuth = tls.RequireAndVerifyClientCert
		if o.Policy != "" {
			base.ClientAuth = tls.VerifyClientCertIfGiven // others may have tokens
		}
	}
	f, err := tlsfiles.Server(log, base, o.Cert, o.Key, o.ClientCA)
	if err != nil {
		return nil, cli.Usage("%w", err)
	}
	return f, nil
}

// healthcheck asks a server on this machine whether it is ready.
func (o Options) healthcheck(ctx context.Context) error {
	addr, scheme, transport := o.Listen, "http", &http.Transport{}
	if o.Admin != "" {
		addr = o.Admin
	} else if o.Cert != "" {
		// It is this machine's own server: that it answers is the question, not who it is.
		scheme, transport.TLSClientConfig = "https", &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
	}
	host, port, _ := net.SplitHostPort(addr) // checked before
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), HeaderLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return cli.Usage("%s: %w", addr, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return cli.Exit(cli.ExitNo, err)
	}
	defer transport.CloseIdleConnections()
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s is not ready: %s", addr, resp.Status))
	}
	return nil
}
