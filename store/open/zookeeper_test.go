package open

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

func TestZooKeeperURL(t *testing.T) {
	for rest, want := range map[string]string{
		"//h":                                    `[h:2181] /leasehold "" "" 10s`,
		"//a,b:7,[::1]/x/y":                      `[a:2181 b:7 [::1]:2181] /x/y "" "" 10s`,
		"//ada:p%3Aw@h/r":                        `[h:2181] /r "digest" "ada:p:w" 10s`,
		"//h?auth=digest:ada:pw":                 `[h:2181] /leasehold "digest" "ada:pw" 10s`,
		"//h?auth=digest:ada:a%26b&tls=true":     `[h:2181] /leasehold "digest" "ada:a&b" 10s`,
		"//h/r?session_timeout=4s&server_name=x": `[h:2181] /r "" "" 4s`,
	} {
		u, err := parseZooKeeper(rest)
		if got := fmt.Sprintf("%v %s %q %q %v", u.hosts, u.root, u.scheme, u.auth, u.timeout); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", rest, got, err, want)
		}
	}
	for url, want := range map[string]string{
		"zk:h":                               "want // after the colon",
		"zk://h?auth=secret":                 "want SCHEME:CREDENTIALS",
		"zk://h?auth=digest:":                "want SCHEME:CREDENTIALS",
		"zk://ada:secret@h?auth=digest:a:b":  "want one of them",
		"zk://h?session_timeout=5":           "want a duration such as 5s",
		"zk://h?session_timeout=5ms":         "a second or more",
		"zk://h?auth=digest:a:secret&root=x": `unknown parameter "root": known are auth, cacert`,
	} {
		if _, err := Parse(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want one that says %q", url, err, want)
		}
	}
}

// TestZooKeeperForReal opens a store with an account, by both ways to name one, and as somebody else.
func TestZooKeeperForReal(t *testing.T) {
	srv := servers.ZooKeeper(t)
	root := "/a/b"
	var version string
	for _, url := range []string{
		"zk://ada:secret@" + srv.Addr + root, "zk://127.0.0.1:1," + srv.Addr + root + "?auth=digest:ada:secret",
	} {
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
	for _, url := range []string{"zk://" + srv.Addr + root, "zk://eve:secret@" + srv.Addr + root} {
		st := openURL(t, url)
		if _, err := st.Get(t.Context(), "k"); !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "give it crwd") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	u, err := Parse("zk://" + srv.Addr + "/zookeeper/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "ZooKeeper's own") {
		t.Errorf("ZooKeeper's own root: %v", err)
	}
	u, _ = Parse("zk://" + srv.Addr + "?auth=kerberos:secret")
	if _, err := u.Open(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "takes no kerberos credentials") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a scheme that it doesn't know: %v", err)
	}
}

// TestZooKeeperOverTLS puts a TLS end in front of the server, for its own needs a key store in Java's format.
func TestZooKeeperOverTLS(t *testing.T) {
	srv := servers.ZooKeeper(t)
	certs := servers.Consul(t, servers.TLS()).Extra // for its certificates, which are for 127.0.0.1
	addr := tlsFront(t, srv.Addr, certs["server-cert"], certs["server-key"])
	st := openURL(t, "zk://"+addr+"?cacert="+certs["ca"])
	if _, err := st.Put(t.Context(), store.Record{Key: "k"}); err != nil {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	for url, want := range map[string]string{
		"zk://" + addr + "?tls=true":                                     "its certificate isn't trusted",
		"zk://" + addr + "?server_name=zk.example&cacert=" + certs["ca"]: "server_name=NAME",
		"zk://" + srv.Addr + "?cacert=" + certs["ca"]:                    "name its secureClientPort",
		"zk://" + addr:         "is this its plain client port",
		"zk://127.0.0.1:1":     "is it running there",
		"zk://nobody..invalid": "can't be reached", // so written that nobody is asked for its address
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			u, err := Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			start := time.Now()
			if _, err := u.Open(ctx, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want one that says %q", url, err, want)
			}
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// While there is no answer to the first attempt, nothing is claimed of a connection.
func TestZooKeeperThatGivesNoAnswer(t *testing.T) {
	for _, c := range []struct {
		d    *zooKeeperDialer
		want string
	}{
		{&zooKeeperDialer{}, "there is no connection yet"},
		{&zooKeeperDialer{tried: true}, "it takes the connection and opens no session"},
		{&zooKeeperDialer{tried: true, last: io.EOF}, "does the network let this machine reach it? EOF"},
	} {
		if err := c.d.explain(context.DeadlineExceeded); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want one that says %q", err, c.want)
		}
	}
}

// tlsFront has a TLS listener pass on what it gets.
func tlsFront(t *testing.T, target, cert, key string) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				go func() {
					defer client.Close()
					_, _ = io.Copy(client, server)
				}()
				_, _ = io.Copy(server, client)
			}()
		}
	}()
	return l.Addr().String()
}

func TestHostNamesTakeTurns(t *testing.T) {
	h := &hostNames{}
	if err := h.Init([]string{"a", "b", "c"}); err != nil || h.Len() != 3 {
		t.Fatal(err)
	}
	for round := range 3 {
		seen := map[string]bool{}
		for i := range 3 {
			name, all := h.Next()
			seen[name] = true
			if want := i == 0 && round > 0; all != want {
				t.Errorf("round %d, server %d: all tried: %v, want %v", round, i, all, want)
			}
		}
		if len(seen) != 3 {
			t.Errorf("round %d: %v", round, seen)
		}
	}
	h.Connected()
	if _, all := h.Next(); all {
		t.Error("all were tried, after a server was reached")
	}
}

// TestFinding_L5_CertificatesOfZooKeeper has a TLS end in front of the server, which asks for a certificate of the authority of the day.
func TestFinding_L5_CertificatesOfZooKeeper(t *testing.T) {
	srv := servers.ZooKeeper(t)
	certs := servers.Redis(t, servers.MutualTLS())
	ca, cert, key := ownFiles(t, certs)
	front := &mutualFront{target: srv.Addr}
	front.trust(t, certs)
	addr := front.listen(t)
	rotation{url: fmt.Sprintf("zk://%s?cacert=%s&cert=%s&key=%s", addr, ca, cert, key), revoke: func() {
		certs.Recertify()
		front.trust(t, certs)
		for path, from := range map[string]string{ca: "ca", cert: "cert", key: "key"} {
			text, err := os.ReadFile(certs.Extra[from])
			if err != nil {
				t.Fatal(err)
			}
			replaceFile(t, path, string(text))
		}
	}}.under(t)
}
