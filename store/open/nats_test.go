package open

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

var natsEnv = []string{"NATS_URL", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "NATS_CREDS", "NATS_NKEY", "NATS_CA", "NATS_CERT", "NATS_KEY"}

func TestNATSURLs(t *testing.T) {
	noEnv(t, natsEnv...)
	srv := servers.NATS(t)
	url := "nats://" + srv.Addr
	refuseURL(t, url, `bucket "leasehold"`, "nats kv add leasehold ", "create=true")
	tryURL(t, url+"?create=true")
	tryURL(t, url)
	if p := store.Describe(tryURL(t, url)); p.Fencing != store.FencingPerPrimary {
		t.Errorf("%+v", p)
	}
	if p := store.Describe(tryURL(t, url+"/synced?create=true&sync=always")); p.Fencing != store.FencingLinearizable {
		t.Errorf("%+v", p)
	}
	u, err := Parse(url + "/none?create=true")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Open(t.Context(), Options{MustExist: true}); err == nil || !strings.Contains(err.Error(), "by this very URL") {
		t.Errorf("a bucket that must exist: %v, want an error that says who makes it", err)
	}
	refuseURL(t, url+"/three?create=true&replicas=3", "use 1 replica")
	refuseURL(t, url+"?replicas=9", "want 1 to 5")
	refuseURL(t, url+"?sync=never", "want always")
	refuseURL(t, url+"/a.b", "want letters")
	refuseURL(t, url+"?domain=hub", "JetStream isn't on")
	refuseURL(t, "nats://", "NATS_URL")
	refuseURL(t, "nats://ada:hunter2@127.0.0.1:1", "is NATS up", "127.0.0.1:1")
	refuseURL(t, url+"?tls=true", "plain text")
	t.Setenv("NATS_URL", srv.URL+", "+srv.Addr)
	tryURL(t, "nats://")
	tryURL(t, "nats:///synced")
}

func TestNATSTLS(t *testing.T) {
	noEnv(t, natsEnv...)
	srv := servers.NATS(t, servers.MutualTLS())
	other := servers.NATS(t, servers.TLS())
	ca, cert, key := srv.Extra["ca"], srv.Extra["cert"], srv.Extra["key"]
	url := "nats://" + srv.Addr + "?create=true"
	tryURL(t, url+"&cacert="+ca+"&cert="+cert+"&key="+key)
	refuseURL(t, url, "isn't from a CA that the client trusts")
	refuseURL(t, url+"&cacert="+ca, "demands a client certificate")
	refuseURL(t, url+"&cacert="+ca+"&cert="+cert+"&key="+key+"&server_name=elsewhere", "the name or address that it was issued for")
	refuseURL(t, url+"&cacert="+ca+"&cert="+other.Extra["cert"]+"&key="+other.Extra["key"], "doesn't accept the client's certificate")
	t.Setenv("NATS_URL", srv.URL)
	t.Setenv("NATS_CA", ca)
	t.Setenv("NATS_CERT", cert)
	t.Setenv("NATS_KEY", key)
	tryURL(t, "nats://")
}

