package open

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	natsgo "github.com/nats-io/nats.go"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
)

// rotation is a change of credentials: the server refuses the old ones and ends all connections, and then the files hold the new ones.
type rotation struct {
	url    string
	revoke func()
	files  map[string]string // what is in them afterwards, by path
}

// under has a holder and a waiter live through the rotation. The holder keeps its term, and the waiter has the name when it is released.
func (r rotation) under(t *testing.T) {
	t.Helper()
	const ttl = 15 * time.Second
	manager := func() *lease.Manager {
		st := openURL(t, r.url)
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		m, err := lease.NewManager(st, lease.Options{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	held, err := manager().Acquire(t.Context(), "rotated")
	if err != nil {
		t.Fatal(err)
	}
	other, followed := manager(), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	go func() {
		next, err := other.Acquire(ctx, "rotated")
		if err == nil {
			err = next.Release(ctx)
		}
		followed <- err
	}()
	r.revoke()
	for path, text := range r.files {
		replaceFile(t, path, text)
	}
	last := held.ValidUntil()
	for renewals := 0; renewals < 2; {
		if err := held.Check(); err != nil {
			t.Fatalf("the lease was lost after %d renewals: %v", renewals, err)
		}
		if until := held.ValidUntil(); until != last {
			last, renewals = until, renewals+1
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-followed; err != nil {
		t.Errorf("the waiter: %v", err)
	}
}

// replaceFile replaces a file as a whole, as tools that rotate credentials do.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// secretIn makes a file with a secret.
func secretIn(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	replaceFile(t, path, text)
	return path
}

// must ends the test on an error of a step of which the result is of no interest.
func must(t *testing.T) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ownFiles copies the certificates that clients of a server use, and returns the copies.
func ownFiles(t *testing.T, srv *servers.Server) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"ca", "cert", "key"} {
		text, err := os.ReadFile(srv.Extra[name])
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		replaceFile(t, path, string(text))
		paths = append(paths, path)
	}
	return paths[0], paths[1], paths[2]
}

// TestFinding_L5_CertificatesAndAuthorities: the server has another authority from one moment to the next, and demands a certificate of it.
func TestFinding_L5_CertificatesAndAuthorities(t *testing.T) {
	for name, c := range map[string]struct {
		start func(testing.TB, ...servers.Option) *servers.Server
		form  string // with the address and the three files
	}{
		"redis":    {servers.Redis, "rediss://%s?cacert=%s&cert=%s&key=%s"},
		"nats":     {servers.NATS, "nats://%s?create=true&cacert=%s&cert=%s&key=%s"},
		"etcd":     {servers.Etcd, "etcd://%s?cacert=%s&cert=%s&key=%s"},
		"consul":   {servers.Consul, "consul://%s?cacert=%s&cert=%s&key=%s"},
		"postgres": {servers.Postgres, "postgres://postgres@%s/postgres?sslmode=verify-full&sslrootcert=%s&sslcert=%s&sslkey=%s"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := c.start(t, servers.MutualTLS())
			withoutConsul(t)
			noEnv(t, append(append(natsEnv, etcdEnv...), postgresEnv...)...)
			for _, variable := range postgresEnv {
				_ = os.Unsetenv(variable) // the server, which is restarted, takes an empty PGPORT for a port
			}
			ca, cert, key := ownFiles(t, srv)
			url := fmt.Sprintf(c.form, srv.Addr, ca, cert, key)
			if name == "postgres" {
				postgresTable(t, url)
			}
			rotation{url: url, revoke: func() {
				srv.Recertify()
				srv.Restart()
				for path, from := range map[string]string{ca: "ca", cert: "cert", key: "key"} {
					text, err := os.ReadFile(srv.Extra[from])
					if err != nil {
						t.Fatal(err)
					}
					replaceFile(t, path, string(text))
				}
			}}.under(t)
		})
	}
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

// TestFinding_L5_PasswordsOfPostgreSQL: of the password file that libpq has.
func TestFinding_L5_PasswordsOfPostgreSQL(t *testing.T) {
	srv := servers.Postgres(t, servers.Password("before"))
	admin := srv.URL
	noEnv(t, postgresEnv...)
	file := secretIn(t, "*:*:*:holder:one\n")
	t.Setenv("PGPASSFILE", file)
	postgresTable(t, admin)
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	do := must(t)
	do(conn.Exec(t.Context(), "CREATE ROLE holder LOGIN SUPERUSER PASSWORD 'one'"))
	rotation{url: "postgres://holder@" + srv.Addr + "/postgres?sslmode=disable", files: map[string]string{file: "*:*:*:holder:two\n"}, revoke: func() {
		do(conn.Exec(t.Context(), "ALTER ROLE holder PASSWORD 'two'"))
		do(conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'holder'"))
	}}.under(t)
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
