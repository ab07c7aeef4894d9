// Command gate stands in front of a Kubernetes API server. Start it twice with the same file of
// leases: lists and watches pass through both copies, and what changes something through the one
// that holds the lease only.
//
//	go run ./examples/gate -listen 127.0.0.1:7443 -upstream https://127.0.0.1:6443 -ca ca.crt -cert gate.crt -key gate.key
//
// `leasehold gate` does this and more; the example shows what it takes in a program of one's own.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

// settings are what one gate needs to know.
type settings struct {
	name     string // of the candidate, for people
	upstream string // the API server
	ca       string // file with the authority that signed its certificate
	cert     string // files with the gate's own certificate, and its key
	key      string
	ttl      time.Duration
}

func main() {
	s := settings{}
	host, _ := os.Hostname()
	listen := flag.String("listen", "127.0.0.1:7443", "address to serve on")
	leases := flag.String("leases", filepath.Join(os.TempDir(), "leasehold-gate.db"), "file of leases")
	flag.StringVar(&s.name, "name", host, "name of this gate")
	flag.StringVar(&s.upstream, "upstream", "https://127.0.0.1:6443", "URL of the API server")
	flag.StringVar(&s.ca, "ca", "ca.crt", "file with the authority of the API server's certificate")
	flag.StringVar(&s.cert, "cert", "gate.crt", "file with the certificate of the gate")
	flag.StringVar(&s.key, "key", "gate.key", "file with its key")
	flag.DurationVar(&s.ttl, "ttl", 15*time.Second, "how long the lease outlives a gate that has died")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, s, *listen, *leases); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

// start opens what run needs.
func start(ctx context.Context, s settings, listen, leases string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	st, err := file.Open(ctx, leases, file.Options{})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	return errors.Join(run(ctx, s, l, st), st.Close())
}

// run serves on l, and stands for election, until ctx is done. Then the writes under way end first,
// or are cut; the lease is released next, and the reads under way have a second more.
func run(ctx context.Context, s settings, l net.Listener, st store.Store) (err error) {
	var holder atomic.Pointer[gate.Holder] // whom a refusal names
	holder.Store(&gate.Holder{})
	opts := gate.Options{
		Name: "cluster", Preset: gate.Kubernetes, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Holder: func() gate.Holder { return *holder.Load() },
	}
	if opts.Upstream, err = url.Parse(s.upstream); err != nil {
		return errors.Join(err, l.Close())
	}
	if opts.TLS, err = trust(s.ca); err != nil {
		return errors.Join(err, l.Close())
	}
	g, err := gate.New(opts)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer g.Close()
	m, err := lease.NewManager(st, lease.Options{Name: s.name, TTL: s.ttl})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer func() { err = errors.Join(err, m.Close()) }()

	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		err := server.ServeTLS(l, s.cert, s.key)
		fail(err) // nobody is served, so nobody should lead
		served <- err
	}()

	err = election.Run(ctx, m, opts.Name, election.Callbacks{
		OnStartedLeading: func(ctx context.Context, term election.Term) {
			fmt.Fprintf(os.Stderr, "%s: writes pass (token %d)\n", s.name, term.Token)
			cause := g.Open(ctx, term) // until the last write has ended
			fmt.Fprintf(os.Stderr, "%s: reads only: %v\n", s.name, cause)
		},
		OnNewLeader: func(l election.Leader) {
			holder.Store(&gate.Holder{Owner: l.Owner, Token: l.Token, Since: l.Since})
		},
	}, election.Options{Name: s.name})

	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(end) != nil {
		_ = server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// trust returns what the API server's certificate is checked by.
func trust(ca string) (*tls.Config, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it: want a PEM file", ca)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}
