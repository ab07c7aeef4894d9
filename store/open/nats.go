//go:build !lite

package open

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/tlsfiles"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/nats"
)

// The parameters of a NATS URL. What isn't there comes from where the nats command takes it:
// NATS_URL, NATS_USER and the like.
const (
	paramCreds  = "creds"  // a file with a user's JWT and key
	paramNkey   = "nkey"   // a file with a user's key
	paramDomain = "domain" // of JetStream
	paramCreate = "create" // true: make the bucket if there is none
	// always: every server syncs before it acknowledges, the operator vouches for it.
	paramSync = "sync"
)

var natsParams = []string{paramCreds, paramNkey, paramToken, paramTokenFile, paramPasswordFile, paramDomain, paramCreate, paramReplicas, paramSync}

// natsBucket is the bucket of a URL that names none.
const natsBucket = "leasehold"

var _ = register(Scheme{
	Name: "nats", Form: "nats://HOST[:PORT][,HOST[:PORT]…][/BUCKET]", Doc: "a key-value bucket of NATS JetStream",
	parse: func(rest string) (string, error) {
		_, err := parseNATS(rest)
		return rest, err
	},
	open: openNATS,
	port: "4222", called: "NATS", tag: "lite", silent: natsSilent, alike: []string{"jetstream"},
})

// natsSilent reports whether an error says that nobody answers.
func natsSilent(err error) bool {
	return errors.Is(err, natsgo.ErrNoServers) || errors.Is(err, natsgo.ErrTimeout)
}

// natsURL is what a NATS URL says.
type natsURL struct {
	server
	bucket   string
	create   bool
	replicas int
	opts     nats.Options
}

// parseNATS reads a NATS URL. When it names no host, those of NATS_URL are meant.
func parseNATS(rest string) (u natsURL, err error) {
	const port = "4222"
	if u.server, err = parseServerOrNone(rest, port, natsParams...); err != nil {
		return u, err
	}
	u.bucket = cmp.Or(u.path, natsBucket)
	return u, u.readOptions()
}

// readOptions reads what the path and the parameters say of the bucket.
func (u *natsURL) readOptions() (err error) {
	if strings.ContainsFunc(u.bucket, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
	}) {
		return fmt.Errorf("bucket %q: want letters, digits, - and _", u.bucket)
	}
	if u.create, err = u.boolean(paramCreate, false); err != nil {
		return err
	}
	u.replicas = 1
	if text, ok := u.params[paramReplicas]; ok {
		if u.replicas, err = strconv.Atoi(text); err != nil || u.replicas < 1 || u.replicas > 5 {
			return fmt.Errorf("parameter %s=%q: want 1 to 5", paramReplicas, text)
		}
	}
	if text, ok := u.params[paramSync]; ok {
		if u.opts.SyncAlways = text == "always"; !u.opts.SyncAlways {
			return fmt.Errorf("parameter %s=%q: want always, or leave it out", paramSync, text)
		}
	}
	return nil
}

// natsServers returns the addresses, and whether they want TLS. Users in NATS_URL stay in it.
func natsServers(u natsURL) (servers []string, secure bool, err error) {
	for _, host := range u.hosts {
		servers = append(servers, "nats://"+host)
	}
	if len(servers) > 0 {
		return servers, false, nil
	}
	text := os.Getenv("NATS_URL")
	if text == "" {
		return nil, false, errors.New("it names no host: write nats://HOST, or set NATS_URL")
	}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if !strings.Contains(entry, "://") {
			entry = "nats://" + entry
		}
		at, err := url.Parse(entry)
		if err != nil || at.Host == "" {
			return nil, false, errors.New("NATS_URL: want nats://HOST:PORT, or several with commas between them")
		}
		secure = secure || at.Scheme == "tls" || at.Scheme == "wss"
		servers = append(servers, entry)
	}
	return servers, secure, nil
}

// dialNATS connects. The connection never gives up.
func dialNATS(u natsURL, log *slog.Logger) (*natsgo.Conn, error) {
	servers, secure, err := natsServers(u)
	if err != nil {
		return nil, err
	}
	var nkey freshNkey
	opts, err := u.identity(log, &nkey)
	if err != nil {
		return nil, err
	}
	config, err := u.tlsFiles(log, secure, certificates{ca: os.Getenv("NATS_CA"), cert: os.Getenv("NATS_CERT"), key: os.Getenv("NATS_KEY")}, nil)
	if err != nil {
		return nil, err
	}
	if config != nil {
		opts = append(opts, freshTLS(config))
	}
	opts = append(opts,
		natsgo.Name("leasehold"), natsgo.Timeout(5*time.Second), natsgo.MaxReconnects(-1), natsgo.ReconnectWait(time.Second/2),
		natsgo.IgnoreAuthErrorAbort(), // a credential that is refused may be replaced
		natsgo.PingInterval(5*time.Second), natsgo.MaxPingsOutstanding(2),
		// What fails comes back as an error.
		natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}),
	)
	conn, err := natsgo.Connect(strings.Join(servers, ","), opts...)
	if err != nil {
		for i, text := range servers {
			servers[i] = Redact(text)
		}
		return nil, fmt.Errorf("NATS at %s: %w", strings.Join(servers, ","), nats.Explain(err))
	}
	nkey.conn.Store(conn)
	return conn, nil
}

