package servers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var etcd = register(&engine{
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
	store:  func(s *Server) Store { return Store{URL: "etcd://" + s.Addr + "/leasehold"} },
	page:   Page{Scheme: "etcd://", Address: regexp.MustCompile(`etcd://[0-9.:,]+`), Tools: map[string]string{"etcdctl": "etcdctl"}},
	client: etcdClient{},
})

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

// etcdClient is the plainest client.
type etcdClient struct{}

func (etcdClient) put(ctx context.Context, s *Server, value string) error {
	body := fmt.Sprintf(`{"key":"a2V5","value":%q}`, base64.StdEncoding.EncodeToString([]byte(value)))
	return wants(200, "revision")(s.ask(ctx, "POST", s.URL+"/v3/kv/put", body))
}

func (etcdClient) get(ctx context.Context, s *Server) (string, error) {
	_, text, err := s.ask(ctx, "POST", s.URL+"/v3/kv/range", `{"key":"a2V5"}`)
	var answer struct{ Kvs []struct{ Value []byte } }
	if err := errors.Join(err, json.Unmarshal([]byte(text), &answer)); err != nil || len(answer.Kvs) != 1 {
		return "", fmt.Errorf("%q: %w", text, err)
	}
	return string(answer.Kvs[0].Value), nil
}

// EtcdCluster starts an etcd of several members, each of which can be killed, paused and restarted
// by itself. Of the options it knows [Set] only.
func EtcdCluster(t testing.TB, members int, opts ...Option) []*Server {
	t.Helper()
	all, err := LaunchEtcdCluster(t.Context(), t.TempDir(), members, opts...)
	for _, s := range all {
		s.belongTo(t)
	}
	if err != nil {
		fail(t, etcd, err)
	}
	return all
}

// LaunchEtcdCluster is [EtcdCluster] with its data below dir, as [Launch] starts servers. The
// caller stops its members, also those that it returns with an error.
func LaunchEtcdCluster(ctx context.Context, dir string, members int, opts ...Option) (all []*Server, err error) {
	c := configure(opts)
	if c.tls || c.shared {
		return nil, errors.New("a cluster of etcd has no option for TLS or sharing")
	}
	if err := etcd.check(c); err != nil {
		return nil, err
	}
	program, err := etcd.find()
	if err != nil {
		return nil, etcd.missing(err)
	}
	var cluster []string
	for i := range members {
		name := fmt.Sprintf("member-%d", i)
		s := &Server{
			Engine: etcd.name, engine: etcd, config: c, Dir: filepath.Join(dir, name),
			Env: map[string]string{}, Extra: map[string]string{},
		}
		all = append(all, s)
		if err := s.prepare(); err != nil {
			return all, err
		}
		cluster = append(cluster, name+"=http://"+s.ports[1].addr())
	}
	for i, s := range all {
		name, peer, _ := strings.Cut(cluster[i], "=")
		s.command = s.etcdMember(program, name, peer, strings.Join(cluster, ","))
		if err := s.run(); err != nil {
			return all, err
		}
	}
	for _, s := range all {
		if err := s.serves(ctx); err != nil {
			return all, fmt.Errorf("etcd: %w", err)
		}
	}
	return all, nil
}
