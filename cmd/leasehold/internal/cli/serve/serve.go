package serve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/accept"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/policy"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/systemd"
	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// Options are the flags of serve.
type Options struct {
	Listen   string
	Anybody  bool // listen beyond this machine though nobody has to say who it is
	Cert     string
	Key      string
	ClientCA string
	Policy   string
	Audit    string
	Admin    string
	Check    bool
	Demo     bool

	journal     string
	journalKeep time.Duration
	journalRows int

	rdlm      bool
	strict    bool
	rdlmAdmin string

	idPools layoutPools
	proxies []string // networks of trusted proxies

	storeTimeout        time.Duration
	maxTTL, maxWait     time.Duration
	maxWaiting          int // of one caller, and so are:
	maxNames, maxBytes  int
	maxSessions         int
	maxSessionTTL       time.Duration
	maxRate             float64
	connections, client int // connections, of all and of one client; 0 for the defaults
	Drain, DrainDelay   time.Duration
}

// The bounds that a client meets before its request is read. What a request may take after that
// depends on what it waits for.
const (
	HeaderLimit = 10 * time.Second
	IdleLimit   = 2 * time.Minute
	StallLimit  = 30 * time.Second
	HeaderBytes = 16 << 10
)

func (a *app) serveCommand() *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve leases over HTTP, to scripts and programs in any language",
		Long: "Serve the leases of the store that is set over HTTP: JSON under /v1 (its description is package server's), and RDLM's protocol\n" +
			"at /locks and /resources. What is held is in the store: the server may be killed and started at any moment, and with any\n" +
			"store but a file several may serve the same. Other commands use it by --store http://HOST:PORT.\n\n" +
			"Without a policy, and without certificates of clients to check, everybody who reaches the port may take any lease: so it listens on\n" +
			"this machine only, unless --allow-anybody says otherwise.\n\n" +
			"SIGTERM ends it: waiters get an error, running requests finish, leases stay held. SIGHUP has it read the policy and the\n" +
			"certificates again, and open the audit log again; what is wrong is reported, and what was read before stays in force. Under a\n" +
			"service manager it says how it fares by sd_notify: `leasehold init systemd` writes a unit.",
		Example: "  leasehold serve &\n" +
			"  curl -X POST http://127.0.0.1:7070/v1/leases/nightly -d '{\"ttl\": \"1m\", \"wait\": \"30s\"}'\n" +
			"  leasehold list --store http://127.0.0.1:7070\n" +
			"  leasehold serve --store etcd://10.0.0.5 --listen :7070 --tls-cert s.crt --tls-key s.key --client-ca ca.crt",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	Flags(cmd.Flags(), &o)
	a.Flag(cmd.Flags(), "keys")
	return cmd
}

