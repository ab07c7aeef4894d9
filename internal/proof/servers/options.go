package servers

import "maps"

// Option changes how a server is set up.
type Option func(*config)

// config is what the options say. Its zero value is a server without TLS, passwords or replicas.
type config struct {
	shared   bool
	tls      bool
	mutual   bool
	password string
	primary  *Server
	settings map[string]string
}

func configure(opts []Option) config {
	c := config{settings: map[string]string{}}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// own reports whether the configuration asks for anything that a server which somebody else set up
// may not have.
func (c *config) own() bool {
	return c.tls || c.password != "" || c.primary != nil || len(c.settings) > 0
}

// TLS has the server speak TLS only, with a certificate of a CA made for the purpose: Extra["ca"]
// is the file to trust, Extra["cert"] and Extra["key"] are those of a client. It works for etcd,
// Consul, PostgreSQL, Redis and NATS; Kubernetes always speaks TLS.
func TLS() Option { return func(c *config) { c.tls = true } }

// MutualTLS is [TLS], and the server refuses clients without a certificate of that CA.
func MutualTLS() Option { return func(c *config) { c.tls, c.mutual = true, true } }

// Password has the server ask for a password; the user is Extra["user"], and Extra["password"] the
// password. It works for PostgreSQL (user postgres, by SCRAM), Redis (user default), NATS (user
// leasehold) and Consul (the initial management token).
func Password(password string) Option { return func(c *config) { c.password = password } }

// ReplicaOf has the server follow another of the same kind. It works for PostgreSQL and Redis. The
// primary must have the same password.
func ReplicaOf(primary *Server) Option { return func(c *config) { c.primary = primary } }

// Set changes one setting, in the server's own words: of postgresql.conf, redis.conf, zoo.cfg, the
// NATS configuration or Consul's JSON configuration (the value is then a piece of JSON), or a flag
// of etcd, kube-apiserver or dynalite without its dashes. DynamoDB Local has none.
func Set(name, value string) Option {
	return func(c *config) {
		c.settings = maps.Clone(c.settings)
		c.settings[name] = value
	}
}

// Shared takes the server that all tests of this program with the same other options share, and
// starts it if it is the first. It can't be killed, paused or restarted. The test program needs a
// TestMain with [Main].
func Shared() Option { return func(c *config) { c.shared = true } }
