package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/accept"
	"github.com/leasehold/leasehold/internal/tlsfiles"
)

// Soon is when to try again while the name changes hands.
const Soon = time.Second

// Servers are the servers of one gate.
type Servers struct {
	Clock  clock.Clock
	Drain  time.Duration
	all    []*http.Server
	served sync.WaitGroup
	once   sync.Once
}

// Listen has a server serve on an address, whose URL it returns.
func (s *Servers) Listen(ctx context.Context, flag, addr string, hs *http.Server, secure bool, fail context.CancelCauseFunc) (string, error) {
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

// Shut takes no further connections, and gives the requests under way time to end. It blocks until
// then.
func (s *Servers) Shut() {
	s.once.Do(func() {
		ctx, cancel := clock.WithTimeout(context.Background(), s.Clock, s.Drain)
		defer cancel()
		for _, hs := range s.all {
			if hs.Shutdown(ctx) != nil {
				_ = hs.Close()
			}
		}
	})
}

// Close ends the servers.
func (s *Servers) Close() {
	s.Shut()
	s.served.Wait()
}

// untimely is the error of a server that has ended: none if it was asked to.
func untimely(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, accept.ErrFinished) {
		return nil
	}
	return err
}

// ServerTLS has each connection use what is in the files when it begins.
func ServerTLS(f *tlsfiles.File[tls.Config]) *tls.Config {
	if f == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.Get(), nil },
	}
}