// Flags adds the flags of serve, with their defaults.
func Flags(f *pflag.FlagSet, o *Options) {
	f.StringVar(&o.Listen, "listen", "127.0.0.1:7070", "address to listen on")
	f.BoolVar(&o.Anybody, "allow-anybody", false, "listen beyond this machine, and answer to any name, though callers need not say who they are")
	f.StringVar(&o.Admin, "admin", "", "address to serve /healthz, /readyz and /metrics on, too, to everybody and without TLS (default: none)")
	f.StringVar(&o.Cert, "tls-cert", "", "file with the server's certificate: HTTPS; it is read again when it changes")
	f.StringVar(&o.Key, "tls-key", "", "file with its key")
	f.StringVar(&o.ClientCA, "client-ca", "", "file with the authorities that sign clients' certificates: every client needs one")
	f.StringVar(&o.Policy, "policy", "", "file that says who callers are, by token, certificate, JWT of an OpenID Connect issuer or Kubernetes service account, and what they may do; SIGHUP has it read again")
	f.StringVar(&o.Audit, "audit", "", "file to append a line of JSON to for each change that was asked for; - for standard error")
	journalFlags(f, o)
	f.BoolVar(&o.rdlm, "rdlm", true, "speak RDLM's protocol, too")
	f.BoolVar(&o.strict, "rdlm-strict", false, "with RDLM's own faults: 500 for some requests that aren't valid")
	f.StringVar(&o.rdlmAdmin, "admin_userpass_file", "no", "who may use RDLM's /resources: yes for everybody, no, or a file of user:password lines")
	f.Var(&o.idPools, "id-pool", "LAYOUT=POOL: where the server's own number in ids of LAYOUT, a name or a specification, comes from (default ids-LAYOUT); may be repeated")
	f.StringSliceVar(&o.proxies, "trusted-proxies", nil, "ADDRESS or NETWORK/BITS of proxies in front, whose X-Forwarded-For says who the client is; may be repeated")
	cli.DurationVar(f, &o.Drain, "drain", 20*time.Second, "how long requests under way have to end after SIGTERM")
	cli.DurationVar(f, &o.DrainDelay, "drain-delay", 0, "how long to go on serving after SIGTERM, while /readyz says 503, before that")
	cli.DurationVar(f, &o.storeTimeout, "store-timeout", server.DefaultStoreTimeout, "within which time the store has to answer: else a request is answered with 503, or 504 if a write may have been done")
	cli.DurationVar(f, &o.maxTTL, "max-ttl", store.MaxTTL, "the longest TTL that a request may ask for")
	cli.DurationVar(f, &o.maxWait, "max-wait", server.DefaultMaxWait, "the longest wait that a request may ask for")
	f.IntVar(&o.maxWaiting, "max-waiting", server.DefaultMaxWaiting, "how many requests of one caller, or of one address if callers aren't known, may wait or watch")
	f.IntVar(&o.maxNames, "max-names", server.DefaultMaxNames, "how many names one caller may hold or ask for by this server")
	f.IntVar(&o.maxSessions, "max-sessions", server.DefaultMaxSessions, "how many sessions one caller may have by this server")
	f.IntVar(&o.maxBytes, "max-bytes", server.DefaultMaxBytes, "how many bytes the records of those may have")
	cli.DurationVar(f, &o.maxSessionTTL, "max-session-ttl", server.DefaultMaxSessionTTL, "the longest TTL of a session")
	f.Float64Var(&o.maxRate, "max-rate", 0, "how many requests a second of one caller are served, with a burst of twice as many; 0 for any number")
	f.IntVar(&o.connections, "max-connections", 0, "how many connections there may be (default: what the limit of open files leaves)")
	f.IntVar(&o.client, "max-connections-per-client", 0, "how many of them from one address (default: nine in ten)")
	f.BoolVar(&o.Demo, "demo", false, "with a store in memory, and actors that hold, contend, pause and crash: to look at")
	f.BoolVar(&o.Check, "healthcheck", false, "ask the server at --listen, or --admin, whether it is ready, and exit with 0 or 1")
}

func (a *app) serve(ctx context.Context, o Options) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Check {
		return o.healthcheck(ctx)
	}
	s := &lockServer{a: a, o: o, log: a.LogTo(a.Err)}
	if s.manager, err = systemd.FromEnv(); err != nil {
		return cli.Usage("%w", err)
	}
	if s.tls, err = o.TLS(s.log); err != nil {
		return err
	}
	if err := s.complete(); err != nil {
		return err
	}
	if s.policy != nil {
		defer s.policy.Close()
	}
	if s.audit != nil {
		defer s.audit.close()
	}
	defer s.closeJournal()
	if s.reloads() || s.manager != nil {
		a.Hangup.Is(s.reload)
	}
	if o.Demo {
		st := a.stage()
		return errors.Join(s.run(ctx, st), st.Close())
	}
	return a.WithStoreAgain(ctx, a.Say, func(st store.Store) error { return s.run(ctx, st) })
}

// complete settles what the server is told.
func (s *lockServer) complete() (err error) {
	o := s.o
	s.opts = server.Options{
		Clock: s.a.Clock, Version: cli.ReadBuild().Version, StoreTimeout: o.storeTimeout, MaxTTL: o.maxTTL, MaxWait: o.maxWait, MaxWaiting: o.maxWaiting, IDPools: o.idPools,
		MaxNames: o.maxNames, MaxSessions: o.maxSessions, MaxBytes: o.maxBytes, MaxSessionTTL: o.maxSessionTTL, MaxRate: o.maxRate,
		LocalNames: !o.known() && !o.Anybody,
	}
	if s.opts.TrustedProxies, err = networks(o.proxies); err != nil {
		return err
	}
	if s.opts.Keys, err = s.a.Keys(); err != nil {
		return err
	}
	if o.Policy != "" {
		if s.policy, err = policy.Load(o.Policy); err != nil {
			return cli.Usage("--%w", err)
		}
		s.policy.Wall, s.policy.OnReload = s.a.Clock.Wall, func(err error) {
			if err != nil {
				s.log.Error("the policy has changed, and what was read before stays in force: " + cli.OneLine(err))
				return
			}
			s.log.Info("the policy has changed, and was read again")
		}
		s.opts.Authenticate, s.opts.Logins = s.policy.Authenticate, s.policy.Logins
	}
	if o.Audit != "" {
		if s.audit, err = openAudit(s.a, o.Audit); err != nil {
			return err
		}
		s.opts.OnEvent = s.audit.note
	}
	s.openJournal()
	admin, err := rdlm.ParseAdmin(o.rdlmAdmin)
	if err != nil {
		return cli.Usage("--%w", err)
	}
	if o.rdlm {
		s.opts.RDLM = &rdlm.Options{Strict: o.strict, Admin: admin}
	}
	return nil
}

