package open

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/postgres"
)

var postgresEnv = []string{
	"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGTARGETSESSIONATTRS",
	"PGCONNECT_TIMEOUT", "PGSERVICE", "PGPASSFILE", "PGAPPNAME", "PGOPTIONS",
}

// postgresTable makes the table of a URL, as leasehold init does.
func postgresTable(t testing.TB, text string) {
	t.Helper()
	u, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	target, err := u.Postgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := postgres.Create(t.Context(), target.Pool, target.Table); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresURLs(t *testing.T) {
	srv := servers.Postgres(t) // before the variables are emptied: initdb reads them
	noEnv(t, postgresEnv...)
	refuseURL(t, srv.URL, "no table leasehold", "leasehold init postgres")
	postgresTable(t, srv.URL)
	postgresTable(t, srv.URL+"&table=other")
	st := tryURL(t, srv.URL)
	if p := store.Describe(st); p.Age || !p.Push {
		t.Errorf("%+v", p)
	}
	if p := store.Describe(tryURL(t, srv.URL+"&table=other&age=2s&notify=false")); !p.Age || p.Push {
		t.Errorf("%+v", p)
	}
	tryURL(t, strings.Replace(srv.URL, "postgres:", "postgresql:", 1))
	refuseURL(t, srv.URL+"&age=soon", "parameter age", "want a duration")
	refuseURL(t, srv.URL+"&notify=no", "want true or false")
	refuseURL(t, srv.URL+"&table=a.b.c", "SCHEMA.NAME")
	refuseURL(t, srv.URL+"&table=a&table=b", "table")
	refuseURL(t, srv.URL+"&ttl=1s", `"ttl"`, "take it out of the URL")
	refuseURL(t, "postgres:leases", "want // after the colon")
	refuseURL(t, "postgres://ada:hunter2@127.0.0.1:port/x", "port")
	refuseURL(t, "postgres://ada:hunter2@127.0.0.1:1/x?sslmode=never", "sslmode")
	refuseURL(t, "postgres://ada:hunter2%zz@127.0.0.1:1/x")
	refuseURL(t, "postgres://ada:hunter2@127.0.0.1:1/x?sslmode=disable", "is the server up")

	for name, value := range srv.Env {
		t.Setenv(name, value)
	}
	tryURL(t, "postgres://")
	tryURL(t, "postgres:///postgres?table=other")
	t.Setenv("PGOPTIONS", "-c default_transaction_read_only=on")
	refuseURL(t, "postgres://", "read only")
}

// TestPostgresFindsThePrimary: of several hosts, without a word about which is which.
func TestPostgresFindsThePrimary(t *testing.T) {
	primary := servers.Postgres(t)
	standby := servers.Postgres(t, servers.ReplicaOf(primary))
	noEnv(t, postgresEnv...)
	postgresTable(t, primary.URL)
	u, err := url.Parse(primary.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = standby.Addr + "," + primary.Addr
	tryURL(t, u.String())
	refuseURL(t, standby.URL, "name the primary", "target_session_attrs=read-write")
	refuseURL(t, standby.URL+"&target_session_attrs=any", "standby", "target_session_attrs=read-write")
}

func TestPostgresTLSAndPasswords(t *testing.T) {
	srv := servers.Postgres(t, servers.MutualTLS(), servers.Password("hunter2@right"))
	noEnv(t, postgresEnv...)
	postgresTable(t, srv.URL)
	tryURL(t, srv.URL)
	other := servers.Redis(t, servers.TLS()) // another authority
	wrong := strings.Replace(srv.URL, "right", "wrong", 1)
	refuseURL(t, wrong, "password authentication failed", "PGPASSWORD")
	refuseURL(t, strings.Replace(srv.URL, url.QueryEscape(srv.Extra["ca"]), url.QueryEscape(other.Extra["ca"]), 1), "certificate", "sslrootcert")
	refuseURL(t, srv.URL+"&sslcert=/none.pem", "sslcert")
	passwords := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(passwords, []byte("*:*:*:postgres:hunter2@right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSFILE", passwords)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("postgres")
	tryURL(t, u.String())
}

func TestPostgresTable(t *testing.T) {
	for text, want := range map[string]string{"postgres://h/d": postgres.DefaultTable, "postgresql://h/d?table=ops.Leases&sslmode=disable": "ops.Leases"} {
		u, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := u.PostgresTable(); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	u, err := Parse("memory:")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.PostgresTable(); err == nil {
		t.Error("a table in memory")
	}
	if _, err := u.Postgres(context.Background()); err == nil {
		t.Error("a pool for memory")
	}
}

func init() {
	certified["postgres"] = certificatesOf{
		start: servers.Postgres, form: "postgres://postgres@%s/postgres?sslmode=verify-full&sslrootcert=%s&sslcert=%s&sslkey=%s",
		clear: func(t *testing.T) {
			noEnv(t, postgresEnv...)
			for _, variable := range postgresEnv {
				_ = os.Unsetenv(variable) // the server, which is restarted, takes an empty PGPORT for a port
			}
		},
		prepare: func(t *testing.T, url string) { postgresTable(t, url) },
	}
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
