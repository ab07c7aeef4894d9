package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/policy"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/stores"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/server/rdlm"
	"github.com/leasehold/leasehold/store"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	listen   string
	anybody  bool // listen beyond this machine though nobody has to say who it is
	cert     string
	key      string
	clientCA string
	policy   string
	audit    string
	rdlm     bool
	strict   bool
	admin    string
	drain    time.Duration
	check    bool
	demo     bool
}

// The bounds that a client meets before its request is read. What a request may take after that depends on what it waits for.
const (
	headerLimit = 10 * time.Second
	idleLimit   = 2 * time.Minute
	headerBytes = 16 << 10
)

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve leases over HTTP, to scripts and programs in any language",
		Long: "Serve the leases of the store that is set over HTTP: JSON under /v1 (its description is package server's), and RDLM's protocol\n" +
			"at /locks and /resources. What is held is in the store: the server may be killed and started at any moment, and with any\n" +
			"store but a file several may serve the same. Other commands use it by --store http://HOST:PORT.\n\n" +
			"Without a policy, and without certificates of clients to check, whoever reaches the port may take any lease: so it listens on\n" +
			"this machine only, unless --allow-anybody says otherwise. SIGTERM ends it: who waits is told, what is under way is finished.",
		Example: "  leasehold serve &\n" +
			"  curl -X POST http://127.0.0.1:7070/v1/leases/nightly -d '{\"ttl\": \"1m\", \"wait\": \"30s\"}'\n" +
			"  leasehold list --store http://127.0.0.1:7070\n" +
			"  leasehold serve --store etcd://10.0.0.5 --listen :7070 --tls-cert s.crt --tls-key s.key --client-ca ca.crt",
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7070", "address to listen on")
	f.BoolVar(&o.anybody, "allow-anybody", false, "listen beyond this machine though callers need not say who they are")
	f.StringVar(&o.cert, "tls-cert", "", "file with the server's certificate: HTTPS")
	f.StringVar(&o.key, "tls-key", "", "file with its key")
	f.StringVar(&o.clientCA, "client-ca", "", "file with the authorities that sign clients' certificates: every client needs one")
	f.StringVar(&o.policy, "policy", "", "file that says who callers are and what they may do; SIGHUP has it read again")
	f.StringVar(&o.audit, "audit", "", "file to append a line of JSON to for each change that was asked for; - for standard error")
	f.BoolVar(&o.rdlm, "rdlm", true, "speak RDLM's protocol, too")
	f.BoolVar(&o.strict, "rdlm-strict", false, "with RDLM's own faults: 500 for some requests that aren't valid")
	f.StringVar(&o.admin, "admin_userpass_file", "no", "who may use RDLM's /resources: yes for everybody, no, or a file of user:password lines")
	f.DurationVar(&o.drain, "drain", 20*time.Second, "how long requests under way have to end after SIGTERM")
	f.BoolVar(&o.demo, "demo", false, "with a store in memory, and actors that hold, contend, pause and crash: to look at")
	f.BoolVar(&o.check, "healthcheck", false, "ask the server at --listen whether it is ready, and exit with 0 or 1")
	return cmd
}

func (a *app) serve(ctx context.Context, o serveOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.check {
		return o.healthcheck(ctx)
	}
	tlsConfig, err := o.tls()
	if err != nil {
		return usage("%w", err)
	}
	admin, err := rdlm.ParseAdmin(o.admin)
	if err != nil {
		return usage("--%w", err)
	}
	opts := server.Options{Clock: a.clk, Version: readVersion().Version}
	if o.policy != "" {
		p, err := policy.Load(o.policy)
		if err != nil {
			return usage("--%w", err)
		}
		opts.Authenticate = p.Authenticate
		a.hangup.is(func() { a.reload(p) })
	}
	if o.audit != "" {
		log, err := openAudit(a, o.audit)
		if err != nil {
			return err
		}
		defer log.close()
		opts.OnEvent = log.note
	}
	if o.rdlm {
		opts.RDLM = &rdlm.Options{Strict: o.strict, Admin: admin}
	}
	serve := func(st store.Store) error {
		srv, err := server.New(st, opts)
		if err != nil {
			return err
		}
		return errors.Join(a.listen(ctx, o, srv, tlsConfig), srv.Close())
	}
	if o.demo {
		st := a.stage()
		return errors.Join(serve(st), st.Close())
	}
	return a.withStore(ctx, true, serve)
}

