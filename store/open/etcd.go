//go:build !local

package open

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/tlsfiles"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
)

var _ = register(Scheme{
	Name: "etcd", Form: "etcd://HOST[:PORT][,HOST[:PORT]…][/PREFIX]", Doc: "etcd",
	parse: func(rest string) (string, error) {
		_, err := parseServerOrNone(rest, etcdPort, paramPasswordFile)
		return rest, err
	},
	open: openEtcd,
	port: etcdPort, called: "etcd", tag: "local", alike: []string{"etcd3"},
})

const etcdPort = "2379"

// etcdConfig returns how to reach the servers. What the URL says beats the environment, whose
// variables are those of etcdctl.
func etcdConfig(u server, log *slog.Logger) (clientv3.Config, error) {
	// A connection that dies in silence is given up after the sum of the keep-alives; servers
	// refuse more frequent ones.
	cfg := clientv3.Config{
		Endpoints: u.hosts, Username: u.user, Password: u.password,
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		// silent: what fails comes back as an error.
		Logger: clientv3.NewCtxClient(context.Background()).GetLogger(),
	}
	secure := false
	if len(cfg.Endpoints) == 0 {
		endpoints := os.Getenv("ETCDCTL_ENDPOINTS")
		if endpoints == "" {
			return cfg, errors.New("it names no host: write etcd://HOST, or set ETCDCTL_ENDPOINTS")
		}
		var err error
		if cfg.Endpoints, secure, err = etcdEndpoints(endpoints); err != nil {
			return cfg, fmt.Errorf("ETCDCTL_ENDPOINTS: %w", err)
		}
	}
	if cfg.Username == "" {
		user, password, ok := strings.Cut(os.Getenv("ETCDCTL_USER"), ":")
		if !ok {
			password = os.Getenv("ETCDCTL_PASSWORD")
		}
		cfg.Username, cfg.Password = user, password
	} else if cfg.Password == "" {
		cfg.Password = os.Getenv("ETCDCTL_PASSWORD")
	}
	password, err := u.passwordFile(log)
	if err != nil {
		return cfg, err
	}
	if password != nil {
		cfg.Password = *password.Get()
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(logsInBy(password)))
	}
	if cfg.Username != "" && cfg.Password == "" {
		return cfg, fmt.Errorf("user %q has no password: write etcd://USER:PASSWORD@HOST, or set ETCDCTL_PASSWORD, or add ?%s=FILE", cfg.Username, paramPasswordFile)
	}
	files := certificates{ca: os.Getenv("ETCDCTL_CACERT"), cert: os.Getenv("ETCDCTL_CERT"), key: os.Getenv("ETCDCTL_KEY")}
	secured, err := u.tlsFiles(log, secure, files, trustAnyEtcd)
	if err != nil || secured == nil {
		return cfg, err
	}
	cfg.TLS = secured.Get()
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithTransportCredentials(freshCredentials{credentials.NewTLS(cfg.TLS), secured}))
	if cfg.TLS.ServerName != "" { // it would check the host's own name otherwise
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithAuthority(cfg.TLS.ServerName))
	}
	return cfg, nil
}

// trustAnyEtcd has a connection do without the server's certificate if the environment says so.
func trustAnyEtcd(config *tls.Config) (err error) {
	if text := os.Getenv("ETCDCTL_INSECURE_SKIP_TLS_VERIFY"); text != "" {
		if config.InsecureSkipVerify, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("ETCDCTL_INSECURE_SKIP_TLS_VERIFY=%q: want true or false", text)
		}
	}
	return nil
}

// freshCredentials are those of a TLS client whose files may be replaced: each connection begins
// with what is in them then.
type freshCredentials struct {
	credentials.TransportCredentials // of the files when the store was opened
	file                             *tlsfiles.File[tls.Config]
}

// ClientHandshake implements [credentials.TransportCredentials].
func (c freshCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(c.file.Get()).ClientHandshake(ctx, authority, conn)
}

