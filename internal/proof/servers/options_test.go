package servers

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
)

// TestTLS also reaches each server without what it asks for.
func TestTLS(t *testing.T) {
	for _, k := range engines {
		if !strings.Contains(k.options, "tls") || k.secure {
			continue
		}
		for _, mutual := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/mutual=%t", k.name, mutual), func(t *testing.T) {
				t.Parallel()
				option := TLS()
				if mutual {
					option = MutualTLS()
				}
				s := k.start(t, option)
				roundTrip(t, s, k.client)
				if s.TLSConfig() == nil {
					t.Error("no configuration for clients")
				}
				plain := *s
				plain.Extra, plain.URL = map[string]string{"bin": s.Extra["bin"]}, strings.Replace(s.URL, "https:", "http:", 1)
				plain.Env = without(s.Env, "PGSSLMODE", "disable")
				if err := k.client.put(t.Context(), &plain, "plain"); err == nil {
					t.Error("it answered a client without TLS")
				}
				anonymous := *s
				anonymous.Extra = without(without(s.Extra, "cert", ""), "key", "")
				anonymous.Env = without(without(s.Env, "PGSSLCERT", "/none"), "PGSSLKEY", "/none")
				if err := k.client.put(t.Context(), &anonymous, "anonymous"); (err != nil) != mutual {
					t.Errorf("a client without a certificate got %v", err)
				}
			})
		}
	}
}

// without is a copy of m with another value.
func without(m map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for n, v := range m {
		if n != name {
			all[n] = v
		}
	}
	return all
}

func TestPassword(t *testing.T) {
	for _, k := range engines {
		if !strings.Contains(k.options, "password") {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			const password = "9d1b5a52-3f0e-4a58-8a2e-0d4b1f6c7e21"
			s := k.start(t, Password(password))
			roundTrip(t, s, k.client)
			other := *s
			other.Extra = without(s.Extra, "password", "wrong")
			other.Env = without(s.Env, "PGPASSWORD", "wrong")
			other.URL = strings.Replace(s.URL, password, "wrong", 1)
			if err := k.client.put(t.Context(), &other, "other"); err == nil {
				t.Error("it took a wrong password")
			}
		})
	}
}

func TestReplica(t *testing.T) {
	for _, k := range engines {
		if !strings.Contains(k.options, "replica") {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			primary := k.start(t, Password("secret"))
			if err := k.client.put(t.Context(), primary, "told"); err != nil {
				t.Fatal(err)
			}
			replica := k.start(t, Password("secret"), ReplicaOf(primary))
			eventually(t, "the replica has what the primary has", func() bool {
				got, _ := k.client.get(t.Context(), replica)
				return got == "told"
			})
			if err := k.client.put(t.Context(), replica, "asked"); err == nil {
				t.Error("the replica took a write")
			}
		})
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	s := Postgres(t, Set("wal_level", "minimal"), Set("max_wal_senders", "0"), Set("application_name", "it's"))
	if got, err := (postgresClient{}).run(t.Context(), s, "SHOW wal_level"); got != "minimal" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	r := Redis(t, Set("appendfsync", "no"))
	if got, err := (redisClient{}).run(t.Context(), r, "CONFIG GET appendfsync"); !strings.Contains(got, "$2\r\nno\r\n") || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestUnknownOptionsAreRefused(t *testing.T) {
	options := map[string]Option{"tls": TLS(), "password": Password("x"), "replica": ReplicaOf(&Server{}), "settings": Set("a", "b")}
	tried := 0
	for _, k := range engines {
		for word, option := range options {
			if strings.Contains(k.options, word) {
				continue
			}
			if s, err := Launch(t.Context(), k.name, t.TempDir(), option); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: got %v, %v, want an error about %s", k.name, s, err, word)
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("%d options were tried", tried)
	}
	if _, err := Launch(t.Context(), "oracle", t.TempDir()); err == nil || !strings.Contains(err.Error(), engines[0].name) {
		t.Errorf("got %v, want an error with the engines' names", err)
	}
	if _, err := Launch(t.Context(), "consul", t.TempDir(), Set("limits", "{")); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("got %v, want an error about JSON", err)
	}
}

func TestEtcdCluster(t *testing.T) {
	t.Parallel()
	members := EtcdCluster(t, 3)
	c := etcdClient{}
	eventually(t, "three members take a write", func() bool { return c.put(t.Context(), members[0], "one") == nil })
	members[0].Kill()
	eventually(t, "two members of three elect a leader and take a write", func() bool {
		return c.put(t.Context(), members[1], "two") == nil
	})
	members[1].Kill()
	short, cancel := context.WithTimeout(t.Context(), within/10)
	defer cancel()
	if err := c.put(short, members[2], "three"); err == nil {
		t.Error("one member of three took a write")
	}
	members[0].Restart()
	eventually(t, "what was agreed on is read", func() bool { // on a machine that stalls they may elect another leader just then
		got, err := c.get(t.Context(), members[0])
		if err == nil && got != "two" && got != "three" {
			t.Errorf("got %q, want what the others agreed on", got)
		}
		return err == nil
	})
}

func TestCertificatesAreOfNoUseElsewhere(t *testing.T) {
	t.Parallel()
	a, b := Redis(t, TLS()), Redis(t, TLS())
	conn, err := (&tls.Dialer{Config: a.TLSConfig()}).DialContext(t.Context(), "tcp", b.Addr)
	if err == nil {
		conn.Close()
		t.Error("one server's CA vouches for another")
	}
}

// roundTrip puts a value and gets it.
func roundTrip(t *testing.T, s *Server, c client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if err := c.put(ctx, s, "value"); err != nil {
		t.Fatalf("put: %v", err)
	}
	if got, err := c.get(ctx, s); got != "value" || err != nil {
		t.Fatalf("get: %q, %v", got, err)
	}
}
