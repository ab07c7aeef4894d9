//go:build !local

package open

import (
	"cmp"
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

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/tlsfiles"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/redis"
)

// The parameters of a Redis URL, beside those for age and notify.
const (
	paramPrefix   = "prefix"
	paramSentinel = "sentinel" // name of the primary: the hosts are Sentinels
	// true: the hosts are nodes of a cluster; so are several hosts without sentinel.
	paramCluster     = "cluster"
	paramReplicaWait = "replica_wait" // for the acknowledgements of replicas
)

var redisParams = []string{paramPrefix, paramAge, paramNotify, paramReplicas, paramReplicaWait, paramSentinel, paramCluster, paramPasswordFile}

// The two schemes, as REDIS_URL has them.
const (
	redisName  = "redis"
	redissName = "rediss"
)

var (
	_ = register(schemeOfRedis(redisName, "Redis or Valkey", false, "valkey"))
	_ = register(schemeOfRedis(redissName, "the same with TLS", true))
)

func schemeOfRedis(name, doc string, secure bool, alike ...string) Scheme {
	return Scheme{
		Name: name, Form: name + "://[[USER]:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE]", Doc: doc,
		parse: func(rest string) (string, error) {
			_, err := parseRedis(rest)
			return rest, err
		},
		open: func(_ context.Context, rest string, opts Options) (store.Store, error) {
			return openRedis(rest, secure, opts.log())
		},
		port: "6379", called: "Redis", tag: "local", alike: alike,
	}
}

// redisURL is what a Redis URL says.
type redisURL struct {
	server
	database int
	opts     redis.Options
}

// parseRedis reads a Redis URL. When it names no host, that of REDIS_URL is meant.
func parseRedis(rest string) (u redisURL, err error) {
	const port = "6379"
	if u.server, err = parseServerOrNone(rest, port, redisParams...); err != nil {
		return u, err
	}
	return u, u.readOptions()
}

// readOptions reads what the path and the parameters say.
func (u *redisURL) readOptions() (err error) {
	if u.path != "" {
		if u.database, err = strconv.Atoi(u.path); err != nil || u.database < 0 {
			return fmt.Errorf("path %q: want the number of a database", u.path)
		}
	}
	u.opts.Prefix = u.params[paramPrefix]
	if u.opts.ClockStep, err = u.duration(paramAge, 0); err != nil {
		return err
	}
	if u.opts.ReplicaWait, err = u.duration(paramReplicaWait, 0); err != nil {
		return err
	}
	notify, err := u.boolean(paramNotify, true)
	if err != nil {
		return err
	}
	u.opts.NoNotify = !notify
	if text, ok := u.params[paramReplicas]; ok {
		if u.opts.Replicas, err = strconv.Atoi(text); err != nil || u.opts.Replicas < 0 {
			return fmt.Errorf("parameter %s=%q: want a number", paramReplicas, text)
		}
	}
	cluster, err := u.cluster()
	if cluster && u.database != 0 {
		return fmt.Errorf("database %d: a cluster has only one", u.database)
	}
	return err
}

// cluster reports whether the hosts are a cluster's.
func (u redisURL) cluster() (bool, error) {
	_, sentinel := u.params[paramSentinel]
	yes, err := u.boolean(paramCluster, len(u.hosts) > 1 && !sentinel)
	if err == nil && !yes && !sentinel && len(u.hosts) > 1 {
		err = fmt.Errorf("%d hosts: want one, or %s=NAME, or those of a cluster", len(u.hosts), paramSentinel)
	}
	if err == nil && yes && sentinel {
		err = fmt.Errorf("%s and %s: want one of them", paramSentinel, paramCluster)
	}
	return yes, err
}

// fromEnv adds what REDIS_URL says: the server, and whatever else this URL leaves out.
func (u redisURL) fromEnv() (_ redisURL, secure bool, err error) {
	const form = "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or rediss://"
	scheme, rest, ok := strings.Cut(os.Getenv("REDIS_URL"), ":")
	if !ok || (scheme != redisName && scheme != redissName) {
		return u, false, errors.New("it names no host: write one, or set REDIS_URL to " + form)
	}
	env, err := parseRedis(rest)
	if err == nil && len(env.hosts) == 0 {
		err = errors.New("it names no host")
	}
	if err != nil {
		return u, false, fmt.Errorf("REDIS_URL: want %s: %w", form, err)
	}
	u.user, u.password, u.hosts = env.user, env.password, env.hosts
	u.path = cmp.Or(u.path, env.path)
	for name, value := range env.params {
		if _, ok := u.params[name]; !ok {
			u.params[name] = value
		}
	}
	if err := u.readOptions(); err != nil {
		return u, false, fmt.Errorf("this URL with what REDIS_URL adds: %w", err)
	}
	return u, scheme == redissName, nil
}

// redisTimeouts bound a call whose context has no deadline. Nothing is sent again: the caller knows
// better whether it is in time.
const (
	redisDial = 5 * time.Second
	redisIO   = 5 * time.Second
)

// client returns a client for the hosts, whose connections begin with what is in the files then.
func (u redisURL) client(secure *tlsfiles.File[tls.Config], password *tlsfiles.File[string]) (redis.Client, func() error, error) {
	cluster, err := u.cluster()
	if err != nil {
		return nil, nil, err
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		return goredis.NewDialer(&goredis.Options{DialTimeout: redisDial, TLSConfig: now(secure)})(ctx, network, addr)
	}
	var credentials func() (string, string)
	if password != nil {
		credentials = func() (string, string) { return u.user, *password.Get() }
	}
	opts := &goredis.UniversalOptions{
		Addrs: u.hosts, DB: u.database, Username: u.user, Password: u.password, ClientName: "leasehold", TLSConfig: now(secure), Dialer: dial,
		CredentialsProvider: credentials,
		DialTimeout:         redisDial, ReadTimeout: redisIO, WriteTimeout: redisIO, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
	}
	if name := u.params[paramSentinel]; name != "" {
		opts.MasterName = name
		failover := opts.Failover()
		failover.CredentialsProvider = credentials
		c := goredis.NewFailoverClient(failover)
		return c, c.Close, nil
	}
	if cluster {
		c := goredis.NewClusterClient(opts.Cluster())
		return c, c.Close, nil
	}
	simple := opts.Simple()
	simple.CredentialsProvider = credentials
	c := goredis.NewClient(simple)
	return c, c.Close, nil
}

func openRedis(rest string, secure bool, log *slog.Logger) (store.Store, error) {
	u, err := parseRedis(rest)
	if err != nil {
		return nil, err
	}
	if len(u.hosts) == 0 {
		var also bool
		if u, also, err = u.fromEnv(); err != nil {
			return nil, err
		}
		secure = secure || also
	}
	config, err := u.tlsFiles(log, secure, certificates{}, nil)
	if err != nil {
		return nil, err
	}
	password, err := u.passwordFile(log)
	if err != nil {
		return nil, err
	}
	goredis.SetLogger(noRedisLog{})
	client, end, err := u.client(config, password)
	if err != nil {
		return nil, err
	}
	st, err := redis.New(client, u.opts)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return redisStore{st, end}, nil
}

// redisStore closes its client with it.
type redisStore struct {
	*redis.Store
	end func() error
}

func (s redisStore) Close() error {
	err := s.Store.Close()
	if closeErr := s.end(); !errors.Is(closeErr, goredis.ErrClosed) {
		err = errors.Join(err, closeErr)
	}
	return err
}

// noRedisLog is the log of a client whose errors come back to its caller.
type noRedisLog struct{}

func (noRedisLog) Printf(context.Context, string, ...any) {}
