package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// readyLimit is how long the store has to answer a look at whether the server is ready.
const readyLimit = 2 * time.Second

// health answers /healthz, whether this process works, and /readyz, whether it can serve: nobody needs to be known for either.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	err := s.Ready(r.Context())
	if r.URL.Path == "/healthz" || err == nil {
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(err.Error() + "\n"))
}

// Ready returns nil if the server can serve: it isn't about to close, and its store answers within 2 s.
func (s *Server) Ready(ctx context.Context) error {
	if s.closing.Err() != nil {
		return errors.New("the server is closing")
	}
	if s.drains.Load() {
		return errors.New("the server is about to close")
	}
	ctx, cancel := clock.WithTimeout(ctx, s.clk, readyLimit)
	defer cancel()
	_, err := store.Load(ctx, s.st, ".ready")
	return err
}