func TestNATSUsers(t *testing.T) {
	noEnv(t, natsEnv...)
	const seed, public = "SUAK3BDHKERPINTRFFA4M4LHYCRY3QJ6FHPEJAJHRLDTV4TNJVOC7ZKXUA", "UBWZWPJ2U6FUHNTW6KCAMK3Q7PP5RMEHQJGXODVNGYANYM6BRIXXLLZK" // of a user who exists only here
	nkey := filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(nkey, []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := servers.NATS(t, servers.Set("authorization", fmt.Sprintf(
		`{ users: [ { user: ada, password: "hunter2@" }, { nkey: %s }, { user: eve, password: hunter2, permissions: { publish: "other", subscribe: ">" } } ] }`, public)))
	url := "nats://ada:hunter2%40@" + srv.Addr
	tryURL(t, url+"?create=true")
	tryURL(t, "nats://"+srv.Addr+"?nkey="+nkey)
	refuseURL(t, "nats://"+srv.Addr, "demands a user")
	refuseURL(t, "nats://ada:hunter2@"+srv.Addr, "refuses this one")
	refuseURL(t, "nats://eve:hunter2@"+srv.Addr, "lacks a permission")
	refuseURL(t, "nats://"+srv.Addr+"?creds=/none.creds", "creds: open /none.creds")
	refuseURL(t, "nats://"+srv.Addr+"?nkey=/none.nk", "nkey=/none.nk")
	t.Setenv("NATS_USER", "ada")
	t.Setenv("NATS_PASSWORD", "hunter2@")
	tryURL(t, "nats://"+srv.Addr)
	noEnv(t, natsEnv...)
	t.Setenv("NATS_NKEY", nkey)
	tryURL(t, "nats://"+srv.Addr)
	noEnv(t, natsEnv...)
	t.Setenv("NATS_URL", url)
	tryURL(t, "nats://")
	t.Setenv("NATS_URL", "nats://ada:hunter2@127.0.0.1:1")
	refuseURL(t, "nats://", "is NATS up")

	token := servers.NATS(t, servers.Set("authorization", `{ token: "hunter2" }`))
	tryURL(t, "nats://"+token.Addr+"?create=true&token=hunter2")
	tryURL(t, "nats://hunter2@"+token.Addr)
	t.Setenv("NATS_URL", "nats://"+token.Addr)
	t.Setenv("NATS_TOKEN", "hunter2")
	tryURL(t, "nats://")
}

func init() {
	certified["nats"] = certificatesOf{start: servers.NATS, form: "nats://%s?create=true&cacert=%s&cert=%s&key=%s", clear: func(t *testing.T) { noEnv(t, natsEnv...) }}
}

// TestFinding_L5_IdentitiesOfNATS: a password, a token and a key, which the server knows no more when it comes back.
func TestFinding_L5_IdentitiesOfNATS(t *testing.T) {
	noEnv(t, natsEnv...)
	const ( // of users who exist only here
		seed, public       = "SUAK3BDHKERPINTRFFA4M4LHYCRY3QJ6FHPEJAJHRLDTV4TNJVOC7ZKXUA", "UBWZWPJ2U6FUHNTW6KCAMK3Q7PP5RMEHQJGXODVNGYANYM6BRIXXLLZK"
		later, laterPublic = "SUALZWJAEETWBYRYB65M3KQAP7FENLIEK3PHWYMQ6TF67CFWWZBYTI3THY", "UBLEWNBUFRS4SFJAAJ4QXHLP7FTUKBA5AWFG5YZVN4YGDVPXG36YVMPI"
	)
	for name, c := range map[string]struct{ before, after, old, new, form string }{
		"password": {`{ user: ada, password: "one" }`, `{ user: ada, password: "two" }`, "one", "two", "nats://ada@%s?create=true&password_file=%s"},
		"token":    {`{ token: "one" }`, `{ token: "two" }`, "one", "two", "nats://%s?create=true&token_file=%s"},
		"nkey":     {`{ users: [ { nkey: ` + public + ` } ] }`, `{ users: [ { nkey: ` + laterPublic + ` } ] }`, seed, later, "nats://%s?create=true&nkey=%s"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := servers.NATS(t, servers.Set("authorization", c.before))
			file := secretIn(t, c.old)
			rotation{url: fmt.Sprintf(c.form, srv.Addr, file), files: map[string]string{file: c.new}, revoke: func() {
				path := filepath.Join(srv.Dir, "nats.conf")
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				replaceFile(t, path, strings.Replace(string(text), c.before, c.after, 1))
				srv.Restart()
				if _, err := natsgo.Connect(srv.URL, natsgo.UserInfo("ada", "one")); err == nil {
					t.Fatal("the server takes the old one")
				}
				time.Sleep(2 * time.Second) // the client is refused twice, with the same error
			}}.under(t)
		})
	}
}
