package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/store"
)

// readyLimit is how long the store has to answer a look at whether the server is ready.
const readyLimit = 2 * time.Second

// health answers /healthz, whether this process works, which asks nobody, and /readyz, whether it
// can serve: nobody needs to be known for either.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Path == "/healthz" { // a store that hangs is no reason to restart this process
		_, _ = w.Write([]byte("ok\n"))
		return
	}
	err := s.Ready(r.Context())
	if err == nil {
		text := "ok\n"
		if err := s.chronicle.failure(); err != nil { // who serves leases without it serves them
			text += err.Error() + "\n"
		}
		_, _ = w.Write([]byte(text))
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(err.Error() + "\n"))
}

// Ready returns nil if the server can serve: it isn't about to close, and its store answers within
// 2 s, or within [Options.StoreTimeout] if that is less. It blocks until then.
func (s *Server) Ready(ctx context.Context) error {
	if s.closing.Err() != nil {
		return errors.New("the server is closing")
	}
	if s.drains.Load() {
		return errors.New("the server is about to close")
	}
	p := s.newPatience(ctx)
	defer p.end()
	p.limit = min(p.limit, readyLimit)
	p.extend(0)
	if _, err := store.Load(p.ctx, s.st, ".ready"); err != nil {
		return &notReadyError{err}
	}
	return nil
}

// notReadyError is an error of the store in words for an operator.
type notReadyError struct{ err error }

func (e *notReadyError) Error() string { return plainly(e.err) }
func (e *notReadyError) Unwrap() error { return e.err }
