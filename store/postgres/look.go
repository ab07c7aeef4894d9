package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// look is what can be seen of the server, the session and the table.
type look struct {
	version, role, database string
	readOnly, standby       bool
	encoding                string
	fullPages               string
	replication             replication
	clock                   time.Time
	schema, table           string // "" when the table is missing
	kind, persistence       string // of the table
	granted                 []string
	columns                 []string
	unique                  bool
	pid                     uint32 // of the server's process
	pooled                  bool   // it isn't the one that the connection was told of
}

const lookSQL = `SELECT current_setting('server_version'), current_user::text, current_database()::text,
  current_setting('transaction_read_only') = 'on', pg_is_in_recovery(), current_setting('server_encoding'),
  current_setting('full_page_writes'), ` + replicationSQL + `,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_backend_pid(),
  coalesce(n.nspname, '')::text, coalesce(c.relname, '')::text, coalesce(c.relkind, ' ')::text, coalesce(c.relpersistence, ' ')::text,
  ARRAY(SELECT p FROM unnest(ARRAY['SELECT','INSERT','UPDATE','DELETE']) p WHERE has_table_privilege(c.oid, p)),
  ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN '' ELSE ' NULL' END
        FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1),
  EXISTS(SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
         WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1 AND a.attname = 'key')
FROM (VALUES (1)) AS one
LEFT JOIN pg_class c ON c.oid = to_regclass($1::text)
LEFT JOIN pg_namespace n ON n.oid = c.relnamespace`

// look looks, on a connection of the pool to the primary if there is one.
func (s *Store) look(ctx context.Context) (look, error) {
	stale := int(s.pool.Stat().IdleConns()) + 1
	for try := 0; ; try++ {
		l, err := s.lookOnce(ctx, try < stale)
		if !errors.Is(err, errReadOnly) {
			return l, err
		}
	}
}

func (s *Store) lookOnce(ctx context.Context, others bool) (l look, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return l, s.failed(ctx, err)
	}
	defer conn.Release()
	t, err := ident(s.opts.Table)
	if err != nil {
		return l, err
	}
	var micros int64
	into := []any{&l.version, &l.role, &l.database, &l.readOnly, &l.standby, &l.encoding, &l.fullPages}
	into = append(append(into, l.replication.columns()...), &micros, &l.pid,
		&l.schema, &l.table, &l.kind, &l.persistence, &l.granted, &l.columns, &l.unique)
	err = conn.QueryRow(ctx, lookSQL, pgx.QueryExecModeExec, t).Scan(into...)
	if err != nil {
		return l, s.failed(ctx, err)
	}
	l.clock = time.UnixMicro(micros)
	if warningsOf(conn.Conn()) == nil {
		s.watch.deaf.Store(true)
	}
	l.pooled = l.pid != conn.Conn().PgConn().PID()
	if l.readOnly && others {
		discard(conn.Conn())
		return l, errReadOnly
	}
	return l, nil
}

// problem is something that keeps the engine from working with what it sees, and what to do.
type problem struct{ what, detail, advice string }

// problems returns all that Open refuses, the worst first.
func (l look) problems(table string) (all []problem) {
	add := func(what, advice, detail string, args ...any) {
		all = append(all, problem{what, fmt.Sprintf(detail, args...), advice})
	}
	switch {
	case l.standby:
		add("role", adviceReadOnly, "the server is a standby, which can't be written and whose reads are stale")
	case l.readOnly:
		add("role", "set default_transaction_read_only to off for this role and database", "the session is read-only")
	}
	if l.encoding != "UTF8" {
		add("encoding", "use a database made with ENCODING 'UTF8'", "the database's encoding is %s", l.encoding)
	}
	if l.table == "" {
		add("table", "make it: leasehold init postgres, or postgres.Create, or the SQL that leasehold init postgres --print shows; or name the right one (search_path counts)",
			"there is no table %s in the database %s that the role %s can see", table, l.database, l.role)
		return all
	}
	want := []string{"key text", "record json", "version text", "written timestamp with time zone"}
	if l.kind != "r" || !slices.Equal(l.columns, want) || !l.unique {
		add("table", "name another table, or drop this one if nobody needs it, and make it again", "%s is not a table of Leasehold's: it has %s, not %s and a unique key",
			table, strings.Join(l.columns, ", "), strings.Join(want, ", "))
	}
	switch l.persistence {
	case "u":
		add("table", "ALTER TABLE … SET LOGGED", "%s is unlogged: a crash of the server empties it", table)
	case "t":
		add("table", "make an ordinary table, or name it with its schema", "%s is a temporary table", table)
	}
	if len(l.granted) < 4 {
		add("permissions", "GRANT SELECT, INSERT, UPDATE, DELETE ON "+table+" TO "+l.role,
			"the role %s has only these on %s: %s", l.role, table, orNone(l.granted))
	}
	return all
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// refuse returns the first problem as an error.
func (l look) refuse(table string) error {
	for _, p := range l.problems(table) {
		return fmt.Errorf("%s: %s", p.detail, p.advice)
	}
	return nil
}
