//go:build !lite

package open

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/consul"
)

// The parameters of a Consul URL. What isn't there comes from where the consul command takes it:
// CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN and the like.
const (
	paramDatacenter = "dc"
	paramNamespace  = "namespace"
	paramPartition  = "partition"
)

var _ = register(Scheme{
	Name: "consul", Form: "consul://HOST[:PORT][/PREFIX]", Doc: "Consul's key-value store",
	parse: func(rest string) (string, error) {
		_, err := parseConsul(rest)
		return rest, err
	},
	open: openConsul,
	port: "8500", called: "Consul", tag: "lite",
})

// consulURL is what a Consul URL says.
type consulURL struct{ server }

// parseConsul reads a Consul URL. When it names no host, that of CONSUL_HTTP_ADDR is meant.
func parseConsul(rest string) (consulURL, error) {
	const port = "8500"
	var u consulURL
	var err error
	if u.server, err = parseServerOrNone(rest, port, paramDatacenter, paramToken, paramTokenFile, paramNamespace, paramPartition); err != nil {
		return u, err
	}
	if len(u.hosts) > 1 {
		return u, fmt.Errorf("%d hosts: want one agent, which knows the servers", len(u.hosts))
	}
	if u.params[paramToken] != "" && u.params[paramTokenFile] != "" {
		return u, errors.New("token and token_file: want one of them")
	}
	return u, nil
}

// consulEnv is what the environment says about the connection.
type consulEnv struct {
	tls, trust bool // TLS, and any certificate
	files      certificates
}

func readConsulEnv() (consulEnv, error) {
	e := consulEnv{files: certificates{
		ca: os.Getenv(api.HTTPCAFile), cert: os.Getenv(api.HTTPClientCert), key: os.Getenv(api.HTTPClientKey),
		serverName: os.Getenv(api.HTTPTLSServerName),
	}}
	verify := true
	for name, value := range map[string]*bool{api.HTTPSSLEnvName: &e.tls, api.HTTPSSLVerifyEnvName: &verify} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		var err error
		if *value, err = strconv.ParseBool(text); err != nil {
			return e, fmt.Errorf("%s=%q: want true or false", name, text)
		}
	}
	e.trust = !verify
	return e, nil
}

// consulConfig returns how to reach the agent. Its connections are the caller's to close.
func consulConfig(u consulURL, log *slog.Logger) (*api.Config, error) {
	env, err := readConsulEnv()
	if err != nil {
		return nil, err
	}
	cfg := api.DefaultConfig()
	if len(u.hosts) > 0 {
		cfg.Address = u.hosts[0]
	}
	u.identify(cfg)
	// Api would replace the client by one of its own.
	socket, local := strings.CutPrefix(cfg.Address, "unix://")
	if !local {
		socket = ""
	}
	secure := env.tls || env.files != certificates{} || strings.HasPrefix(cfg.Address, "https://")
	tokenFile := cfg.TokenFile
	build := func() (*sender, error) {
		config, err := u.tlsConfig(secure && !local, env.files)
		if err == nil && config != nil {
			err = env.complete(config)
		}
		if err != nil {
			return nil, err
		}
		s := &sender{RoundTripper: consulTransport(config, socket), secure: config != nil}
		if tokenFile != "" {
			s.credential, err = readSecret(paramTokenFile, tokenFile)
		}
		return s, err
	}
	c := u.certificates(env.files)
	file, err := senders(log, present(c.ca, c.cert, c.key, tokenFile), build)
	if err != nil {
		return nil, err
	}
	cfg.Scheme = "http"
	if file.Get().secure {
		cfg.Scheme = "https"
	}
	cfg.HttpClient = &http.Client{
		Transport:     &rotating{file: file, header: "X-Consul-Token", refusal: []int{http.StatusUnauthorized, http.StatusForbidden}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if local {
		cfg.Address = "localhost"
	}
	return cfg, nil
}

// consulTransport returns a transport to the agent, at a socket if one is named.
func consulTransport(config *tls.Config, socket string) *http.Transport {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second, ForceAttemptHTTP2: true, TLSClientConfig: config,
		MaxIdleConns: 2 * consul.DefaultMaxQueries, MaxIdleConnsPerHost: 2 * consul.DefaultMaxQueries, IdleConnTimeout: time.Minute,
	}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	return t
}

// complete adds to a configuration what only Consul's environment says.
func (e consulEnv) complete(config *tls.Config) error {
	config.InsecureSkipVerify = e.trust
	dir := os.Getenv(api.HTTPCAPath)
	if dir == "" || config.RootCAs != nil {
		return nil
	}
	all, err := api.SetupTLSConfig(&api.TLSConfig{CAPath: dir})
	if err != nil {
		return fmt.Errorf("%s=%s: %w", api.HTTPCAPath, dir, err)
	}
	config.RootCAs = all.RootCAs
	return nil
}

// identify sets who asks, and what about. What the URL says beats the environment, which api has
// read.
func (u consulURL) identify(cfg *api.Config) {
	set := func(value *string, param string) {
		if v := u.params[param]; v != "" {
			*value = v
		}
	}
	set(&cfg.Datacenter, paramDatacenter)
	set(&cfg.Namespace, paramNamespace)
	set(&cfg.Partition, paramPartition)
	if u.params[paramToken] != "" || u.params[paramTokenFile] != "" {
		cfg.Token, cfg.TokenFile = u.params[paramToken], u.params[paramTokenFile]
	}
	if u.user != "" {
		cfg.HttpAuth = &api.HttpBasicAuth{Username: u.user, Password: u.password}
	}
}

func openConsul(_ context.Context, rest string, opts Options) (store.Store, error) {
	u, err := parseConsul(rest)
	if err != nil {
		return nil, err
	}
	cfg, err := consulConfig(u, opts.log())
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(cfg)
	if err != nil {
		return nil, err
	}
	st, err := consul.New(client, consul.Options{Prefix: u.path, Namespace: cfg.Namespace, Partition: cfg.Partition})
	if err != nil {
		return nil, err
	}
	return consulStore{st, cfg.HttpClient}, nil
}

// consulStore closes its connections with it.
type consulStore struct {
	*consul.Store
	client *http.Client
}

func (s consulStore) Close() error {
	err := s.Store.Close()
	s.client.CloseIdleConnections()
	return err
}
