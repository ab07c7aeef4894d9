package resources

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	_ "github.com/jackc/pgx/v5/stdlib" // the drivers
	_ "modernc.org/sqlite"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
)

// database is a guarded table.
type database struct {
	db    *sql.DB
	marks *fencesql.Table
}

func openSQLite(_ context.Context, dir string) (Resource, error) {
	return openSQL("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=busy_timeout(2000)&_pragma=journal_mode(wal)&_txlock=immediate", fencesql.SQLite)
}

func openPostgres(_ context.Context, url string) (Resource, error) {
	return openSQL("pgx", url, fencesql.PostgreSQL)
}

func openSQL(driver, address string, d fencesql.Dialect) (*database, error) {
	db, err := sql.Open(driver, address)
	if err != nil {
		return nil, err
	}
	marks, err := fencesql.NewTable(d, "marks")
	return &database{db, marks}, err
}

// makeTables makes the log and the marks.
func makeTables(ctx context.Context, kind, address string) error {
	opener, id := openSQLite, "integer PRIMARY KEY AUTOINCREMENT"
	if kind == "postgres" {
		opener, id = openPostgres, "bigserial PRIMARY KEY"
	}
	r, err := opener(ctx, address)
	if err != nil {
		return err
	}
	d := r.(*database)
	_, err = d.db.ExecContext(ctx, d.marks.Schema())
	if err == nil {
		_, err = d.db.ExecContext(ctx, "CREATE TABLE log (id "+id+", name text NOT NULL, line text NOT NULL)")
	}
	return errors.Join(err, d.Close())
}

func (d *database) Write(ctx context.Context, s fence.Sequencer, line string) error {
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	err = d.marks.Admit(ctx, tx, s)
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO log (name, line) VALUES ($1, $2)", s.Name, line)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (d *database) Log(ctx context.Context, name string) (lines []string, err error) {
	rows, err := d.db.QueryContext(ctx, "SELECT line FROM log WHERE name = $1 ORDER BY id", name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, rows.Err()
}

func (d *database) Close() error { return d.db.Close() }
