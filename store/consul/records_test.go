package consul

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestRowsOfOthersAreLeftAlone: a key that Leasehold didn't write is an error that names it, and nobody overwrites it.
func TestRowsOfOthersAreLeftAlone(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	good := storetest.MustPut(t, s, held("good"))
	rows := map[string]string{
		"empty": "", "text": "hello", "cut off": `{"v":1,"owner":"x`, "newer": `{"v":9}`, "no token": `{"v":1,"owner":"x","ttl":"5s"}`,
	}
	for key, data := range rows {
		pair := &api.KVPair{Key: s.prefix + encode(key), Value: []byte(data)}
		if _, err := s.client.KV().Put(pair, nil); err != nil {
			t.Fatal(err)
		}
		_, getErr := s.Get(t.Context(), key)
		_, createErr := s.Put(t.Context(), held(key))
		at := held(key)
		at.Version = "1"
		_, putErr := s.Put(t.Context(), at)
		_, waitErr := s.Wait(t.Context(), key, "")
		for call, err := range map[string]error{
			"Get": getErr, "Put of a new record": createErr, "Put": putErr, "Delete": s.Delete(t.Context(), key, at.Version), "Wait": waitErr,
		} {
			if !errors.Is(err, store.ErrCorrupt) || isUnknown(err) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s of %q: %v, want ErrCorrupt with the key", call, key, err)
			}
		}
		if got, _, err := s.client.KV().Get(pair.Key, nil); err != nil || string(got.Value) != data {
			t.Errorf("%q became %+v, %v", data, got, err)
		}
	}
	for _, name := range []string{s.prefix + "=zz", s.prefix} { // no key of ours, and the folder as Consul's page makes it
		if _, err := s.client.KV().Put(&api.KVPair{Key: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	met, corrupt := 0, 0
	for rec, err := range s.List(t.Context(), "") {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			corrupt++
		case err != nil:
			t.Fatal(err)
		case rec.Version == good.Version:
			met++
		}
	}
	if met != 1 || corrupt != len(rows)+1 {
		t.Errorf("List yielded the good record %d times and %d corrupt ones, want 1 and %d", met, corrupt, len(rows)+1)
	}
}

// TestTheSameContentIsANewVersion though Consul keeps the index of what it is told to replace by its like.
func TestTheSameContentIsANewVersion(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	rec := storetest.MustPut(t, s, held("k"))
	seen := []string{rec.Version}
	for range 5 {
		rec = storetest.MustPut(t, s, rec)
		if slices.Contains(seen, rec.Version) {
			t.Fatalf("version %q came again after %q", rec.Version, seen)
		}
		seen = append(seen, rec.Version)
	}
}

// TestRequests: how many requests each operation takes.
func TestRequests(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	var rec, stale store.Record
	read := "GET /v1/kv/" + s.prefix + "k consistent"
	for _, c := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"create", func() (err error) { rec, err = s.Put(t.Context(), held("k")); return err }, []string{"PUT /v1/txn"}},
		{"put", func() (err error) { stale = rec; rec, err = s.Put(t.Context(), rec); return err }, []string{"PUT /v1/txn"}},
		{"conflict", func() error {
			if _, err := s.Put(t.Context(), stale); !errors.Is(err, store.ErrConflict) {
				return errors.Join(err, errors.New("want a conflict"))
			}
			return nil
		}, []string{"PUT /v1/txn", read}},
		{"get", func() error { _, err := s.Get(t.Context(), "k"); return err }, []string{read}},
		{"list", func() error {
			for _, err := range s.List(t.Context(), "") {
				if err != nil {
					return err
				}
			}
			return nil
		}, []string{"GET /v1/kv/" + s.prefix + " consistent"}},
		{"delete", func() error { return s.Delete(t.Context(), "k", rec.Version) }, []string{"PUT /v1/txn"}},
	} {
		sent := r.during(func() {
			if err := c.do(); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		})
		if !slices.Equal(sent, c.want) {
			t.Errorf("%s sent %q, want %q", c.what, sent, c.want)
		}
	}
}

