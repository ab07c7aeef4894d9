package gate

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/serve"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/systemd"
	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/internal/tlsfiles"
	"github.com/leasehold/leasehold/store"
)

// gateOptions are the flags of gate that are not settings.
type gateOptions struct {
	listen   string
	admin    string
	upstream string
	server   serve.Options // its certificate, and that of clients

	upstreamCA, upstreamCert, upstreamKey, upstreamName string

	reads, writes []string
	kubernetes    bool
	minLeft       time.Duration
	drain         time.Duration
	stall         time.Duration
}

func (a *app) gateCommand() *cobra.Command {
	var o gateOptions
	cmd := &cobra.Command{
		Use:   "gate NAME --upstream URL [flags]",
		Short: "Stand in front of a program: pass reads always, and writes while this instance holds NAME",
		Long: "Be a reverse proxy for a program that knows nothing of leases, and a candidate for NAME. Reads pass always. Writes pass while\n" +
			"this instance holds NAME, with --min-left of its term left, and carry the header Leasehold-Sequencer; otherwise they get 503\n" +
			"and JSON that says who holds it. Writes in flight are cut before the term ends: those may have been done all the same.\n\n" +
			"GET, HEAD, OPTIONS and TRACE without a body are reads; everything else writes, and so do upgrades, as to WebSocket. --read and\n" +
			"--write name exceptions, as 'POST /search/**'; --kubernetes knows those of a Kubernetes API server.\n\n" +
			"SIGTERM closes it: writes under way have --drain to end, then NAME is released, then the program ends. SIGHUP does nothing.\n" +
			"--admin serves /healthz, /active and /standby (200 or 503), /state (JSON) and /metrics. Nobody must reach the program but\n" +
			"through the gate: have it listen on this machine only. With --keys the sequencer is signed.",
		Example: "  leasehold gate billing --listen :8080 --upstream http://127.0.0.1:9090\n" +
			"  leasehold gate billing --listen :8443 --tls-cert s.crt --tls-key s.key --upstream h2c://127.0.0.1:50051 --read 'POST /shop.Catalog/Get*'\n" +
			"  leasehold gate cluster --kubernetes --listen :6443 --tls-cert s.crt --tls-key s.key --upstream https://127.0.0.1:16443 --upstream-ca ca.crt",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.gate(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to listen on")
	f.StringVar(&o.upstream, "upstream", "", "where the program listens: http://, https://, or h2c:// for HTTP/2 without TLS")
	f.StringVar(&o.admin, "admin", "", "address to serve the gate's own state on (default: none)")
	f.StringVar(&o.server.Cert, "tls-cert", "", "file with the gate's certificate: HTTPS; it is read again when it changes")
	f.StringVar(&o.server.Key, "tls-key", "", "file with its key")
	f.StringVar(&o.server.ClientCA, "client-ca", "", "file with the authorities that sign clients' certificates: every client needs one")
	f.StringVar(&o.upstreamCA, "upstream-ca", "", "file with the authorities that sign the program's certificate; it is read again when it changes (default: the system's)")
	f.StringVar(&o.upstreamCert, "upstream-cert", "", "file with the gate's certificate for the program; it is read again when it changes")
	f.StringVar(&o.upstreamKey, "upstream-key", "", "file with its key")
	f.StringVar(&o.upstreamName, "upstream-name", "", "name that the program's certificate has to bear (default: the host of --upstream)")
	f.StringArrayVar(&o.reads, "read", nil, "'METHOD /path' of requests that change nothing though their method may; may be repeated")
	f.StringArrayVar(&o.writes, "write", nil, "'METHOD /path' of requests that change something though their method doesn't say so; may be repeated")
	f.BoolVar(&o.kubernetes, "kubernetes", false, "the program is a Kubernetes API server: know its requests, and answer as it does")
	cli.DurationVar(f, &o.minLeft, "min-left", time.Second, "how much of the term has to be left when a write is forwarded")
	cli.DurationVar(f, &o.drain, "drain", 5*time.Second, "how long writes under way have to end when the gate closes, as far as the term lasts")
	cli.DurationVar(f, &o.stall, "stall", time.Minute, "how long a client may neither send nor read in the middle of a request")
	for _, name := range []string{"ttl", "as", "keys"} {
		a.Flag(f, name)
	}
	return cmd
}

// gateKeeper is one call of gate.
type gateKeeper struct {
	a      *app
	name   string
	o      gateOptions
	opts   gate.Options
	server *tlsfiles.File[tls.Config]
	timing supervise.Timing
	words  *hold.Words
	known  holderOf

	manager *systemd.Manager // nil for none
}

func (a *app) gate(ctx context.Context, name string, o gateOptions) error {
	k := &gateKeeper{a: a, name: name, o: o}
	if err := k.check(); err != nil {
		return err
	}
	var err error
	if k.manager, err = systemd.FromEnv(); err != nil {
		return cli.Usage("%w", err)
	}
	// A reader of standard error that goes away must not end this program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	k.words = hold.NewWords(a.App, name)
	defer k.words.Close()
	return a.WithStoreAgain(ctx, k.words.Say, func(st store.Store) error { return k.run(ctx, st) })
}

// check looks for all that is wrong before anything is started.
func (k *gateKeeper) check() (err error) {
	if err := cli.HeldName(k.name); err != nil {
		return err
	}
	o := k.o
	if o.upstream == "" {
		return cli.Usage("--upstream is missing: the URL of the program, as http://127.0.0.1:9090")
	}
	upstream, err := url.Parse(o.upstream)
	if err != nil {
		return cli.Usage("--upstream: %w", err)
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"min-left", o.minLeft}, {"drain", o.drain}, {"stall", o.stall}} {
		if d.value <= 0 {
			return cli.Usage("--%s %v: want a duration above 0", d.flag, d.value)
		}
	}
	if err := o.front().Validate(); err != nil {
		return err
	}
	log := k.a.LogTo(k.a.Err)
	if k.server, err = o.server.TLS(log); err != nil {
		return err
	}
	k.opts = gate.Options{
		Upstream: upstream, Name: k.name, Reads: o.reads, Writes: o.writes,
		MinLeft: o.minLeft, Drain: o.drain, Stall: o.stall, Holder: k.known.get, Clock: k.a.Clock,
	}
	if o.kubernetes {
		k.opts.Preset = gate.Kubernetes
	}
	if k.opts.Keys, err = k.a.Keys(); err != nil {
		return err
	}
	if k.opts.TLS, err = o.upstreamTLS(log, upstream.Hostname()); err != nil {
		return err
	}
	g, err := gate.New(k.opts)
	if err != nil {
		return cli.Usage("%w", err)
	}
	g.Close()
	return k.checkTiming()
}

// checkTiming sees that the TTL has room for writes.
func (k *gateKeeper) checkTiming() (err error) {
	if k.timing, err = k.a.Timing(); err != nil {
		return err
	}
	left := k.timing.Validity() - k.timing.Renew()
	if k.o.minLeft > left*3/4 {
		return cli.Usage("--min-left %v: with a TTL of %v a term has %v left when it is renewed, and that may come late: want at most %v, or a longer --ttl",
			k.o.minLeft, k.timing.TTL, left, left*3/4)
	}
	return nil
}

// front is what the gate's own side has in common with a server of leases.
func (o gateOptions) front() serve.Options {
	front := o.server
	// The defaults of what a gate has no flags for.
	serve.Flags(pflag.NewFlagSet("", pflag.ContinueOnError), &front)
	front.Listen, front.Admin, front.Anybody = o.listen, o.admin, true
	front.Cert, front.Key, front.ClientCA = o.server.Cert, o.server.Key, o.server.ClientCA
	return front
}

// upstreamTLS returns the configuration of TLS towards the program on host.
func (o gateOptions) upstreamTLS(log *slog.Logger, host string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.upstreamName}
	if o.upstreamCA != "" {
		if err := tlsfiles.Trust(log, config, o.upstreamCA, cmp.Or(o.upstreamName, host)); err != nil {
			return nil, cli.Usage("--upstream-ca: %w", err)
		}
	}
	if (o.upstreamCert == "") != (o.upstreamKey == "") {
		return nil, cli.Usage("--upstream-cert and --upstream-key: want both, or neither")
	}
	if o.upstreamCert == "" {
		return config, nil
	}
	pair, err := tlsfiles.Pair(log, o.upstreamCert, o.upstreamKey)
	if err != nil {
		return nil, cli.Usage("--upstream-cert %s --upstream-key %s: %w", o.upstreamCert, o.upstreamKey, err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.Get(), nil }
	return config, nil
}