// Clone implements [credentials.TransportCredentials].
func (c freshCredentials) Clone() credentials.TransportCredentials {
	return freshCredentials{c.TransportCredentials.Clone(), c.file}
}

// logsInBy has the client log in with the password that is in the file then. It logs in again when
// the server has forgotten its token, as it does when the password is changed.
func logsInBy(password *tlsfiles.File[string]) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if login, ok := req.(*etcdserverpb.AuthenticateRequest); ok {
			login.Password = *password.Get()
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}

// etcdEndpoints reads addresses as etcdctl does: HOST:PORT, or a URL of scheme http or https. It
// reports whether they want TLS.
func etcdEndpoints(text string) (hosts []string, secure bool, err error) {
	for i, endpoint := range strings.Split(text, ",") {
		scheme, host, ok := strings.Cut(strings.TrimSpace(endpoint), "://")
		if !ok {
			scheme, host = "http", scheme
		}
		if scheme != "http" && scheme != "https" {
			return nil, false, fmt.Errorf("%q: want http or https before the host", endpoint)
		}
		if i > 0 && secure != (scheme == "https") {
			return nil, false, errors.New("http and https: want one of them for all")
		}
		secure = scheme == "https"
		if host, err = withPort(strings.TrimSuffix(host, "/"), etcdPort); err != nil {
			return nil, false, err
		}
		hosts = append(hosts, host)
	}
	return hosts, secure, nil
}

// etcdLimit bounds the first look at the servers.
const etcdLimit = 5 * time.Second

func openEtcd(ctx context.Context, rest string, opts Options) (store.Store, error) {
	u, err := parseServerOrNone(rest, etcdPort, paramPasswordFile)
	if err != nil {
		return nil, err
	}
	cfg, err := etcdConfig(u, opts.log())
	if err != nil {
		return nil, err
	}
	where := func(err error) error {
		return fmt.Errorf("etcd at %s: %w", strings.Join(cfg.Endpoints, ","), etcd.Explain(handshake(ctx, cfg, err)))
	}
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, where(err)
	}
	prefix := u.path
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	st, err := etcd.New(client, etcd.Options{Prefix: prefix})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s := etcdStore{st, client}
	limited, cancel := clock.WithTimeout(ctx, clock.System(), etcdLimit)
	defer cancel()
	first := st.Ping
	// Else the client's connections go elsewhere.
	if os.Getenv("HTTPS_PROXY") == "" && os.Getenv("https_proxy") == "" {
		first = func(ctx context.Context) error { return unlessRefused(ctx, cfg.Endpoints, st.Ping) }
	}
	if err := first(limited); err != nil {
		return nil, errors.Join(where(err), s.Close())
	}
	return s, nil
}

// handshake returns why a TLS connection to the first server fails, if it does, or else err. The
// client is often told only that the connection broke: a server says what it thinks of a client's
// certificate after the handshake.
func handshake(ctx context.Context, cfg clientv3.Config, err error) error {
	if cfg.TLS == nil || ctx.Err() != nil {
		return err
	}
	const limit = 2 * time.Second
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), limit)
	defer cancel()
	config := cfg.TLS.Clone()
	config.NextProtos = []string{"h2"}
	conn, dialErr := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", cfg.Endpoints[0])
	var alert *net.OpError
	if errors.As(dialErr, &alert) && alert.Op == "dial" {
		return err
	}
	if dialErr != nil {
		return fmt.Errorf("authentication handshake failed: %w", dialErr)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, readErr := conn.Read(make([]byte, 1)); errors.As(readErr, &alert) && alert.Op == "remote error" {
		return readErr
	}
	return err
}

// etcdStore closes its client with it.
type etcdStore struct {
	*etcd.Store
	client *clientv3.Client
}

func (s etcdStore) Close() error {
	err := s.Store.Close()
	// As it says of a client that was closed.
	if closeErr := s.client.Close(); !errors.Is(closeErr, context.Canceled) {
		err = errors.Join(err, closeErr)
	}
	return err
}
