package redis

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// trusting returns a configuration that trusts the authority in that file.
func trusting(t testing.TB, file, name string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12}
}

// TestErrorsSayWhatToDo tries what goes wrong when somebody sets it up.
func TestErrorsSayWhatToDo(t *testing.T) {
	plain := servers.Redis(t, servers.Shared())
	locked := servers.Redis(t, servers.Shared(), servers.Password("right-secret"))
	secure := servers.Redis(t, servers.Shared(), servers.TLS())
	mutual := servers.Redis(t, servers.Shared(), servers.MutualTLS())
	node := servers.Redis(t, servers.Set("cluster-enabled", "yes"), servers.Set("cluster-port", port(t)))
	full := servers.Redis(t, servers.Set("maxmemory", "1"), servers.Set("maxmemory-policy", "noeviction"))
	lonely := servers.Redis(t, servers.Set("min-replicas-to-write", "1"))
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	for name, c := range map[string]struct {
		srv    *servers.Server
		change func(*goredis.Options)
		want   []string
	}{
		"unreachable":       {plain, func(o *goredis.Options) { o.Addr = servers.FreeAddr(t) }, []string{"connection refused", "is the server up"}},
		"a web server":      {plain, func(o *goredis.Options) { o.Addr = web.Listener.Addr().String() }, []string{"isn't Redis", "host and port"}},
		"no password":       {locked, func(o *goredis.Options) { o.Password = "" }, []string{"NOAUTH", "REDIS_URL"}},
		"wrong password":    {locked, func(o *goredis.Options) { o.Password = "wrong-secret" }, []string{"WRONGPASS", "REDIS_URL"}},
		"password for none": {plain, func(o *goredis.Options) { o.Username, o.Password = "ada", "wrong-secret" }, []string{"WRONGPASS", "check the user"}},
		"no such database":  {plain, func(o *goredis.Options) { o.DB = 4711 }, []string{"DB index", "name a database"}},
		"unknown authority": {secure, func(o *goredis.Options) { o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12} }, []string{"certificate", "cacert"}},
		"another authority": {secure, func(o *goredis.Options) { o.TLSConfig = trusting(t, mutual.Extra["ca"], "127.0.0.1") }, []string{"certificate", "cacert"}},
		"another name":      {secure, func(o *goredis.Options) { o.TLSConfig = trusting(t, secure.Extra["ca"], "elsewhere") }, []string{"elsewhere", "by the name in its certificate"}},
		"no certificate":    {mutual, func(o *goredis.Options) { o.TLSConfig = trusting(t, mutual.Extra["ca"], "127.0.0.1") }, []string{"cert and key"}},
		"no TLS there": {plain, func(o *goredis.Options) { // which waits for the rest of a command
			o.TLSConfig, o.DialTimeout = trusting(t, secure.Extra["ca"], "127.0.0.1"), 3*time.Second
		}, []string{"TLS"}},
		"TLS wanted there": {secure, func(o *goredis.Options) { o.TLSConfig = nil }, []string{"rediss://"}},
		"cluster":          {node, func(*goredis.Options) {}, []string{"CLUSTERDOWN", "CLUSTER INFO"}},
		"memory is full":   {full, func(*goredis.Options) {}, []string{"OOM", "raise maxmemory"}},
		"lacks replicas":   {lonely, func(*goredis.Options) {}, []string{"NOREPLICAS", "min-replicas-to-write asks"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := options(t, c.srv, c.srv.Addr)
			opts.MaxRetries, opts.DialerRetries, opts.DialTimeout = -1, 1, time.Minute
			c.change(opts)
			s, err := openOwner(opts, Options{Prefix: newPrefix()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Put(t.Context(), held("k", 1))
			if err == nil {
				t.Fatal("it was done")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "-secret") {
				t.Errorf("it shows the password: %v", err)
			}
		})
	}
}

func port(t testing.TB) string {
	t.Helper()
	_, port, _ := strings.Cut(servers.FreeAddr(t), ":")
	return port
}

func TestANodeOfAClusterNeedsAClustersClient(t *testing.T) {
	addrs := cluster(t)
	moved := 0
	for _, addr := range addrs {
		s, err := openOwner(&goredis.Options{Addr: addr, ReadTimeout: time.Minute}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Put(t.Context(), held("k", 1)); err != nil && strings.Contains(err.Error(), "use a cluster's client") {
			moved++
		}
	}
	if moved != 2 {
		t.Errorf("%d of 3 nodes say so, want 2", moved)
	}
}

// TestTheRightsThatAreAsked: what the documentation lists is enough, and a user who lacks one is told which are needed.
func TestTheRightsThatAreAsked(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	client := raw(t, srv)
	rights := strings.Fields("reset on >app-secret resetchannels ~app:* &app:* +evalsha +eval +hget +hmget +hset +hdel +exists +del +time +publish +subscribe +unsubscribe +ping +scan")
	grant := func(more ...string) {
		args := []any{"acl", "setuser", "app"}
		for _, r := range append(rights, more...) {
			args = append(args, r)
		}
		do(t, client, args...)
	}
	grant()
	do(t, client, "del", "app:k", "app:k2") // of an earlier run, on a server that is up already
	opts := options(t, srv, srv.Addr)
	opts.Username, opts.Password = "app", "app-secret"
	opened, err := openOwner(opts, Options{Prefix: "app:"})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s := opened.(owner).Store
	rec := storetest.MustPut(t, s, held("k", 1))
	waiting := make(chan error, 1)
	go func() { _, err := s.Wait(t.Context(), "k", rec.Version); waiting <- err }()
	heard(t, client, "app:changed:k")
	if err := s.Delete(t.Context(), "k", rec.Version); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	what := map[string]driver.Finding{}
	for _, f := range s.Inspect(t.Context()) {
		what[f.What] = f
	}
	if what["permissions"].Status != driver.StatusOK || what["server"].Status != driver.StatusWarn || !strings.Contains(what["server"].Detail, "NOPERM") {
		t.Errorf("%+v", what)
	}
	for _, without := range []string{"-hset", "-evalsha", "-publish", "resetchannels", "resetkeys", "-hdel"} {
		grant(without)
		_, err := s.Get(t.Context(), "k2")
		if without != "-hdel" { // which only reads need
			_, err = s.Put(t.Context(), held("k2", 1))
		}
		if err == nil || !strings.Contains(err.Error(), "ACL SETUSER … ~app:* &app:* +evalsha") {
			t.Errorf("%s: %v", without, err)
		}
	}
	grant()
	if _, err := s.Put(t.Context(), held("k2", 1)); err != nil {
		t.Errorf("a write that was refused halfway left something behind: %v", err)
	}
}

// heard waits until somebody subscribes to the channel.
func heard(t testing.TB, client *goredis.Client, channel string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		n, err := client.PubSubNumSub(t.Context(), channel).Result()
		if err != nil || time.Now().After(deadline) {
			t.Fatal("nobody subscribes: ", err)
		}
		if n[channel] > 0 {
			return
		}
	}
}

func TestInspectWarns(t *testing.T) {
	find := func(opts Options, change ...servers.Option) map[string]driver.Finding {
		srv := servers.Redis(t, change...)
		s := mustOpen(t, srv, srv.Addr, opts)
		got := map[string]driver.Finding{}
		for _, f := range s.Inspect(t.Context()) {
			got[f.What] = f
		}
		return got
	}
	got := find(Options{})
	for _, what := range []string{"permissions", "server", "role", "eviction", "durability", "replication", "identity", "clock"} {
		if got[what].Status != driver.StatusOK {
			t.Errorf("%s: %+v", what, got[what])
		}
	}
	got = find(Options{Replicas: 2, ReplicaWait: time.Millisecond}, servers.Set("maxmemory", "100mb"), servers.Set("maxmemory-policy", "allkeys-lru"), servers.Set("appendfsync", "everysec"))
	for what, want := range map[string]driver.Status{"eviction": driver.StatusFail, "durability": driver.StatusWarn, "replication": driver.StatusFail, "permissions": driver.StatusFail} {
		if got[what].Status != want {
			t.Errorf("%s: %+v", what, got[what])
		}
	}
	got = find(Options{}, servers.Set("maxmemory-policy", "allkeys-lfu"), servers.Set("appendonly", "no"))
	for what, want := range map[string]driver.Status{"eviction": driver.StatusWarn, "durability": driver.StatusWarn} {
		if got[what].Status != want || got[what].Advice == "" {
			t.Errorf("%s: %+v", what, got[what])
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for want, opts := range map[string]Options{
		"prefix":      {Prefix: "a\nb"},
		"ClockStep":   {ClockStep: -1},
		"replicas -1": {Replicas: -1},
		"ReplicaWait": {ReplicaWait: time.Microsecond},
	} {
		if _, err := New(client, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("no client")
	}
	s, err := New(onlyProcess{client}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Properties().Push {
		t.Error("a client that can't subscribe is said to push")
	}
}

// onlyProcess is a client that can't subscribe.
type onlyProcess struct{ Client }
