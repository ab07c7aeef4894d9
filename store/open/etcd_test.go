package open

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// tryURL opens a store by its URL, and tries it.
func tryURL(t *testing.T, url string) store.Store {
	t.Helper()
	u, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	st, err := u.Open(t.Context(), Options{})
	if err != nil {
		t.Fatalf("%s: %v", Redact(url), err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("%s: close: %v", Redact(url), err)
		}
	})
	rec, err := st.Put(t.Context(), store.Record{Key: "opened " + t.Name()})
	if err != nil {
		t.Fatalf("%s: %v", Redact(url), err)
	}
	if err := st.Delete(t.Context(), rec.Key, rec.Version); err != nil {
		t.Fatalf("%s: %v", Redact(url), err)
	}
	return st
}

// refuseURL checks that a URL can't be opened, or not worked with, and that the error says what to do, and no secret.
func refuseURL(t *testing.T, url string, wants ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	u, err := Parse(url)
	if err == nil {
		var st store.Store
		if st, err = u.Open(ctx, Options{}); err == nil {
			_, err = st.Put(ctx, store.Record{Key: "refused"})
			st.Close()
		}
	}
	if err == nil {
		t.Errorf("%s was opened", Redact(url))
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want one that says %q", Redact(url), err, want)
		}
	}
	if strings.Contains(err.Error(), "%!") {
		t.Errorf("%s: the error isn't written well: %v", Redact(url), err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s: the error shows the password: %v", Redact(url), err)
	}
}

// noEnv takes away what the environment says about servers.
func noEnv(t *testing.T, names ...string) {
	for _, name := range names {
		t.Setenv(name, "")
	}
}

var etcdEnv = []string{
	"ETCDCTL_ENDPOINTS", "ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY", "ETCDCTL_USER", "ETCDCTL_PASSWORD", "ETCDCTL_INSECURE_SKIP_TLS_VERIFY",
}