func openNATS(ctx context.Context, rest string, opts Options) (store.Store, error) {
	u, err := parseNATS(rest)
	if err != nil {
		return nil, err
	}
	conn, err := dialNATS(u, opts.log())
	if err != nil {
		return nil, err
	}
	st, err := u.openBucket(ctx, conn, opts)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return natsStore{st, conn}, nil
}

func (u natsURL) openBucket(ctx context.Context, conn *natsgo.Conn, opts Options) (*nats.Store, error) {
	var js jetstream.JetStream
	var err error
	if domain := u.params[paramDomain]; domain != "" {
		js, err = jetstream.NewWithDomain(conn, domain)
	} else {
		js, err = jetstream.New(conn)
	}
	if err != nil {
		return nil, err
	}
	st, err := nats.Open(ctx, js, u.bucket, u.opts)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return st, err
	}
	switch {
	case u.create && opts.MustExist:
		return nil, fmt.Errorf("%w; or have `leasehold run` make it, by this very URL", err)
	case !u.create:
		return nil, fmt.Errorf("%w; or have `leasehold run` make it: add ?%s=true&%s=3 to the URL", err, paramCreate, paramReplicas)
	}
	if err := nats.Create(ctx, js, u.bucket, u.replicas); err != nil {
		return nil, err
	}
	return nats.Open(ctx, js, u.bucket, u.opts)
}

// natsStore closes its connection with it.
type natsStore struct {
	*nats.Store
	conn *natsgo.Conn
}

func (s natsStore) Close() error {
	err := s.Store.Close()
	s.conn.Close()
	return err
}

// identity returns who connects. What the URL says beats the environment, as a whole. What is in
// files is read for each connection.
func (u natsURL) identity(log *slog.Logger, fresh *freshNkey) ([]natsgo.Option, error) {
	user, password := u.user, u.password
	creds, nkey, token, tokenFile := u.params[paramCreds], u.params[paramNkey], u.params[paramToken], u.params[paramTokenFile]
	if user+creds+nkey+token+tokenFile == "" {
		user, password = os.Getenv("NATS_USER"), os.Getenv("NATS_PASSWORD")
		creds, nkey, token = os.Getenv("NATS_CREDS"), os.Getenv("NATS_NKEY"), os.Getenv("NATS_TOKEN")
	}
	passwords, err := u.passwordFile(log)
	if err != nil {
		return nil, err
	}
	if passwords != nil && user == "" {
		return nil, fmt.Errorf("%s: the password of whom? want nats://USER@HOST, or NATS_USER", paramPasswordFile)
	}
	if user != "" && password == "" && passwords == nil { // as the nats command takes it
		user, token = "", cmp.Or(token, user)
	}
	if token != "" && tokenFile != "" {
		return nil, errors.New("token and token_file: want one of them")
	}
	var opts []natsgo.Option
	switch {
	case passwords != nil:
		opts = append(opts, natsgo.UserInfoHandler(func() (string, string) { return user, *passwords.Get() }))
	case user != "":
		opts = append(opts, natsgo.UserInfo(user, password))
	}
	if tokenFile != "" {
		tokens, err := secretFile(log, paramTokenFile, tokenFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, natsgo.TokenHandler(func() string { return *tokens.Get() }))
	} else if token != "" {
		opts = append(opts, natsgo.Token(token))
	}
	if creds != "" {
		if _, err := os.ReadFile(creds); err != nil {
			return nil, fmt.Errorf("%s: %w", paramCreds, err)
		}
		opts = append(opts, natsgo.UserCredentials(creds)) // which reads it for each connection
	}
	if nkey != "" {
		opt, err := natsgo.NkeyOptionFromSeed(nkey)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", paramNkey, nkey, err)
		}
		fresh.file = nkey
		opts = append(opts, opt, natsgo.SetCustomDialer(fresh))
	}
	return opts, nil
}

// freshTLS has each connection begin with the certificates that are in the files then.
func freshTLS(file *tlsfiles.File[tls.Config]) natsgo.Option {
	return func(o *natsgo.Options) error {
		o.Secure, o.TLSConfig = true, file.Get()
		if len(o.TLSConfig.Certificates) > 0 {
			o.TLSCertCB = func() (tls.Certificate, error) { return file.Get().Certificates[0], nil }
		}
		o.RootCAsCB = func() (*x509.CertPool, error) { return file.Get().RootCAs, nil }
		return nil
	}
}

// freshNkey dials for a client whose key is in a file. The client signs by what is in the file
// then, but says whose key it is as the file was when the client was made.
type freshNkey struct {
	file string
	conn atomic.Pointer[natsgo.Conn] // nil for the first connection
}

// Dial implements [natsgo.CustomDialer]. The client's lock is held.
func (n *freshNkey) Dial(network, address string) (net.Conn, error) {
	var now natsgo.Options
	opt, err := natsgo.NkeyOptionFromSeed(n.file)
	if err == nil {
		err = opt(&now)
	}
	if conn := n.conn.Load(); conn != nil && err == nil { // else it continues with the one before
		conn.Opts.Nkey = now.Nkey
	}
	const limit = 5 * time.Second
	return net.DialTimeout(network, address, limit)
}
