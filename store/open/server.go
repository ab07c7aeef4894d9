package open

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/durations"
)

// server is the URL of a store behind a server, after the scheme and its colon:
// //[user[:password]@]host[:port][,host[:port]…][/path][?param=value&…]
type server struct {
	user, password string
	// host:port; none when the URL names none, and its scheme may leave that to the environment.
	hosts  []string
	path   string // without the first slash
	params map[string]string
}

// The parameters that every server's URL may have.
const (
	paramTLS = "tls" // true or false
	// A file with the certificates of the authorities that the server's is signed by.
	paramCA         = "cacert"
	paramCert       = "cert"        // a file with the client's certificate
	paramKey        = "key"         // a file with its key
	paramServerName = "server_name" // that the server's certificate has to bear
)

// The parameters that several kinds of servers have.
const (
	paramToken     = "token"
	paramTokenFile = "token_file" // a file with the token, which then is in no list of processes
	paramReplicas  = "replicas"   // of a NATS bucket that is made, 1 otherwise; of Redis
)

var tlsParams = []string{paramTLS, paramCA, paramCert, paramKey, paramServerName}

// parseServer reads what follows the colon of a server's URL. A host without a port gets the one
// given; known are the parameters that it may have. The errors never show a password.
func parseServer(rest, port string, known ...string) (server, error) {
	s, err := parseServerOrNone(rest, port, known...)
	if err == nil && len(s.hosts) == 0 {
		_, err = withPort("", port)
	}
	return s, err
}

// parseServerOrNone is parseServer for a URL that may name no host.
func parseServerOrNone(rest, port string, known ...string) (server, error) {
	authority, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return server{}, errors.New("want // after the colon, and then a host")
	}
	authority, query, _ := strings.Cut(authority, "?")
	authority, path, _ := strings.Cut(authority, "/")
	s := server{params: map[string]string{}}
	var err error
	if s.path, err = url.PathUnescape(path); err != nil {
		return server{}, fmt.Errorf("path %q: %w", path, err)
	}
	at := strings.LastIndex(authority, "@")
	if at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		authority = authority[at+1:]
		var err1, err2 error
		s.user, err1 = url.PathUnescape(user)
		s.password, err2 = url.PathUnescape(password)
		if err1 != nil || err2 != nil {
			return server{}, errors.New("its user or password has a % that is not followed by two hex digits: write a plain % as %25")
		}
	}
	if authority != "" || at >= 0 {
		for host := range strings.SplitSeq(authority, ",") {
			if host, err = withPort(host, port); err != nil {
				return server{}, err
			}
			s.hosts = append(s.hosts, host)
		}
	}
	return s, s.readParams(query, append(slices.Clone(known), tlsParams...))
}

func withPort(host, port string) (string, error) {
	name, given, err := net.SplitHostPort(host)
	if err != nil { // no port
		name, given = strings.Trim(host, "[]"), port
	}
	if n, err := strconv.Atoi(given); name == "" || err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("host %q: want a name or an address, and a port from 1 to 65535", host)
	}
	return net.JoinHostPort(name, given), nil
}

func (s *server) readParams(query string, known []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("what follows the ? can't be read: write parameters as name=value, with & between them")
	}
	for name, v := range values {
		switch {
		case !slices.Contains(known, name):
			slices.Sort(known)
			return fmt.Errorf("unknown parameter %q: known are %s", name, strings.Join(slices.Compact(known), ", "))
		case len(v) > 1:
			return fmt.Errorf("parameter %q is there %d times: want it once", name, len(v))
		}
		s.params[name] = v[0]
	}
	return nil
}

// duration returns a parameter that is one, or otherwise what is given.
func (s server) duration(name string, otherwise time.Duration) (time.Duration, error) {
	v, ok := s.params[name]
	if !ok {
		return otherwise, nil
	}
	d, err := durations.Parse(v)
	if err != nil {
		return 0, fmt.Errorf("parameter %s=%q: %w", name, v, err)
	}
	if d < 0 {
		return 0, fmt.Errorf("parameter %s=%q: want a duration such as 5s", name, v)
	}
	return d, nil
}

// boolean returns a parameter that is true or false, or otherwise what is given.
func (s server) boolean(name string, otherwise bool) (bool, error) {
	v, ok := s.params[name]
	if !ok {
		return otherwise, nil
	}
	if v != "true" && v != "false" {
		return false, fmt.Errorf("parameter %s=%q: want true or false", name, v)
	}
	return v == "true", nil
}

// certificates are files for TLS. Those of a URL beat those of the environment.
type certificates struct {
	ca, cert, key, serverName string
}

// certificates returns the files that the URL names, and those of the environment where it names
// none.
func (s server) certificates(env certificates) certificates {
	pick := func(param, env string) string {
		if v, ok := s.params[param]; ok {
			return v
		}
		return env
	}
	return certificates{
		ca: pick(paramCA, env.ca), cert: pick(paramCert, env.cert), key: pick(paramKey, env.key),
		serverName: pick(paramServerName, env.serverName),
	}
}

// tlsConfig returns the configuration that the URL and the environment ask for, or nil when they
// ask for none. on is whether TLS is the rule; env are the files that the environment names, ""
// where it names none.
func (s server) tlsConfig(on bool, env certificates) (*tls.Config, error) {
	c := s.certificates(env)
	on, err := s.boolean(paramTLS, on || c != certificates{})
	if err != nil || !on {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.serverName}
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", paramCA, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s=%s: no certificate in it: want a PEM file", paramCA, c.ca)
		}
	}
	if (c.cert == "") != (c.key == "") {
		return nil, fmt.Errorf("%s=%q and %s=%q: a client's certificate needs both", paramCert, c.cert, paramKey, c.key)
	}
	if c.cert != "" {
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, fmt.Errorf("%s=%s and %s=%s: %w", paramCert, c.cert, paramKey, c.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// secretParams are parameters whose values are not shown.
var secretParams = []string{"password", "token", "secret", "auth"}

// Redact returns a URL with its secrets made unreadable, for people to see.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	if misspelt(rest) != nil { // what is the password, and what isn't, can't be told
		i, at := strings.Index(rest, ":"), strings.LastIndex(rest, "@")
		rest = rest[:i] + ":xxxxx" + rest[at:]
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	authority, path, hasPath := strings.Cut(rest, "/")
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		if user, _, ok := strings.Cut(authority[:i], ":"); ok {
			authority = user + ":xxxxx" + authority[i:]
		}
	}
	text = scheme + "://" + authority
	if hasPath {
		text += "/" + path
	}
	if !hasQuery {
		return text
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, _, ok := strings.Cut(p, "="); ok && slices.ContainsFunc(secretParams, func(s string) bool { return strings.Contains(strings.ToLower(name), s) }) {
			params[i] = name + "=xxxxx"
		}
	}
	return text + "?" + strings.Join(params, "&")
}
