package standby

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
)

// The time limits of the server.
const (
	headerTimeout = 5 * time.Second
	closeTimeout  = time.Second
)

// Server serves the state of one instance. Make one with [Listen].
type Server struct {
	listener net.Listener
	http     *http.Server
	ended    chan struct{}
}

// Listen listens on addr, and serves the endpoints of [admiral.Handler] and /metrics from now on.
// Close the server when it isn't needed any more.
func Listen(ctx context.Context, addr string, s *admiral.State, m *Metrics) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w: name another address, or \"off\"", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", admiral.Handler(s))
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &Server{
		listener: l, ended: make(chan struct{}),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout},
	}
	go func() {
		defer close(server.ended)
		_ = server.http.Serve(l) // until Close
	}()
	return server, nil
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server. Requests under way have a second to end.
func (s *Server) Close() {
	ctx, cancel := clock.WithTimeout(context.Background(), clock.System(), closeTimeout)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.ended
}
