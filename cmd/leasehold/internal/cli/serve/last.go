package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// lastRequests answers, when a server ends, the requests that its clients have sent, or are about
// to send on connections that are open: net/http closes those at once on which nothing is asked at
// that moment, and a request that is on its way is answered by a reset.
type lastRequests struct {
	ending atomic.Bool

	mu   sync.Mutex
	open map[net.Conn]struct{}
	none chan struct{} // closed when nothing is open; nil until that is waited for
}

// lastCall is how long, from the beginning of the end on, a connection is kept on which nothing is
// asked.
const lastCall = 500 * time.Millisecond

// answer has each answer say that it is the last one of its connection, once the server ends.
func (l *lastRequests) answer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&lastAnswer{ResponseWriter: w, l: l}, r)
	})
}

// lastAnswer looks whether the server ends when the answer begins: a request may have waited until
// then.
type lastAnswer struct {
	http.ResponseWriter
	l    *lastRequests
	said bool
}

// Unwrap is for [http.ResponseController].
func (a *lastAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *lastAnswer) begin() {
	if a.said {
		return
	}
	a.said = true
	if a.l.ending.Load() {
		a.Header().Set("Connection", "close")
	}
}

// WriteHeader implements [http.ResponseWriter].
func (a *lastAnswer) WriteHeader(status int) {
	a.begin()
	a.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (a *lastAnswer) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// follow is [http.Server.ConnState].
func (l *lastRequests) follow(c net.Conn, state http.ConnState) {
	if state == http.StateActive || state == http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		if l.open == nil {
			l.open = map[net.Conn]struct{}{}
		}
		l.open[c] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(l.open, c)
		l.ended()
	case http.StateActive, http.StateIdle:
	}
}

// ended notes that nothing is open any more. l.mu is held.
func (l *lastRequests) ended() {
	if l.none != nil && len(l.open) == 0 {
		close(l.none)
		l.none = nil
	}
}

// begin has all answers from now on be the last ones of their connections.
func (l *lastRequests) begin() { l.ending.Store(true) }

// wait lets clients have their last answers. It returns when all connections are closed, after
// [lastCall], or when ctx is done.
func (l *lastRequests) wait(ctx context.Context, clk clock.Clock) {
	none := make(chan struct{})
	l.mu.Lock()
	l.none = none
	l.ended()
	l.mu.Unlock()
	ctx, cancel := clock.WithTimeout(ctx, clk, lastCall)
	defer cancel()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
