package open

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// withoutConsul takes what the machine's own environment says about Consul out of a test.
func withoutConsul(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"CONSUL_HTTP_ADDR", "CONSUL_HTTP_TOKEN", "CONSUL_HTTP_TOKEN_FILE", "CONSUL_HTTP_AUTH", "CONSUL_HTTP_SSL", "CONSUL_HTTP_SSL_VERIFY",
		"CONSUL_CACERT", "CONSUL_CAPATH", "CONSUL_CLIENT_CERT", "CONSUL_CLIENT_KEY", "CONSUL_TLS_SERVER_NAME", "CONSUL_NAMESPACE", "CONSUL_PARTITION",
	} {
		t.Setenv(name, "")
	}
}

func TestConsulURLAndEnvironment(t *testing.T) {
	type want struct{ address, scheme, token, namespace, dc, user string }
	for _, c := range []struct {
		rest string
		env  map[string]string
		want want
	}{
		{"//", nil, want{address: "localhost:8500", scheme: "http"}},
		{"//h", nil, want{address: "h:8500", scheme: "http"}},
		{"//ada:pw@h:1/team?dc=eu&namespace=n&token=t", nil, want{"h:1", "http", "t", "n", "eu", "ada"}},
		{"///team", map[string]string{"CONSUL_HTTP_ADDR": "c:7", "CONSUL_HTTP_TOKEN": "e", "CONSUL_NAMESPACE": "m", "CONSUL_HTTP_AUTH": "eve:x"}, want{"c:7", "http", "e", "m", "", "eve"}},
		{"//h?token=t", map[string]string{"CONSUL_HTTP_ADDR": "c:7", "CONSUL_HTTP_TOKEN": "e"}, want{address: "h:8500", scheme: "http", token: "t"}},
		{"//h", map[string]string{"CONSUL_HTTP_SSL": "true"}, want{address: "h:8500", scheme: "https"}},
		{"//h?tls=false", map[string]string{"CONSUL_HTTP_SSL": "true"}, want{address: "h:8500", scheme: "http"}},
		{"//?dc=eu", map[string]string{"CONSUL_HTTP_ADDR": "https://c:7"}, want{address: "https://c:7", scheme: "https", dc: "eu"}},
		{"//", map[string]string{"CONSUL_HTTP_ADDR": "unix:///run/consul.sock"}, want{address: "localhost", scheme: "http"}},
	} {
		t.Run(c.rest, func(t *testing.T) {
			withoutConsul(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			u, err := parseConsul(c.rest)
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := consulConfig(u, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			got := want{cfg.Address, cfg.Scheme, cfg.Token, cfg.Namespace, cfg.Datacenter, ""}
			if cfg.HttpAuth != nil {
				got.user = cfg.HttpAuth.Username
			}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if secure := cfg.HttpClient.Transport.(*rotating).file.Get().RoundTripper.(*http.Transport).TLSClientConfig != nil; secure != (cfg.Scheme == "https") {
				t.Errorf("TLS: %v, scheme %s", secure, cfg.Scheme)
			}
		})
	}
}

func TestConsulURLErrors(t *testing.T) {
	withoutConsul(t)
	for url, want := range map[string]string{
		"consul:h":                              "want // after the colon",
		"consul://a,b":                          "want one agent",
		"consul://h?tokn=secret":                `unknown parameter "tokn": known are cacert, cert, dc, key, namespace, partition, server_name, tls, token, token_file`,
		"consul://h?token=secret&bad=1":         `unknown parameter "bad"`,
		"consul://h?token=secret&token_file=/x": "want one of them",
	} {
		if _, err := Parse(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(strings.Replace(err.Error(), "tokn=secret", "", 1), "secret") {
			t.Errorf("%s: %v, want one that says %q", url, err, want)
		}
	}
	for url, c := range map[string]struct{ name, value, want string }{
		"consul://h":                  {"CONSUL_HTTP_SSL", "maybe", `CONSUL_HTTP_SSL="maybe": want true or false`},
		"consul://h/a":                {"CONSUL_HTTP_SSL_VERIFY", "2", `CONSUL_HTTP_SSL_VERIFY="2"`},
		"consul://h/b":                {"CONSUL_CACERT", "/none.pem", "cacert: open /none.pem"},
		"consul://h/c":                {"CONSUL_CLIENT_CERT", "/none.pem", "needs both"},
		"consul://h?token_file=/none": {"CONSUL_HTTP_TOKEN", "x", "/none"},
		"consul://h//a":               {"CONSUL_HTTP_TOKEN", "x", `prefix "/a"`},
	} {
		t.Run(url, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			u, err := Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := u.Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want one that says %q", err, c.want)
			}
		})
	}
}

// TestConsulForReal opens a store with TLS and a token, once by the URL and once by the environment.
func TestConsulForReal(t *testing.T) {
	const token = "8e1a2f5c-6c1f-4c53-9d2e-0123456789ab"
	withoutConsul(t)
	srv := servers.Consul(t, servers.MutualTLS(), servers.Password(token))
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	certs := "&cacert=" + srv.Extra["ca"] + "&cert=" + srv.Extra["cert"] + "&key=" + srv.Extra["key"]
	var version string
	for _, url := range []string{
		"consul://" + srv.Addr + "/team/leases?token=" + token + certs,
		"consul://" + srv.Addr + "/team/leases?token_file=" + file + certs,
		"consul:///team/leases",
	} {
		if strings.HasPrefix(url, "consul:///") {
			for name, value := range srv.Env {
				t.Setenv(name, value)
			}
		}
		st := openURL(t, url)
		rec, err := st.Get(t.Context(), "k")
		if errors.Is(err, store.ErrNotFound) && version == "" {
			rec, err = st.Put(t.Context(), store.Record{Key: "k"})
			version = rec.Version
		}
		if err != nil || rec.Version != version {
			t.Errorf("version %q, %v; want %q", rec.Version, err, version)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	withoutConsul(t)
	for url, want := range map[string]string{
		"consul://" + srv.Addr + "?token=wrong" + certs: "consul doesn't know the token",
		"consul://" + srv.Addr + "?" + certs[1:]:        `give it a policy with key_prefix "leasehold/"`,
		"consul://" + srv.Addr + "?tls=true":            "CONSUL_CACERT",
		"consul://" + srv.Addr:                          "ask it by https",
		"consul://127.0.0.1:1":                          "is an agent running there",
	} {
		st := openURL(t, url)
		if _, err := st.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong") {
			t.Errorf("%s: %v, want one that says %q", url, err, want)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// openURL opens the store at a URL. The caller closes it.
func openURL(t testing.TB, url string) store.Store {
	t.Helper()
	u, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	st, err := u.Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func init() {
	certified["consul"] = certificatesOf{start: servers.Consul, form: "consul://%s?cacert=%s&cert=%s&key=%s", clear: withoutConsul}
}

// TestFinding_L5_TokensOfConsul: the token that the file had is deleted.
func TestFinding_L5_TokensOfConsul(t *testing.T) {
	const manager = "8e1a2f5c-6c1f-4c53-9d2e-0123456789ab"
	withoutConsul(t)
	srv := servers.Consul(t, servers.Password(manager))
	admin := asAdmin{t, http.DefaultClient, "X-Consul-Token", manager}
	defer http.DefaultClient.CloseIdleConnections()
	type token struct{ AccessorID, SecretID string }
	var before, after token
	for _, made := range []*token{&before, &after} {
		admin.must("PUT", srv.URL+"/v1/acl/token", map[string]any{"Policies": []any{map[string]any{"Name": "global-management"}}}, made)
	}
	file := secretIn(t, before.SecretID)
	rotation{url: "consul://" + srv.Addr + "?token_file=" + file, files: map[string]string{file: after.SecretID}, revoke: func() {
		admin.must("DELETE", srv.URL+"/v1/acl/token/"+before.AccessorID, nil, nil)
	}}.under(t)
}