func TestEtcdURLs(t *testing.T) {
	noEnv(t, etcdEnv...)
	srv := servers.Etcd(t)
	tryURL(t, "etcd://"+srv.Addr)
	tryURL(t, "etcd://"+srv.Addr+"/team/leases")
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := tryURL(t, "etcd://"+srv.Addr+"/mine").Put(t.Context(), store.Record{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if resp, err := client.Get(t.Context(), "mine/k"); err != nil || len(resp.Kvs) != 1 {
		t.Errorf("mine/k: %v, %v", resp, err)
	}
	refuseURL(t, "etcd://", "ETCDCTL_ENDPOINTS")
	refuseURL(t, "etcd:host", "want // after the colon")
	refuseURL(t, "etcd://ada:hunter2@"+srv.Addr+"?ttl=5", `unknown parameter "ttl"`)
	refuseURL(t, "etcd://ada@"+srv.Addr, `user "ada" has no password`)
	refuseURL(t, "etcd://127.0.0.1:1", "no server listens there", "127.0.0.1:1")
	refuseURL(t, "etcd://"+srv.Addr+"?tls=true", "plain text")
	for _, endpoints := range []string{srv.Addr, "http://" + srv.Addr + "/", srv.Addr + ", http://" + srv.Addr} {
		t.Setenv("ETCDCTL_ENDPOINTS", endpoints)
		tryURL(t, "etcd://")
		tryURL(t, "etcd:///team")
	}
	t.Setenv("ETCDCTL_ENDPOINTS", "http://a,https://b")
	refuseURL(t, "etcd://", "ETCDCTL_ENDPOINTS: http and https")
}

func TestEtcdTLS(t *testing.T) {
	noEnv(t, etcdEnv...)
	srv := servers.Etcd(t, servers.MutualTLS())
	other := servers.Etcd(t, servers.TLS())
	ca, cert, key := srv.Extra["ca"], srv.Extra["cert"], srv.Extra["key"]
	url := "etcd://" + srv.Addr
	tryURL(t, url+"?cacert="+ca+"&cert="+cert+"&key="+key)
	refuseURL(t, url, "the server speaks TLS")
	refuseURL(t, url+"?tls=true&cert="+cert+"&key="+key, "isn't from a CA that the client trusts")
	refuseURL(t, url+"?cacert="+ca, "demands a client certificate")
	refuseURL(t, url+"?cacert="+ca+"&cert="+cert+"&key="+key+"&server_name=elsewhere", "the name or address that it was issued for")
	refuseURL(t, url+"?cacert="+ca+"&cert="+other.Extra["cert"]+"&key="+other.Extra["key"], "doesn't accept the client's certificate")
	for name, value := range srv.Env {
		t.Setenv(name, value)
	}
	tryURL(t, "etcd://")
	tryURL(t, url)
	refuseURL(t, url+"?cacert="+other.Extra["ca"], "isn't from a CA that the client trusts")
	t.Setenv("ETCDCTL_CACERT", "")
	t.Setenv("ETCDCTL_INSECURE_SKIP_TLS_VERIFY", "true")
	tryURL(t, url)
	t.Setenv("ETCDCTL_INSECURE_SKIP_TLS_VERIFY", "maybe")
	refuseURL(t, url, "want true or false")
}

func TestEtcdUsers(t *testing.T) {
	noEnv(t, etcdEnv...)
	srv := servers.Etcd(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := t.Context()
	do := func(_ any, e error) { err = errors.Join(err, e) }
	do(client.UserAdd(ctx, "root", "r"))
	do(client.RoleAdd(ctx, "root"))
	do(client.UserGrantRole(ctx, "root", "root"))
	do(client.UserAdd(ctx, "ada", "hunter2@"))
	do(client.RoleAdd(ctx, "leases"))
	do(client.RoleGrantPermission(ctx, "leases", "leasehold/", clientv3.GetPrefixRangeEnd("leasehold/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	do(client.UserGrantRole(ctx, "ada", "leases"))
	do(client.AuthEnable(ctx))
	if err != nil {
		t.Fatal(err)
	}
	tryURL(t, "etcd://ada:hunter2%40@"+srv.Addr)
	refuseURL(t, "etcd://"+srv.Addr, "demands a user")
	refuseURL(t, "etcd://ada:hunter2@"+srv.Addr, "user name or the password is wrong")
	refuseURL(t, "etcd://ada:hunter2%40@"+srv.Addr+"/elsewhere", "grant-permission")
	t.Setenv("ETCDCTL_USER", "ada:hunter2@")
	tryURL(t, "etcd://"+srv.Addr)
	t.Setenv("ETCDCTL_USER", "ada")
	refuseURL(t, "etcd://"+srv.Addr, "ETCDCTL_PASSWORD")
	refuseURL(t, "etcd://ada@"+srv.Addr, "ETCDCTL_PASSWORD")
	t.Setenv("ETCDCTL_PASSWORD", "hunter2@")
	tryURL(t, "etcd://"+srv.Addr)
	t.Setenv("ETCDCTL_USER", "bob:b")
	tryURL(t, "etcd://ada@"+srv.Addr)
	refuseURL(t, "etcd://ada:wrong@"+srv.Addr, "user name or the password is wrong")
}

// A server that takes connections and never answers, as one that is stopped does, is named with what to look at.
func TestEtcdThatIsStopped(t *testing.T) {
	for _, name := range []string{"ETCDCTL_USER", "ETCDCTL_PASSWORD", "ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY"} {
		t.Setenv(name, "")
	}
	var lc net.ListenConfig
	silent, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0") // nobody accepts: the system does
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	u, err := Parse("etcd://" + silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	st, err := u.Open(ctx, Options{})
	if err == nil {
		defer func() { _ = st.Close() }()
		_, err = st.Get(ctx, "k")
	}
	if err == nil || !strings.Contains(err.Error(), "is etcd up, and does the network let this machine reach it?") {
		t.Errorf("%v", err)
	}
}

func init() {
	certified["etcd"] = certificatesOf{start: servers.Etcd, form: "etcd://%s?cacert=%s&cert=%s&key=%s", clear: func(t *testing.T) { noEnv(t, etcdEnv...) }}
}

// TestFinding_L5_PasswordsOfEtcd: a change of the password revokes the tokens that the server gave for the one before.
func TestFinding_L5_PasswordsOfEtcd(t *testing.T) {
	noEnv(t, etcdEnv...)
	srv := servers.Etcd(t)
	plain, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	ctx, do := t.Context(), must(t)
	do(plain.UserAdd(ctx, "root", "r"))
	do(plain.RoleAdd(ctx, "root"))
	do(plain.UserGrantRole(ctx, "root", "root"))
	do(plain.UserAdd(ctx, "ada", "before"))
	do(plain.UserGrantRole(ctx, "ada", "root"))
	do(plain.AuthEnable(ctx))
	root, err := clientv3.New(clientv3.Config{Endpoints: []string{srv.Addr}, Username: "root", Password: "r"})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	file := secretIn(t, "before")
	rotation{url: "etcd://ada@" + srv.Addr + "?password_file=" + file, files: map[string]string{file: "after"}, revoke: func() {
		do(root.UserChangePassword(ctx, "ada", "after"))
	}}.under(t)
}
