package open

import (
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

func TestRedisURLs(t *testing.T) {
	noEnv(t, "REDIS_URL")
	srv := servers.Redis(t)
	url := "redis://" + srv.Addr
	if p := store.Describe(tryURL(t, url)); p.Fencing != store.FencingPerPrimary || p.Age || !p.Push {
		t.Errorf("%+v", p)
	}
	if p := store.Describe(tryURL(t, url+"/3?age=1s&notify=false&prefix=team:")); !p.Age || p.Push {
		t.Errorf("%+v", p)
	}
	refuseURL(t, url+"/99", "DB index", "name a database")
	refuseURL(t, url+"/x", "number of a database")
	refuseURL(t, url+"?replicas=1&replica_wait=10ms", "0 replicas acknowledged")
	refuseURL(t, url+"?replicas=-1", "want a number")
	refuseURL(t, url+"?age=soon", "want a duration")
	refuseURL(t, url+"?ttl=1s", `unknown parameter "ttl"`)
	refuseURL(t, url+"?cluster=true", "cluster")
	refuseURL(t, url+",127.0.0.1:1/2", "a cluster has only one")
	refuseURL(t, url+",127.0.0.1:1?cluster=false", "sentinel=NAME")
	refuseURL(t, url+"?cluster=true&sentinel=x", "want one of them")
	refuseURL(t, url+"?tls=true", "TLS")
	refuseURL(t, "rediss://"+srv.Addr, "TLS")
	refuseURL(t, "redis://ada:hunter2@127.0.0.1:1", "is the server up")
	refuseURL(t, "redis://", "REDIS_URL")
	t.Setenv("REDIS_URL", "http://x")
	refuseURL(t, "redis://", "REDIS_URL")
	t.Setenv("REDIS_URL", srv.URL+"/5")
	tryURL(t, "redis://")
	tryURL(t, "redis://?prefix=team:")
	t.Setenv("REDIS_URL", srv.URL+"/5?age=1s&notify=false&replicas=1&replica_wait=10ms")
	refuseURL(t, "redis://", "0 replicas acknowledged")
	if p := store.Describe(tryURL(t, "redis://?replicas=0")); !p.Age || p.Push {
		t.Errorf("what REDIS_URL asks for is left out: %+v", p)
	}
	refuseURL(t, "redis://?cluster=true", "REDIS_URL", "a cluster has only one")
	t.Setenv("REDIS_URL", "redis:///5")
	refuseURL(t, "redis://", "REDIS_URL", "it names no host")
	t.Setenv("REDIS_URL", "redis://ada:hunter2@127.0.0.1:1")
	refuseURL(t, "redis://", "is the server up")
}

func TestRedisTLSAndPasswords(t *testing.T) {
	noEnv(t, "REDIS_URL")
	srv := servers.Redis(t, servers.MutualTLS(), servers.Password("hunter2@"))
	other := servers.Redis(t, servers.TLS())
	ca, cert, key := srv.Extra["ca"], srv.Extra["cert"], srv.Extra["key"]
	files := "?cacert=" + ca + "&cert=" + cert + "&key=" + key
	url := "rediss://:hunter2%40@" + srv.Addr
	tryURL(t, url+files)
	tryURL(t, strings.Replace(url, "://:", "://default:", 1)+files)
	refuseURL(t, url, "certificate", "cacert")
	refuseURL(t, url+"?cacert="+other.Extra["ca"], "certificate", "cacert")
	refuseURL(t, url+"?cacert="+ca, "cert and key")
	refuseURL(t, url+files+"&server_name=elsewhere", "elsewhere", "by the name in its certificate")
	refuseURL(t, strings.Replace(url, "hunter2%40", "hunter2", 1)+files, "WRONGPASS", "REDIS_URL")
	refuseURL(t, "rediss://"+srv.Addr+files, "NOAUTH", "REDIS_URL")
	refuseURL(t, strings.Replace(url, "rediss", "redis", 1), "rediss://")
	t.Setenv("REDIS_URL", srv.URL)
	tryURL(t, "redis://"+files)
}

func init() {
	certified["redis"] = certificatesOf{start: servers.Redis, form: "rediss://%s?cacert=%s&cert=%s&key=%s", clear: func(t *testing.T) { noEnv(t, "REDIS_URL") }}
}

// TestFinding_L5_PasswordsOfRedis also ends the connections that listen.
func TestFinding_L5_PasswordsOfRedis(t *testing.T) {
	noEnv(t, "REDIS_URL")
	srv := servers.Redis(t, servers.Password("before"))
	file := secretIn(t, "before\n")
	rotation{url: "redis://" + srv.Addr + "?password_file=" + file, files: map[string]string{file: "after\n"}, revoke: func() {
		admin := goredis.NewClient(&goredis.Options{Addr: srv.Addr, Password: "before", PoolSize: 1})
		defer admin.Close()
		do := must(t)
		do(nil, admin.ConfigSet(t.Context(), "requirepass", "after").Err())
		for _, kind := range []string{"normal", "pubsub"} {
			do(admin.ClientKillByFilter(t.Context(), "TYPE", kind, "SKIPME", "yes").Result())
		}
	}}.under(t)
	refuseURL(t, "redis://:x@"+srv.Addr+"?password_file="+file, "want one of them")
	refuseURL(t, "redis://"+srv.Addr+"?password_file=/none", "password_file: open /none")
}
