package postgres

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// with returns dsn with parameters changed.
func with(t testing.TB, dsn string, change func(u *url.URL, q url.Values)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	change(u, q)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestErrorsSayWhatToDo tries what goes wrong when somebody sets it up.
func TestErrorsSayWhatToDo(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	secure := servers.Postgres(t, servers.TLS(), servers.Password("right-secret"), servers.Shared())
	other := servers.Postgres(t, servers.TLS(), servers.Set("log_min_messages", "fatal"), servers.Shared())
	table := newTable(t, srv.URL)
	conn := admin(t, srv.URL)
	mustExec(t, conn, `DROP ROLE IF EXISTS nobody_special`)
	mustExec(t, conn, `CREATE ROLE nobody_special LOGIN`)
	for _, sql := range []string{
		"DROP DATABASE IF EXISTS latin",
		"CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'",
		"CREATE UNLOGGED TABLE IF NOT EXISTS unlogged (LIKE " + table + " INCLUDING ALL)",
		"CREATE TABLE IF NOT EXISTS of_another (id int PRIMARY KEY, name text)",
		"CREATE TABLE IF NOT EXISTS without_key (LIKE " + table + ")",
		"CREATE OR REPLACE VIEW a_view AS SELECT * FROM " + table,
	} {
		mustExec(t, conn, sql)
	}
	as := func(user string) string {
		return with(t, srv.URL, func(u *url.URL, _ url.Values) { u.User = url.User(user) })
	}
	for name, c := range map[string]struct {
		dsn, table string
		want       []string
	}{
		"no such table":    {srv.URL, "missing", []string{"no table missing", "leasehold init postgres", "postgres.Create"}},
		"no such schema":   {srv.URL, "nowhere.leases", []string{"no table nowhere.leases", "leasehold init postgres"}},
		"bad name":         {srv.URL, "a.b.c", []string{`table "a.b.c"`, "SCHEMA.NAME"}},
		"unlogged":         {srv.URL, "unlogged", []string{"unlogged", "SET LOGGED"}},
		"somebody else's":  {srv.URL, "of_another", []string{"not a table of Leasehold's", "id integer", "name another table"}},
		"no key":           {srv.URL, "without_key", []string{"not a table of Leasehold's", "unique key"}},
		"a view":           {srv.URL, "a_view", []string{"not a table of Leasehold's"}},
		"no permission":    {as("nobody_special"), table, []string{"nobody_special", "none", "GRANT SELECT, INSERT, UPDATE, DELETE ON " + table + " TO nobody_special"}},
		"no such role":     {as("stranger"), table, []string{"stranger", "check the user"}},
		"no such database": {with(t, srv.URL, func(u *url.URL, _ url.Values) { u.Path = "/missing" }), table, []string{`"missing"`, "database that exists"}},
		"encoding":         {with(t, srv.URL, func(u *url.URL, _ url.Values) { u.Path = "/latin" }), table, []string{"LATIN1", "ENCODING 'UTF8'"}},
		"read-only":        {with(t, srv.URL, func(_ *url.URL, q url.Values) { q.Set("default_transaction_read_only", "on") }), table, []string{"read-only", "default_transaction_read_only"}},
		"unreachable":      {at(t, srv.URL, servers.FreeAddr(t)), table, []string{"connection refused", "is the server up"}},
		"wrong password": {with(t, secure.URL, func(u *url.URL, _ url.Values) { u.User = url.UserPassword("postgres", "wrong-secret") }), "",
			[]string{"password authentication failed", "PGPASSWORD"}},
		"no password":       {with(t, secure.URL, func(u *url.URL, _ url.Values) { u.User = url.User("postgres") }), "", []string{"PGPASSWORD"}},
		"wrong authority":   {with(t, secure.URL, func(_ *url.URL, q url.Values) { q.Set("sslrootcert", other.Extra["ca"]) }), "", []string{"certificate", "sslrootcert"}},
		"no TLS there":      {with(t, srv.URL, func(_ *url.URL, q url.Values) { q.Set("sslmode", "require") }), table, []string{"refused TLS", "sslmode=disable"}},
		"TLS wanted there":  {with(t, secure.URL, func(_ *url.URL, q url.Values) { q.Set("sslmode", "disable"); q.Del("sslrootcert") }), "", []string{"no encryption", "sslmode"}},
		"negative step":     {"", "", nil},
		"all is well there": {secure.URL, "missing", []string{"no table missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{Table: c.table}
			if c.dsn == "" {
				c.dsn, opts.ClockStep, c.want = srv.URL, -time.Second, []string{"ClockStep -1s"}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := openOwner(ctx, c.dsn, opts)
			if err == nil {
				s.Close()
				t.Fatal("opened")
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

func TestAServerOfAnotherName(t *testing.T) {
	srv := servers.Postgres(t, servers.TLS(), servers.Password("right-secret"), servers.Shared())
	config, err := pgxpool.ParseConfig(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.TLSConfig.ServerName = "elsewhere"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = Open(t.Context(), pool, Options{})
	if err == nil || !strings.Contains(err.Error(), "elsewhere") || !strings.Contains(err.Error(), "by the name in its certificate") {
		t.Errorf("%v", err)
	}
}

// TestTheRightsThatAreAsked: what Grants gives is enough, and a role that loses one is told which.
func TestTheRightsThatAreAsked(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	conn := admin(t, srv.URL)
	for _, sql := range []string{
		`DROP SCHEMA IF EXISTS "Ops" CASCADE`, `DROP ROLE IF EXISTS "the app"`, `CREATE SCHEMA "Ops"`, `CREATE ROLE "the app" LOGIN`,
	} {
		mustExec(t, conn, sql)
	}
	pool := newPool(t, srv.URL)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { errs <- Create(t.Context(), pool, "Ops.Leases") }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	grants, err := Grants("Ops.Leases", "the app")
	if err != nil {
		t.Fatal(err)
	}
	for sql := range strings.SplitSeq(strings.TrimSpace(grants), "\n") {
		mustExec(t, conn, sql)
	}
	dsn := with(t, srv.URL, func(u *url.URL, _ url.Values) { u.User = url.User("the app") })
	s := mustOpen(t, dsn, Options{Table: "Ops.Leases"})
	for _, f := range s.Inspect(t.Context()) {
		if f.Status != driver.StatusOK {
			t.Errorf("%+v", f)
		}
	}
	if err := Create(t.Context(), s.pool, "Ops.Other"); err == nil || !strings.Contains(err.Error(), "CREATE on its schema") {
		t.Errorf("made a table without the right: %v", err)
	}
	mustExec(t, conn, `REVOKE DELETE ON "Ops"."Leases" FROM "the app"`)
	rec := storetest.MustPut(t, s, held("k", 1))
	if err := s.Delete(t.Context(), "k", rec.Version); err == nil || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, UPDATE, DELETE ON Ops.Leases") {
		t.Errorf("deleted without the right: %v", err)
	}
	failed := 0
	for _, f := range s.Inspect(t.Context()) {
		if f.Status == driver.StatusFail && f.What == "permissions" {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d findings about permissions, want what was tried and what is granted", failed)
	}
	mustExec(t, conn, `DROP TABLE "Ops"."Leases"`)
	if _, err := s.Get(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "no table Ops.Leases") {
		t.Errorf("the table was dropped: %v", err)
	}
}

func TestInspectWarns(t *testing.T) {
	srv := servers.Postgres(t, servers.Set("fsync", "off"), servers.Set("synchronous_commit", "off"))
	s := mustOpen(t, srv.URL, Options{Table: newTable(t, srv.URL), ClockStep: 3 * time.Second})
	if s.Properties().Fencing != store.FencingPerPrimary {
		t.Error("a server that syncs nothing is trusted")
	}
	got := map[string]driver.Finding{}
	for _, f := range s.Inspect(t.Context()) {
		got[f.What] = f
	}
	if f := got["durability"]; f.Status != driver.StatusFail || !strings.Contains(f.Advice, "fsync=on") {
		t.Errorf("%+v", f)
	}
	if f := got["clock"]; f.Status != driver.StatusOK || !strings.Contains(f.Detail, "3s") {
		t.Errorf("%+v", f)
	}
	srv.Kill()
	f := s.Inspect(t.Context())
	if len(f) != 1 || f[0].Status != driver.StatusFail || !strings.Contains(f[0].Detail, "is the server up") {
		t.Errorf("with the server gone: %+v", f)
	}
}
