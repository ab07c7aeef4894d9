package etcd

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestNewRefuses(t *testing.T) {
	client := dial(t, "127.0.0.1:1")
	wrapped := dial(t, "127.0.0.1:1")
	wrapped.KV = namespace.NewKV(wrapped.KV, "app/")
	for name, c := range map[string]struct {
		client *clientv3.Client
		prefix string
		want   string
	}{
		"no client":          {nil, "", "clientv3.New"},
		"a wrapped client":   {wrapped, "", "Options.Prefix"},
		"a long prefix":      {client, strings.Repeat("x", maxPrefix+1), "at most 1024"},
		"an odd prefix":      {client, "a\nb", "printable"},
		"a prefix not UTF-8": {client, "\xff", "UTF-8"},
	} {
		if s, err := New(c.client, Options{Prefix: c.prefix}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", name, s, err, c.want)
		}
	}
}

// What isn't a record is left as it is, and named.
func TestCorruptRows(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	client, prefix := dial(t, srv.Addr), newPrefix(t)
	s := open(t, client, prefix)
	good := storetest.MustPut(t, s, held("good", 1))
	for key, value := range map[string]string{"bad": "{", "newer": `{"v":99}`, "empty": "", "odd\nkey": "{}", "": "{}"} {
		if _, err := client.Put(t.Context(), prefix+key, value); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := client.Get(t.Context(), prefix+"bad")
	if err != nil {
		t.Fatal(err)
	}
	version := versionOf(resp.Kvs[0].ModRevision)
	_, getErr := s.Get(t.Context(), "bad")
	_, createErr := s.Put(t.Context(), held("bad", 1))
	_, waitErr := s.Wait(t.Context(), "bad", "")
	for call, err := range map[string]error{"Get": getErr, "Put": createErr, "Delete": s.Delete(t.Context(), "bad", "1"), "Wait": waitErr} {
		if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: %v, want ErrCorrupt with the key", call, err)
		}
	}
	var corrupt, records int
	for rec, err := range s.List(t.Context(), "") {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			corrupt++
		case err != nil || rec.Version != good.Version:
			t.Errorf("List: %+v, %v", rec, err)
		default:
			records++
		}
	}
	if corrupt != 5 || records != 1 {
		t.Errorf("List yielded %d corrupt rows and %d records, want 5 and 1", corrupt, records)
	}
	waiting := startWait(t, s, "good", good.Version)
	if _, err := client.Put(t.Context(), prefix+"good", "spoiled"); err != nil {
		t.Fatal(err)
	}
	if got := <-waiting; !errors.Is(got.err, store.ErrCorrupt) {
		t.Errorf("Wait for a row that was spoiled: %+v, want ErrCorrupt", got)
	}
	if resp, err = client.Get(t.Context(), prefix+"bad"); err != nil || string(resp.Kvs[0].Value) != "{" || versionOf(resp.Kvs[0].ModRevision) != version {
		t.Errorf("the row is now %v, %v", resp, err)
	}
}

func TestInspect(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	client, prefix := dial(t, srv.Addr), newPrefix(t)
	s := open(t, client, prefix)
	found := map[string]driver.Finding{}
	for _, f := range s.Inspect(t.Context()) {
		found[f.What] = f
	}
	for what, want := range map[string]driver.Finding{
		"server":      {Status: driver.StatusOK, Detail: "etcd 3."},
		"members":     {Status: driver.StatusWarn, Detail: "1 with a vote", Advice: "cluster of 3"},
		"identity":    {Status: driver.StatusOK, Detail: "authentication is off"},
		"permissions": {Status: driver.StatusOK, Detail: prefix},
		"consistency": {Status: driver.StatusOK, Detail: "linearizable"},
	} {
		if f := found[what]; f.Status != want.Status || !strings.Contains(f.Detail, want.Detail) || !strings.Contains(f.Advice, want.Advice) {
			t.Errorf("%s: %+v, want %+v", what, f, want)
		}
	}
	if resp, err := client.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil || resp.Count != 0 {
		t.Errorf("Inspect left %v keys, %v", resp.Count, err)
	}
	away := open(t, dial(t, "127.0.0.1:1"), prefix)
	if findings := away.Inspect(t.Context()); !failed(findings, "server") || !strings.Contains(fmt.Sprint(findings), "is etcd up") {
		t.Errorf("without a server: %+v", findings)
	}
}
