package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var consul = register(&engine{
	name: "consul", title: "Consul", ports: 4, options: "tls password settings",
	find:  installed("consul", "consul"),
	plan:  planConsul,
	ready: consulReady,
	adopt: func(s *Server, text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" || u.Host == "" {
			return errors.New("want http://HOST:PORT")
		}
		s.Addr = u.Host
		s.URL = "http://" + s.Addr
		s.Env["CONSUL_HTTP_ADDR"] = s.URL
		return nil
	},
	store:  func(s *Server) Store { return Store{URL: "consul://" + s.Addr + "/leasehold"} },
	page:   Page{Scheme: "consul://", Address: regexp.MustCompile(`consul://[0-9.:]+`), Tools: map[string]string{"consul": "consul"}},
	client: consulClient{},
})

// Consul starts a Consul server that is its own cluster. With [Password], requests without a token
// are refused.
func Consul(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, consul, opts) }

func planConsul(_ context.Context, s *Server, program string) (command, error) {
	ports := map[string]int{
		"http": s.ports[0].number, "https": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
		"server": s.ports[1].number, "serf_lan": s.ports[2].number, "serf_wan": -1,
	}
	settings := map[string]any{
		"server": true, "bootstrap_expect": 1, "node_name": "leasehold", "data_dir": s.Dir + "/data",
		"bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "ports": ports, "log_level": "warn",
		"disable_update_check": true, "leave_on_terminate": false,
		"performance": map[string]any{"raft_multiplier": 1},
		// Sessions of half a second, so that no test of theirs takes long.
		"session_ttl_min": "500ms",
		// 200 by default, which 64 callers of api.Lock are above now and then.
		"limits": map[string]any{"http_max_conns_per_client": 1000},
	}
	s.URL = "http://" + s.Addr
	if s.config.tls {
		s.URL = "https://" + s.Addr
		ports["http"], ports["https"] = -1, s.ports[0].number
		settings["tls"] = map[string]any{
			"defaults": map[string]any{"ca_file": s.Extra["ca"], "cert_file": s.Extra["server-cert"], "key_file": s.Extra["server-key"]},
			"https":    map[string]any{"verify_incoming": s.config.mutual},
		}
		s.Env["CONSUL_CACERT"], s.Env["CONSUL_CLIENT_CERT"], s.Env["CONSUL_CLIENT_KEY"] = s.Extra["ca"], s.Extra["cert"], s.Extra["key"]
	}
	if p := s.config.password; p != "" {
		settings["acl"] = map[string]any{
			"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": p, "agent": p},
		}
		s.Extra["password"], s.Env["CONSUL_HTTP_TOKEN"] = p, p
	}
	s.Env["CONSUL_HTTP_ADDR"] = s.URL
	for name, value := range s.config.settings {
		if !json.Valid([]byte(value)) {
			return command{}, fmt.Errorf("the value of %s is no JSON: %s", name, value)
		}
		settings[name] = json.RawMessage(value)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return command{}, err
	}
	file := filepath.Join(s.Dir, "consul.json")
	return command{args: []string{program, "agent", "-config-file=" + file}}, os.WriteFile(file, text, 0o600)
}

// consulReady wants a leader that answers consistent reads, and the node's own health check, which
// sessions need.
func consulReady(ctx context.Context, s *Server) error {
	token := []string{"X-Consul-Token", s.Extra["password"]}
	status, text, err := s.get(ctx, s.URL+"/v1/kv/leasehold-ready?consistent", token...)
	if err := wants(404, "")(status, text, err); err != nil {
		return err
	}
	return wants(200, `"passing"`)(s.get(ctx, s.URL+"/v1/health/state/passing?consistent", token...))
}

// consulClient is the plainest client.
type consulClient struct{}

func (consulClient) put(ctx context.Context, s *Server, value string) error {
	return wants(200, "true")(s.ask(ctx, "PUT", s.URL+"/v1/kv/key", value, "X-Consul-Token", s.Extra["password"]))
}

func (consulClient) get(ctx context.Context, s *Server) (string, error) {
	status, text, err := s.get(ctx, s.URL+"/v1/kv/key?raw&consistent", "X-Consul-Token", s.Extra["password"])
	return text, wants(200, "")(status, text, err)
}
