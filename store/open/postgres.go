//go:build !local

package open

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/postgres"
)

// The parameters of a PostgreSQL URL that are Leasehold's own. The others are libpq's, and what
// isn't there comes from PGHOST, PGPASSWORD, PGSSLMODE, PGSERVICE and the like, or ~/.pgpass.
const (
	paramTable  = "table"
	paramAge    = "age"    // opts in to Age: the bound on steps of the server's clock
	paramNotify = "notify" // false: no NOTIFY, see postgres.Options
)

// The two names of the scheme, both of which libpq knows.
const (
	postgresName   = "postgres"
	postgresqlName = "postgresql"
)

var (
	_ = register(schemeOfPostgres(postgresName, "a table of a PostgreSQL database", "psql", "pg", "pgx"))
	_ = register(schemeOfPostgres(postgresqlName, "the same"))
)

func schemeOfPostgres(name, doc string, alike ...string) Scheme {
	return Scheme{
		Name: name, Form: name + "://[USER@]HOST[:PORT][,HOST[:PORT]…]/DATABASE[?table=TABLE]", Doc: doc,
		parse: func(rest string) (string, error) {
			_, err := parsePostgres(rest)
			return rest, err
		},
		open: openPostgres, port: "5432", called: "PostgreSQL", tag: "local", alike: alike,
	}
}

// postgresURL is what a PostgreSQL URL says.
type postgresURL struct {
	dsn  string // without what is Leasehold's own
	opts postgres.Options
	set  map[string]bool // which of libpq's parameters are there
}

// parsePostgres takes Leasehold's own parameters out. What libpq knows is checked when the pool is
// made.
func parsePostgres(rest string) (u postgresURL, err error) {
	place, query, _ := strings.Cut(rest, "?")
	if !strings.HasPrefix(place, "//") {
		return u, errors.New("want // after the colon, and then a host")
	}
	// The driver would take the rest for no part of the URL.
	if _, err := url.Parse("postgres:" + place); err != nil || strings.Contains(place, "#") {
		if err := misspelt(place); err != nil {
			return u, err
		}
	}
	own := server{params: map[string]string{}}
	var others []string
	u.set = map[string]bool{}
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		switch name {
		case paramTable, paramAge, paramNotify:
			if err := own.readParams(part, []string{name}); err != nil {
				return u, err
			}
		case "":
		default:
			others, u.set[name] = append(others, part), true
		}
	}
	u.opts.Table = own.params[paramTable]
	if u.opts.ClockStep, err = own.duration(paramAge, 0); err != nil {
		return u, err
	}
	notify, err := own.boolean(paramNotify, true)
	if err != nil {
		return u, err
	}
	u.opts.NoNotify = !notify
	if u.dsn = "postgres:" + place; len(others) > 0 {
		u.dsn += "?" + strings.Join(others, "&")
	}
	_, err = postgres.Schema(u.opts.Table) // a name that it refuses
	return u, err
}

// config returns the pool's configuration, whose connections begin with the credentials that are
// there then.
func (u postgresURL) config(log *slog.Logger) (*pgxpool.Config, error) {
	config, err := u.parse()
	if err == nil {
		config.BeforeConnect = u.refresh(log)
	}
	return config, err
}

// parse reads what the URL, the environment and the files say now.
func (u postgresURL) parse() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(u.dsn)
	if err != nil {
		return nil, u.hide(err)
	}
	config.ShouldPing = postgres.ShouldPing
	postgres.HearWarnings(config)
	conn := config.ConnConfig
	given := func(param, env string) bool { return u.set[param] || os.Getenv(env) != "" }
	if !given("target_session_attrs", "PGTARGETSESSIONATTRS") {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if !given("connect_timeout", "PGCONNECT_TIMEOUT") {
		conn.ConnectTimeout = 5 * time.Second
	}
	// Long enough for a holder to keep its own from one renewal to the next: who waits needs none
	// but the one that listens.
	if !u.set["pool_max_conn_idle_time"] {
		config.MaxConnIdleTime, config.HealthCheckPeriod = time.Minute, 15*time.Second
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "leasehold"
	}
	return config, nil
}

