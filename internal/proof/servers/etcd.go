package servers

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

var etcd = &engine{
	name: "etcd", title: "etcd", ports: 2, options: "tls settings",
	find: installed("etcd", "etcd"),
	plan: func(_ context.Context, s *Server, program string) (command, error) {
		peer := "http://" + s.ports[1].addr()
		return s.etcdMember(program, "member", peer, "member="+peer), nil
	},
	ready: func(ctx context.Context, s *Server) error {
		return wants(200, `"health":"true"`)(s.get(ctx, s.URL+"/health"))
	},
	adopt: func(s *Server, url string) error {
		scheme, addr, ok := strings.Cut(url, "://")
		if !ok || (scheme != "http" && scheme != "etcd") {
			return fmt.Errorf("want http://HOST:PORT")
		}
		s.Addr = strings.TrimRight(addr, "/")
		s.URL = "http://" + s.Addr
		s.Env["ETCDCTL_ENDPOINTS"] = s.URL
		return nil
	},
}

// Etcd starts etcd. Its URL is the client endpoint.
func Etcd(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, etcd, opts) }

// etcdMember is the command of a member of a cluster, which is told the peers' URLs of all.
func (s *Server) etcdMember(program, name, peer, cluster string) command {
	scheme := "http"
	flags := map[string]string{
		"name": name, "data-dir": s.Dir + "/data", "log-level": "warn", "logger": "zap", "log-outputs": "stderr",
		"listen-peer-urls": peer, "initial-advertise-peer-urls": peer, "initial-cluster": cluster,
	}
	if s.config.tls {
		scheme = "https"
		flags["cert-file"], flags["key-file"] = s.Extra["server-cert"], s.Extra["server-key"]
		s.Env["ETCDCTL_CACERT"], s.Env["ETCDCTL_CERT"], s.Env["ETCDCTL_KEY"] = s.Extra["ca"], s.Extra["cert"], s.Extra["key"]
	}
	if s.config.mutual {
		flags["client-cert-auth"], flags["trusted-ca-file"] = "true", s.Extra["ca"]
	}
	s.URL = scheme + "://" + s.Addr
	s.Env["ETCDCTL_ENDPOINTS"] = s.URL
	flags["listen-client-urls"], flags["advertise-client-urls"] = s.URL, s.URL
	return command{args: append([]string{program}, s.config.flags(flags)...)}
}