// token makes a token that may do what the rules say.
func token(t *testing.T, admin *api.Client, rules string) string {
	t.Helper()
	name := strings.ToLower(rand.Text())
	policy, _, err := admin.ACL().PolicyCreate(&api.ACLPolicy{Name: name, Rules: rules}, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := admin.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made.SecretID
}

// TestPermissions: a token that may not do something is told what to give it, and one with the documented policy can do all.
func TestPermissions(t *testing.T) {
	for _, lists := range []string{"true", "false"} {
		t.Run("enable_key_list_policy "+lists, func(t *testing.T) { permissions(t, lists) })
	}
}

func permissions(t *testing.T, lists string) {
	const root = "8e1a2f5c-6c1f-4c53-9d2e-0123456789ab"
	srv := servers.Consul(t, servers.Password(root), servers.Set("acl", `{"enabled": true, "default_policy": "deny",
		"enable_key_list_policy": `+lists+`, "tokens": {"initial_management": "`+root+`", "agent": "`+root+`"}}`))
	admin, err := api.NewClient(&api.Config{Address: srv.Addr, Token: root})
	if err != nil {
		t.Fatal(err)
	}
	full, _ := open(t, api.Config{Address: srv.Addr, Token: token(t, admin, `key_prefix "leasehold/" { policy = "write" }`)}, Options{})
	rec := storetest.MustPut(t, full, held("team/k"))
	for _, c := range []struct {
		name, token string
		reads       bool
		want        string
	}{
		{"no token", "", false, `give it a policy with key_prefix "leasehold/"`},
		{"a token for others' keys", token(t, admin, `key_prefix "other/" { policy = "write" }`), false, `give it a policy with key_prefix "leasehold/"`},
		{"a token for reading", token(t, admin, `key_prefix "leasehold/" { policy = "list" }`), true, `give it a policy with key_prefix "leasehold/"`},
		{"an unknown token", "11111111-2222-3333-4444-555555555555", false, "doesn't know the token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := open(t, api.Config{Address: srv.Addr, Token: c.token}, Options{})
			_, getErr := s.Get(t.Context(), rec.Key)
			_, waitErr := s.Wait(t.Context(), rec.Key, "1")
			var listErr error
			met := 0
			for _, err := range s.List(t.Context(), "") {
				listErr = err
				met++
			}
			_, putErr := s.Put(t.Context(), rec)
			_, createErr := s.Put(t.Context(), held("new"))
			reads := map[string]error{"Get": getErr, "Wait": waitErr, "List": listErr}
			writes := map[string]error{"Put": putErr, "Put of a new key": createErr, "Delete": s.Delete(t.Context(), rec.Key, rec.Version)}
			for call, err := range reads {
				if c.reads && (err != nil || met != 1) {
					t.Errorf("%s: %v, %d records", call, err, met)
				}
				if !c.reads && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: %v, want %q", call, err, c.want)
				}
			}
			for call, err := range writes {
				if err == nil || isUnknown(err) || !strings.Contains(err.Error(), c.want) || (c.token != "" && strings.Contains(err.Error(), c.token)) {
					t.Errorf("%s: %v, want %q", call, err, c.want)
				}
			}
			if f := findings(s.Inspect(t.Context()))["permissions"]; f.Status != driver.StatusFail || !strings.Contains(f.Advice, `key_prefix "leasehold/"`) {
				t.Errorf("Inspect: %+v", f)
			}
		})
	}
	// A Wait that is under way ends when its token is deleted, as soon as it has to ask again.
	network := servers.Proxy(t, srv.Addr)
	secret := token(t, admin, `key_prefix "leasehold/" { policy = "read" }`)
	s, _ := open(t, api.Config{Address: network.Addr, Token: secret}, Options{})
	w := waiting(t, s, rec)
	own, _, err := s.client.ACL().TokenReadSelf(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ACL().TokenDelete(own.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	network.Reset()
	select {
	case err := <-w:
		if err == nil || !strings.Contains(err.Error(), "doesn't know the token") || strings.Contains(err.Error(), secret) {
			t.Errorf("Wait: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("Wait went on without a right to")
	}

	f := findings(full.Inspect(t.Context()))
	if f["permissions"].Status != driver.StatusOK || f["token"].Status != driver.StatusOK || !strings.Contains(f["agent"].Advice, "agent_prefix") {
		t.Errorf("Inspect with the documented policy: %+v", f)
	}
	if err := full.Delete(t.Context(), rec.Key, rec.Version); err != nil {
		t.Error(err)
	}
}

// TestTLS: what is wrong with the connection is told, and what to do about it.
func TestTLS(t *testing.T) {
	plain := servers.Consul(t, servers.Shared())
	srv := servers.Consul(t, servers.MutualTLS())
	certs := api.TLSConfig{CAFile: srv.Extra["ca"], CertFile: srv.Extra["cert"], KeyFile: srv.Extra["key"]}
	for _, c := range []struct {
		name, scheme, addr string
		tls                api.TLSConfig
		want               string
	}{
		{"right", "https", srv.Addr, certs, ""},
		{"unknown authority", "https", srv.Addr, api.TLSConfig{CertFile: certs.CertFile, KeyFile: certs.KeyFile}, "CONSUL_CACERT"},
		{"other name", "https", srv.Addr, api.TLSConfig{Address: "consul.example", CAFile: certs.CAFile, CertFile: certs.CertFile, KeyFile: certs.KeyFile}, "CONSUL_TLS_SERVER_NAME"},
		{"no certificate of ours", "https", srv.Addr, api.TLSConfig{CAFile: certs.CAFile}, "CONSUL_CLIENT_CERT"},
		{"http to https", "http", srv.Addr, api.TLSConfig{}, "speaks TLS"},
		{"https to http", "https", plain.Addr, certs, "without TLS"},
		{"nobody there", "http", "127.0.0.1:1", api.TLSConfig{}, "is an agent running there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := open(t, api.Config{Address: c.addr, Scheme: c.scheme, TLSConfig: c.tls}, Options{})
			if c.want == "" {
				_, getErr := s.Get(t.Context(), "k")
				_, putErr := s.Put(t.Context(), held("k"))
				if !errors.Is(getErr, store.ErrNotFound) || putErr != nil {
					t.Errorf("Get: %v; Put: %v", getErr, putErr)
				}
				return
			}
			// Of a missing certificate TLS 1.3 tells the client after the handshake, when the connection may be reset already.
			storetest.Eventually(t, func() error {
				_, getErr := s.Get(t.Context(), "k")
				_, putErr := s.Put(t.Context(), held("k"))
				f := s.Inspect(t.Context())
				if len(f) != 1 || f[0].Status != driver.StatusFail {
					return fmt.Errorf("Inspect: %+v", f)
				}
				for call, err := range map[string]error{"Get": getErr, "Put": putErr, "Inspect": errors.New(f[0].Detail)} {
					if err == nil || !strings.Contains(err.Error(), c.want) {
						return fmt.Errorf("%s: %w, want %q", call, err, c.want)
					}
				}
				return nil
			})
		})
	}
}

func TestInspect(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	f := findings(s.Inspect(t.Context()))
	if f["permissions"].Status != driver.StatusOK || !strings.Contains(f["agent"].Detail, "version 1.") {
		t.Errorf("%+v", f)
	}
	if f["servers"].Status != driver.StatusWarn || !strings.Contains(f["servers"].Detail, "1, led by") {
		t.Errorf("a single server: %+v", f["servers"])
	}
	if f["token"].Status != driver.StatusWarn || !strings.Contains(f["token"].Advice, "deny") {
		t.Errorf("no ACLs: %+v", f["token"])
	}
	for rec, err := range s.List(t.Context(), "") {
		t.Errorf("left behind: %+v, %v", rec, err)
	}
}

func findings(all []driver.Finding) map[string]driver.Finding {
	by := map[string]driver.Finding{}
	for _, f := range all {
		by[f.What] = f
	}
	return by
}