// refresh has each connection begin with the credentials that are there then: the password file,
// the certificates, the service file. What can't be read leaves what was read before in force; from
// pgx 5.13 on not a certificate, whose files pgx reads itself at each handshake.
func (u postgresURL) refresh(log *slog.Logger) func(context.Context, *pgx.ConnConfig) error {
	var mu sync.Mutex
	var last *pgxpool.Config
	told := ""
	return func(_ context.Context, conn *pgx.ConnConfig) error {
		fresh, err := u.parse()
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			last, told = fresh, ""
		} else if why := err.Error(); why != told {
			told = why
			log.Warn("a file with a certificate or a secret has changed and can't be read; what it held before stays in force", "error", why)
		}
		if last != nil {
			// The whole of it: from pgx 5.13 on, certificates stand beside the TLS configuration.
			conn.Config = *last.ConnConfig.Config.Copy()
		}
		return nil
	}
}

// hide takes what may be a password out of an error of the parser, which masks it only as well as
// it can.
func (u postgresURL) hide(err error) error {
	text := err.Error()
	authority, _, _ := strings.Cut(strings.TrimPrefix(u.dsn, "postgres://"), "/")
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		if _, password, ok := strings.Cut(authority[:i], ":"); ok && password != "" {
			text = strings.ReplaceAll(text, password, "xxxxx")
			if plain, err := url.PathUnescape(password); err == nil {
				text = strings.ReplaceAll(text, plain, "xxxxx")
			}
		}
	}
	return errors.New(text)
}

// PostgresTarget is a PostgreSQL table, and a pool for it.
type PostgresTarget struct {
	Pool  *pgxpool.Pool
	Table string
}

// Close closes the pool.
func (t PostgresTarget) Close() { t.Pool.Close() }

// PostgresTable returns the table that the URL names. It does no I/O.
func (u URL) PostgresTable() (string, error) {
	if u.Scheme.Name != postgresName && u.Scheme.Name != postgresqlName {
		return "", fmt.Errorf("%s: is not a PostgreSQL URL: want postgres://HOST/DATABASE", Redact(u.String()))
	}
	p, err := parsePostgres(u.Rest)
	if p.opts.Table == "" {
		p.opts.Table = postgres.DefaultTable
	}
	return p.opts.Table, err
}

// Postgres returns the table that the URL names, and a pool for it. It is for work that a store has
// no method for. It does not connect yet.
func (u URL) Postgres(ctx context.Context) (PostgresTarget, error) { return u.postgres(ctx, Options{}) }

func (u URL) postgres(ctx context.Context, opts Options) (PostgresTarget, error) {
	table, err := u.PostgresTable()
	if err != nil {
		return PostgresTarget{}, err
	}
	p, err := parsePostgres(u.Rest)
	if err != nil {
		return PostgresTarget{}, err
	}
	config, err := p.config(opts.log())
	if err != nil {
		return PostgresTarget{}, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return PostgresTarget{pool, table}, err
}

func openPostgres(ctx context.Context, rest string, opts Options) (store.Store, error) {
	target, err := URL{Scheme: Scheme{Name: postgresName}, Rest: rest}.postgres(ctx, opts)
	if err != nil {
		return nil, err
	}
	u, err := parsePostgres(rest)
	if err != nil {
		target.Close()
		return nil, err
	}
	st, err := postgres.Open(ctx, target.Pool, u.opts)
	if err != nil {
		target.Close()
		return nil, err
	}
	return postgresStore{st, target}, nil
}

// postgresStore closes its pool with it.
type postgresStore struct {
	*postgres.Store
	target PostgresTarget
}

func (s postgresStore) Close() error {
	err := s.Store.Close()
	s.target.Close()
	return err
}
