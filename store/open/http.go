package open

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/store"
)

// envServerToken has the token for a lock server, if the URL doesn't say.
const envServerToken = "LEASEHOLD_SERVER_TOKEN"

// httpPort is where a lock server listens by default.
const httpPort = "7070"

// lockServers are the schemes of a lock server, which is no engine.
func lockServers() []Scheme {
	scheme := func(name, doc, port string) Scheme {
		return Scheme{
			Name: name, Form: name + "://HOST[:7070][/PATH]", Doc: doc, port: port,
			parse: func(rest string) (string, error) {
				_, err := parseHTTP(rest)
				return rest, err
			},
			open: func(ctx context.Context, rest string, opts Options) (store.Store, error) {
				return openHTTP(ctx, name, rest, opts)
			},
		}
	}
	return []Scheme{scheme("http", "a lock server: leasehold serve", httpPort), scheme("https", "a lock server, with TLS", "")}
}

// parseHTTP reads the URL of a lock server.
func parseHTTP(rest string) (server, error) {
	s, err := parseServer(rest, httpPort, paramToken, paramTokenFile)
	switch {
	case err != nil:
		return s, err
	case len(s.hosts) > 1:
		return s, fmt.Errorf("%d hosts: want one server, or what balances between several", len(s.hosts))
	case s.user != "" || s.password != "":
		return s, errors.New("a lock server takes a token instead of a user and a password: write it into a file and add ?token_file=FILE")
	case s.params[paramToken] != "" && s.params[paramTokenFile] != "":
		return s, errors.New("token and token_file: want one of them")
	case s.params[paramTLS] != "":
		return s, errors.New("tls: write http:// or https:// instead")
	}
	return s, nil
}

func openHTTP(ctx context.Context, scheme, rest string, opts Options) (store.Store, error) {
	s, err := parseHTTP(rest)
	if err != nil {
		return nil, err
	}
	token := os.Getenv(envServerToken)
	if t := s.params[paramToken]; t != "" {
		token = t
	}
	tokenFile, secure := s.params[paramTokenFile], scheme == "https"
	if config, err := s.tlsConfig(secure, certificates{}); err == nil && config != nil && !secure {
		return nil, errors.New("cacert, cert, key and server_name need https://")
	}
	c := s.certificates(certificates{})
	file, err := senders(opts.log(), present(c.ca, c.cert, c.key, tokenFile), func() (*sender, error) {
		config, err := s.tlsConfig(secure, certificates{})
		if err != nil {
			return nil, err
		}
		now := &sender{RoundTripper: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 100, ForceAttemptHTTP2: true}}
		if tokenFile != "" {
			if token, err = readSecret(paramTokenFile, tokenFile); err != nil {
				return nil, err
			}
			now.credential = "Bearer " + token
		}
		return now, nil
	})
	if err != nil {
		return nil, err
	}
	base := url.URL{Scheme: scheme, Host: s.hosts[0], Path: strings.TrimSuffix("/"+s.path, "/")}
	transport := &rotating{file: file, header: "Authorization", refusal: []int{http.StatusUnauthorized}}
	st, err := client.Open(ctx, base.String(), client.Options{HTTP: &http.Client{Transport: transport}, Token: token})
	if err != nil {
		return nil, notThere(s.hosts[0], err)
	}
	return st, nil
}