func (o serveOptions) validate() error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return usage("--listen %s: want HOST:PORT, or :PORT for all addresses", o.listen)
	}
	switch {
	case o.demo && (o.policy != "" || o.cert != "" || o.anybody):
		return usage("--demo: want no --policy, --tls-cert or --allow-anybody with it: its actors say nothing of who they are, on this machine only")
	case (o.cert == "") != (o.key == ""):
		return usage("--tls-cert and --tls-key: want both, or neither")
	case o.clientCA != "" && o.cert == "":
		return usage("--client-ca needs --tls-cert and --tls-key: clients show certificates over TLS only")
	case o.strict && !o.rdlm:
		return usage("--rdlm-strict and --rdlm=false: want one of them")
	case o.policy != "" && o.cert == "" && !o.anybody && !loopback(host):
		return usage("--listen %s: tokens would travel in the clear: add --tls-cert and --tls-key, or --allow-anybody if a proxy in front does that", o.listen)
	case o.policy != "" || o.clientCA != "" || o.anybody || o.check || loopback(host):
		return nil
	}
	return usage("--listen %s: whoever reaches that address could take any lease: add --policy or --client-ca, or --allow-anybody if the network keeps others out", o.listen)
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// reload reads the policy again, and says what came of it.
func (a *app) reload(p *policy.Policy) {
	err := p.Reload()
	switch {
	case err != nil:
		fmt.Fprintf(a.err, "leasehold: %s; the policy from before stays in force\n", oneLine(err))
	case !a.quiet():
		fmt.Fprintln(a.err, "leasehold: the policy was read again")
	}
}

// tls returns the configuration of TLS; it has no certificate if there is to be none.
func (o serveOptions) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.cert == "" {
		return config, nil
	}
	if _, err := tls.LoadX509KeyPair(o.cert, o.key); err != nil {
		return nil, fmt.Errorf("--tls-cert %s --tls-key %s: %w", o.cert, o.key, err)
	}
	// Read again for each connection, so that a renewed certificate is used without a restart.
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		return &pair, err
	}
	if o.clientCA != "" {
		pem, err := os.ReadFile(o.clientCA)
		if err != nil {
			return nil, fmt.Errorf("--client-ca: %w", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if o.policy != "" {
			config.ClientAuth = tls.VerifyClientCertIfGiven // others may have tokens
		}
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--client-ca %s: no certificate in it: want a PEM file", o.clientCA)
		}
	}
	return config, nil
}

// listen serves until ctx ends, and then for as long as it takes to end what is under way.
func (a *app) listen(ctx context.Context, o serveOptions, srv *server.Server, tlsConfig *tls.Config) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w: name another address", o.listen, err)
	}
	scheme := "http"
	hs := &http.Server{
		Handler: srv, ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit, MaxHeaderBytes: headerBytes, TLSConfig: tlsConfig,
	}
	ended := make(chan error, 1)
	if o.cert == "" {
		go func() { ended <- hs.Serve(l) }()
	} else {
		scheme = "https"
		go func() { ended <- hs.ServeTLS(l, "", "") }()
	}
	what, stop := stores.Redact(a.values.Get("store")), func() {}
	if o.demo {
		what, stop = "a demo", a.play(ctx, "http://"+l.Addr().String())
	}
	defer stop()
	if !a.quiet() {
		fmt.Fprintf(a.err, "leasehold: serving %s on %s://%s\n", what, scheme, l.Addr())
	}
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	err = srv.Close() // those who wait are answered
	end, cancel := clock.WithTimeout(context.WithoutCancel(ctx), a.clk, o.drain)
	defer cancel()
	if hs.Shutdown(end) != nil {
		_ = hs.Close()
	}
	return errors.Join(err, untimely(<-ended), context.Cause(ctx))
}

// untimely is the error of a server that has ended: none if it was asked to.
func untimely(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// healthcheck asks a server on this machine whether it is ready.
func (o serveOptions) healthcheck(ctx context.Context) error {
	host, port, _ := net.SplitHostPort(o.listen) // checked before
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme, transport := "http", &http.Transport{}
	if o.cert != "" {
		// It is this machine's own server: that it answers is the question, not who it is.
		scheme, transport.TLSClientConfig = "https", &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), headerLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return usage("--listen %s: %w", o.listen, err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return &exitError{exitNo, err}
	}
	defer transport.CloseIdleConnections()
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return &exitError{exitNo, fmt.Errorf("%s is not ready: %s", o.listen, resp.Status)}
	}
	return nil
}
