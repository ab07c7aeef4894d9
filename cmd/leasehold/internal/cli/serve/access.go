package serve

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/server"
)

// access returns what has each request told to the log, at level debug, when it has ended. No query
// and no header is in it: tokens are; and of a path of RDLM's no uid, which is the secret of its
// lock.
func (s *lockServer) access() func(http.Handler) http.Handler {
	if !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return func(h http.Handler) http.Handler { return h }
	}
	authenticate := s.opts.Authenticate
	s.opts.Authenticate = func(r *http.Request) (server.Caller, error) {
		if authenticate == nil {
			return server.Anybody, nil
		}
		caller, err := authenticate(r)
		if e, ok := r.Context().Value(entryKey{}).(*entry); ok && err == nil {
			e.caller = caller.Name()
		}
		return caller, err
	}
	return func(h http.Handler) http.Handler { return &accessLog{h, s.a.Clock, s.log} }
}

// entry is what is known of a request while it is answered.
type entry struct {
	http.ResponseWriter
	caller string
	status int
	bytes  int
}

type entryKey struct{}

// Unwrap is for [http.ResponseController].
func (e *entry) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (e *entry) WriteHeader(status int) {
	if e.status == 0 {
		e.status = status
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (e *entry) Write(p []byte) (int, error) {
	if e.status == 0 {
		e.status = http.StatusOK
	}
	n, err := e.ResponseWriter.Write(p)
	e.bytes += n
	return n, err
}

// logged is a path without what is secret in it.
func logged(path string) string {
	if locked, ok := strings.CutPrefix(path, "/locks/"); ok {
		if name, _, ok := strings.Cut(locked, "/"); ok {
			return "/locks/" + name + "/…"
		}
	}
	return path
}

type accessLog struct {
	next http.Handler
	clk  clock.Clock
	log  *slog.Logger
}

// ServeHTTP implements [http.Handler].
func (l *accessLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, begun := &entry{ResponseWriter: w}, l.clk.Now()
	defer func() { // for a request that is broken off, too
		l.log.LogAttrs(context.Background(), slog.LevelDebug, "request",
			slog.String("method", r.Method), slog.String("path", logged(r.URL.EscapedPath())), slog.Int("status", e.status), slog.Int("bytes", e.bytes),
			slog.Float64("seconds", l.clk.Now().Sub(begun).Seconds()), slog.String("remote", r.RemoteAddr), slog.String("caller", e.caller))
	}()
	l.next.ServeHTTP(e, r.WithContext(context.WithValue(r.Context(), entryKey{}, e)))
}
