package interop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) {
	// gorm keeps its prepared statements in a cache that is never closed.
	goleak.VerifyTestMain(servers.Main(m), goleak.IgnoreTopFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

// database is one that is guarded, with the isolation that its transactions ask for.
type database struct {
	*sql.DB
	dialect   fencesql.Dialect
	isolation sql.IsolationLevel
	path      string // of SQLite's file
}

// kinds are the databases of these tests, and how a new one is opened.
var kinds = map[string]func(t testing.TB) *database{
	"PostgreSQL, read committed":  func(t testing.TB) *database { return postgres(t, sql.LevelReadCommitted, "") },
	"PostgreSQL, repeatable read": func(t testing.TB) *database { return postgres(t, sql.LevelRepeatableRead, "") },
	"PostgreSQL, serializable":    func(t testing.TB) *database { return postgres(t, sql.LevelSerializable, "") },
	"PostgreSQL, simple protocol": func(t testing.TB) *database {
		return postgres(t, sql.LevelDefault, "default_query_exec_mode=simple_protocol")
	},
	"SQLite, immediate":        func(t testing.TB) *database { return inFile(t, patient+"&_pragma=journal_mode(WAL)&_txlock=immediate") },
	"SQLite, deferred":         func(t testing.TB) *database { return inFile(t, patient+"&_pragma=journal_mode(WAL)") },
	"SQLite, rollback journal": func(t testing.TB) *database { return inFile(t, patient+"&_pragma=journal_mode(DELETE)") },
}

// patient has SQLite wait for another's lock, for a minute.
const patient = "_pragma=busy_timeout(60000)"

func postgres(t testing.TB, isolation sql.IsolationLevel, setting string) *database {
	t.Helper()
	dsn := servers.Postgres(t, servers.Shared()).URL
	if setting != "" {
		dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + setting
	}
	return &database{DB: open(t, "pgx", dsn), dialect: fencesql.PostgreSQL, isolation: isolation}
}

func inFile(t testing.TB, settings string) *database {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	return &database{DB: open(t, "sqlite", "file:"+path+"?"+settings), dialect: fencesql.SQLite, path: path}
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func (d *database) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (d *database) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := d.BeginTx(t.Context(), &sql.TxOptions{Isolation: d.isolation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// do calls f in a transaction, again and again while the database says that it may.
func (d *database) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	for {
		tx, err := d.BeginTx(ctx, &sql.TxOptions{Isolation: d.isolation})
		if err != nil {
			return err
		}
		if err = f(tx); err == nil {
			err = tx.Commit()
		} else {
			err = errors.Join(err, tx.Rollback())
		}
		if !again(err) {
			return err
		}
	}
}

// again reports whether a transaction that failed so is to be tried again from its beginning.
func again(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "40001"
	}
	return busy(err)
}

func busy(err error) bool {
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code()&0xff == sqlite3.SQLITE_BUSY
}

var tables atomic.Int64

// name returns the name of a table that nobody else uses.
func name(prefix string) string { return fmt.Sprintf("%s_%d", prefix, tables.Add(1)) }

// ledger is a table of marks, and a table that says under which tokens it was written.
type ledger struct {
	*database
	table        *fencesql.Table
	marks, lines string
}

func newLedger(t testing.TB, d *database) *ledger {
	t.Helper()
	l := &ledger{database: d, marks: name("marks"), lines: name("lines")}
	var err error
	if l.table, err = fencesql.NewTable(d.dialect, l.marks); err != nil {
		t.Fatal(err)
	}
	d.exec(t, l.table.Schema())
	d.exec(t, l.table.Schema()) // again is no harm
	id := map[fencesql.Dialect]string{fencesql.PostgreSQL: "bigserial", fencesql.SQLite: "integer PRIMARY KEY AUTOINCREMENT"}
	d.exec(t, "CREATE TABLE "+l.lines+" (id "+id[d.dialect]+", token bigint)")
	return l
}

// write is one write to the ledger under s.
func (l *ledger) write(ctx context.Context, s fence.Sequencer) error {
	return l.do(ctx, func(tx *sql.Tx) error {
		if err := l.table.Admit(ctx, tx, s); err != nil {
			return err
		}
		return l.add(ctx, tx, s)
	})
}

func (l *ledger) add(ctx context.Context, tx *sql.Tx, s fence.Sequencer) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO "+l.lines+" (token) VALUES ("+strconv.FormatUint(uint64(s.Token), 10)+")")
	return err
}

// written returns the tokens in the ledger.
func (l *ledger) written(t testing.TB) (all []fence.Token) {
	t.Helper()
	rows, err := l.QueryContext(t.Context(), "SELECT token FROM "+l.lines+" ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var token fence.Token
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
