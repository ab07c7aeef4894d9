package main

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

// soon is when to try again while the name changes hands.
const soon = time.Second

// gateServers are the servers of one gate.
type gateServers struct {
	clk    clock.Clock
	drain  time.Duration
	all    []*http.Server
	served sync.WaitGroup
	once   sync.Once
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

// untimely is the error of a server that has ended: none if it was asked to.
func untimely(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, accept.ErrFinished) {
		return nil
	}
	return err
}

// serverTLS has each connection use what is in the files when it begins.
func serverTLS(f *tlsfiles.File[tls.Config]) *tls.Config {
	if f == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.Get(), nil },
	}
}
