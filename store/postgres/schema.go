package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultTable is the table of [Options] that name none.
const DefaultTable = "leasehold"

// ident returns a table's name, or schema.name, as SQL writes it.
func ident(table string) (string, error) {
	if table == "" {
		table = DefaultTable
	}
	parts := strings.Split(table, ".")
	for _, p := range parts {
		const most = 63 // longer ones are cut off by the server
		if p == "" || len(p) > most || strings.ContainsRune(p, 0) || len(parts) > 2 {
			return "", fmt.Errorf("table %q: want NAME or SCHEMA.NAME, each of 1 to %d bytes", table, most)
		}
	}
	return pgx.Identifier(parts).Sanitize(), nil
}

// Schema returns the SQL that makes the table, DefaultTable for "". It can be run again. A table's
// name may have a schema: "ops.leases".
func Schema(table string) (string, error) {
	t, err := ident(table)
	if err != nil {
		return "", err
	}
	return `CREATE TABLE IF NOT EXISTS ` + t + ` (
    key     text COLLATE "C" PRIMARY KEY,
    version text COLLATE "C" NOT NULL,
    record  json NOT NULL,
    written timestamptz NOT NULL
) WITH (
    fillfactor = 50, -- room for new row versions beside the old ones: no index changes
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0
);
COMMENT ON TABLE ` + t + ` IS 'Records of Leasehold: who owns what. Change them with leasehold only.';
`, nil
}

// Grants returns the SQL that gives a role what the engine needs.
func Grants(table, role string) (string, error) {
	t, err := ident(table)
	if err != nil {
		return "", err
	}
	if role == "" {
		return "", errors.New(`role "": want the name of the role that is to use the table`)
	}
	r := pgx.Identifier{role}.Sanitize()
	sql := "GRANT SELECT, INSERT, UPDATE, DELETE ON " + t + " TO " + r + ";\n"
	if schema, _, ok := strings.Cut(table, "."); ok {
		sql = "GRANT USAGE ON SCHEMA " + pgx.Identifier{schema}.Sanitize() + " TO " + r + ";\n" + sql
	}
	return sql, nil
}

// Create makes the table unless it is there. It needs the permission to make tables in the schema,
// which must exist. Two may call it at once.
func Create(ctx context.Context, pool *pgxpool.Pool, table string) error {
	sql, err := Schema(table)
	if err != nil {
		return err
	}
	// IF NOT EXISTS of two at once: the one that comes second meets the first one's rows of the
	// catalogue.
	met := []string{codeUnique, codeDuplicateTable, codeDuplicateObject}
	for range 3 {
		_, err = pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		var p *pgconn.PgError
		if !errors.As(err, &p) || !slices.Contains(met, p.Code) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("create the table %s: %w", orDefault(table), explain(err, orDefault(table)))
	}
	return nil
}

func orDefault(table string) string {
	if table == "" {
		return DefaultTable
	}
	return table
}

// statements are those of one table.
type statements struct {
	get, confirm, confirmAll, first, next, changed, together string
	create, update, remove                                   changeStatement
}

// changeStatement is a statement for a change, and the same one with replicationSQL, so that a look
// at the server's settings never keeps a connection from the next change.
type changeStatement struct{ plain, looking string }

// The pieces of the statements. age is in microseconds, and NULL where somebody wrote an infinite
// time.
const (
	readOnly = `current_setting('transaction_read_only') = 'on'`
	columns  = `r.version, r.record::text, CASE WHEN isfinite(r.written) THEN (extract(epoch FROM clock_timestamp() - r.written) * 1000000)::bigint END`

	// durable has the commit wait for the log where the session wouldn't.
	durable = `CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END`
	// barrier is text that is never NULL on a primary. It has the transaction end in a commit,
	// which waits for all that writes wait for; what its snapshot showed was committed before.
	barrier = `CASE WHEN NOT (` + readOnly + `) THEN pg_logical_emit_message(true, 'leasehold', '')::text || coalesce(` + durable + `, '') END`
)