// Validate says which flag is wrong, or doesn't fit the others.
func (o Options) Validate() error {
	host, err := cli.HostOf("listen", o.Listen)
	if err != nil {
		return err
	}
	if o.Admin != "" {
		if _, err := cli.HostOf("admin", o.Admin); err != nil {
			return err
		}
	}
	switch {
	case o.Demo && (o.Policy != "" || o.Cert != "" || o.Anybody):
		return cli.Usage("--demo: want no --policy, --tls-cert or --allow-anybody with it: its actors say nothing of who they are, on this machine only")
	case (o.Cert == "") != (o.Key == ""):
		return cli.Usage("--tls-cert and --tls-key: want both, or neither")
	case o.ClientCA != "" && o.Cert == "":
		return cli.Usage("--client-ca needs --tls-cert and --tls-key: clients show certificates over TLS only")
	case o.strict && !o.rdlm:
		return cli.Usage("--rdlm-strict and --rdlm=false: want one of them")
	case o.Check && o.ClientCA != "" && o.Policy == "" && o.Admin == "":
		return cli.Usage("--healthcheck and --client-ca: a server that wants everybody's certificate can't be asked without one: give both of them --admin")
	}
	if err := errors.Join(o.validateReach(host), o.validateJournal()); err != nil {
		return err
	}
	return o.validateLimits()
}

// validateReach sees that nobody beyond this machine is served who need not say who they are,
// unless that was asked for.
func (o Options) validateReach(host string) error {
	switch {
	case loopback(host) || o.Anybody:
	case o.Policy != "" && o.Cert == "":
		return cli.Usage("--listen %s: tokens would travel in the clear: add --tls-cert and --tls-key, or --allow-anybody if a proxy in front does that", o.Listen)
	case !o.known() && !o.Check:
		return cli.Usage("--listen %s: everybody who reaches that address could take any lease: add --policy or --client-ca, or --allow-anybody if the network keeps others out", o.Listen)
	}
	return nil
}

// validateLimits says which limit is none.
func (o Options) validateLimits() error {
	for _, d := range []struct {
		flag        string
		value       time.Duration
		least, most time.Duration
	}{
		{"store-timeout", o.storeTimeout, 10 * time.Millisecond, time.Hour}, {"max-ttl", o.maxTTL, store.MinTTL, store.MaxTTL}, {"max-wait", o.maxWait, time.Millisecond, store.MaxTTL},
		{"max-session-ttl", o.maxSessionTTL, store.MinTTL, store.MaxTTL},
		{"drain", o.Drain, 0, store.MaxTTL}, {"drain-delay", o.DrainDelay, 0, store.MaxTTL},
	} {
		if d.value < d.least || d.value > d.most {
			return cli.Usage("--%s %v: want %v to %v", d.flag, d.value, d.least, d.most)
		}
	}
	switch {
	case o.maxWaiting < 1:
		return cli.Usage("--max-waiting %d: want a number above 0", o.maxWaiting)
	case o.maxNames < 1 || o.maxSessions < 1 || o.maxBytes < 1:
		return cli.Usage("--max-names %d, --max-sessions %d, --max-bytes %d: want numbers above 0", o.maxNames, o.maxSessions, o.maxBytes)
	case !(o.maxRate >= 0):
		return cli.Usage("--max-rate %v: want a number of requests a second, or 0 for any number", o.maxRate)
	case o.connections < 0:
		return cli.Usage("--max-connections %d: want a number above 0, or 0 for what the limit of open files leaves", o.connections)
	case o.client < 0:
		return cli.Usage("--max-connections-per-client %d: want a number above 0, or 0 for nine in ten of all", o.client)
	}
	return nil
}

// spare is how many files are for other things than connections.
const spare = 256

// limits are those of connections. Without one of its own no client takes the last tenth: others,
// and an operator, get in.
func (o Options) limits() accept.Options {
	most := o.connections
	if files := accept.Files(); most == 0 && files > 0 {
		most = max(files-spare, files/2)
	}
	client := o.client
	if client == 0 {
		client = most - most/10
	}
	return accept.Options{Clock: clock.System(), Most: most, PerClient: client, Stall: StallLimit}
}

// known reports whether callers have to say who they are.
func (o Options) known() bool { return o.Policy != "" || o.ClientCA != "" }

// networks reads what --trusted-proxies says.
func networks(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if addr, bad := netip.ParseAddr(text); bad == nil {
			network, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, cli.Usage("--trusted-proxies %s: want an address, or a network such as 10.0.0.0/8", text)
		}
		all = append(all, network)
	}
	return all, nil
}

// loopback reports whether only this machine reaches a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
