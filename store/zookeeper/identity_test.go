package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/driver"
)

// TestInspectSaysWhoWeAre: as the server sees it, without a word of the password, and whatever new znodes get.
func TestInspectSaysWhoWeAre(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	for name, c := range map[string]struct {
		accounts []string
		acl      []zk.ACL
		want     string
	}{
		"nobody":                {nil, nil, "nobody in particular: the connection has no account"},
		"an account":            {[]string{"ada:secret"}, zk.AuthACL(zk.PermAll), "digest:ada"},
		"an account, open root": {[]string{"ada:secret"}, nil, "digest:ada"},
		"two accounts":          {[]string{"ada:secret", "bob:secret"}, nil, "digest:ada, digest:bob"},
	} {
		conn, _ := connect(t, srv.Addr, sessionTimeout)
		for _, account := range c.accounts {
			if err := conn.AddAuth("digest", []byte(account)); err != nil {
				t.Fatal(err)
			}
		}
		s, err := New(conn, Options{Root: aRoot(), ACL: c.acl})
		if err != nil {
			t.Fatal(err)
		}
		f := findings(s.Inspect(t.Context()))
		if got := f["identity"]; got.Status != driver.StatusOK || got.Detail != c.want {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
		if f["permissions"].Status != driver.StatusOK {
			t.Errorf("%s: %+v", name, f["permissions"])
		}
		for rec, err := range s.List(t.Context(), "") {
			t.Errorf("%s: left behind: %+v, %v", name, rec, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