func newStatements(t string) statements {
	// write is a change, which returns a row if it was done, and the record that was there instead
	// if not. Its arguments from telling on are those of tell.
	write := func(change string, telling int) changeStatement {
		head := `WITH done AS (` + change + ` RETURNING true AS ok)
SELECT d.ok IS NOT NULL, ` + columns + `,
  CASE WHEN d.ok THEN ` + durable + ` END, CASE WHEN d.ok THEN ` + tell(telling) + ` END`
		from := `
FROM (VALUES (1)) AS one
LEFT JOIN done d ON true
LEFT JOIN ` + t + ` r ON r.key = $1 AND d.ok IS NULL`
		return changeStatement{plain: head + from, looking: head + `, ` + replicationSQL + from}
	}
	list := func(after string) string {
		return `SELECT ` + readOnly + `, r.key, ` + columns + `
FROM (VALUES (1)) AS one
LEFT JOIN (SELECT * FROM ` + t + ` WHERE key ` + after + ` $1::text AND key < $2::text ORDER BY key LIMIT $3::int) r ON true
ORDER BY r.key`
	}
	return statements{
		get: `SELECT ` + readOnly + `, ` + columns + ` FROM (VALUES (1)) AS one LEFT JOIN ` + t + ` r ON r.key = $1::text`,
		confirm: `SELECT b.none OR ` + readOnly + `, ` + columns + `
FROM (SELECT ` + barrier + ` IS NULL AS none) AS b LEFT JOIN ` + t + ` r ON r.key = $1::text`,
		confirmAll: `SELECT b.none OR ` + readOnly + `, w.n, ` + columns + `
FROM (SELECT ` + barrier + ` IS NULL AS none) AS b, unnest($1::text[]) WITH ORDINALITY AS w(key, n) LEFT JOIN ` + t + ` r ON r.key = w.key`,
		create: write(`INSERT INTO `+t+` (key, version, record, written)
  VALUES ($1::text, $2::text, $3::text::json, clock_timestamp()) ON CONFLICT (key) DO NOTHING`, 4),
		update: write(`UPDATE `+t+` SET version = $2::text, record = $3::text::json, written = clock_timestamp()
  WHERE key = $1::text AND version = $9::text`, 4),
		remove:   write(`DELETE FROM `+t+` WHERE key = $1::text AND version = $2::text`, 3),
		together: togetherSQL(t),
		first:    list(">="), next: list(">"),
		changed: `SELECT ` + readOnly + `, r.n, ` + columns + `
FROM (VALUES (1)) AS one
LEFT JOIN (
  SELECT w.n, t.* FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w(key, version, n)
  LEFT JOIN ` + t + ` t ON t.key = w.key WHERE coalesce(t.version, '') <> w.version
) r ON true`,
	}
}

// togetherSQL changes many records, each if it has its version, and returns a row for each: its
// number, and whether it was changed. Its arguments are keys, versions, next versions, records, and
// those of tell, of which the last two are one for each. Records that somebody else has locked are
// left alone: nobody waits for them but who wants them, and two that change the same ones don't
// wait for each other for ever.
func togetherSQL(t string) string {
	return `WITH w AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $8::int[], $9::text[]) WITH ORDINALITY AS w(key, version, next, record, number, channel, n)
), mine AS MATERIALIZED (
  SELECT r.at, w.* FROM w, LATERAL (SELECT ctid AS at FROM ` + t + ` r WHERE r.key = w.key AND r.version = w.version FOR UPDATE SKIP LOCKED) r
), done AS (
  UPDATE ` + t + ` r SET version = mine.next, record = mine.record::json, written = clock_timestamp()
  FROM mine WHERE r.ctid = mine.at AND r.key = mine.key AND r.version = mine.version RETURNING mine.n
)
SELECT w.n::int, d.n IS NOT NULL, CASE WHEN d.n IS NOT NULL THEN ` + durable + ` END,
  CASE WHEN d.n IS NOT NULL THEN ` + tellOf("w.key", "w.number", "w.channel", 5) + ` END
FROM w LEFT JOIN done d ON d.n = w.n`
}
