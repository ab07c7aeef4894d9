package interop

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence/fencesql"
	"github.com/leasehold/leasehold/flake"
)

// Ids go into a database and come out of it as they were, and it has them in their order: as numbers, as bytes and as text.
func TestIDsInDatabases(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			db := kind(t)
			short := []flake.ID{0, 1, 1 << 53, 1<<63 - 1}
			for _, l := range flake.Layouts() {
				if l.Bits() <= 64 {
					short = append(short, made[flake.ID](t, l)...)
				}
			}
			long := append(made[flake.ID96](t, flake.Scatter()), flake.ID96{}, flake.ID96{0: 0xff, 11: 0xff})
			bytes, text := "BLOB", "TEXT"
			if db.dialect == fencesql.PostgreSQL {
				bytes, text = "BYTEA", `TEXT COLLATE "C"`
			}
			comeBack(t, db, "numbers", "BIGINT", short, flake.ID.Compare, func(id flake.ID) any { return id })
			comeBack(t, db, "decimals", text, short, nil, func(id flake.ID) any { return id.String() })
			comeBack(t, db, "bytes", bytes, long, flake.ID96.Compare, func(id flake.ID96) any { return id })
			comeBack(t, db, "base32", text, long, flake.ID96.Compare, func(id flake.ID96) any { return id.Base32() })
			comeBack(t, db, "hex", text, long, flake.ID96.Compare, func(id flake.ID96) any { return id.Hex() })
		})
	}
}

// made are some ids of a layout, more of them than fit into a unit of time.
func made[T flake.Value](t *testing.T, l flake.Layout) []T {
	t.Helper()
	now := time.Now()
	g, err := flake.New[T](l, l.Nodes()-1, flake.FixedWindow(now.Add(-time.Hour), now.Add(time.Hour)), flake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	ids, err := g.NextN(300)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// comeBack writes ids into the column of a new table, as is says, and reads them in the column's order, which has to be that of
// compare, if that is given, and a NULL. No two tables of a test have one name: pgx remembers what a statement returned.
func comeBack[T flake.Value](t *testing.T, db *database, table, column string, ids []T, compare func(a, b T) int, as func(T) any) {
	t.Helper()
	conn, err := db.Conn(t.Context()) // the table is the connection's own
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	run := func(query string, args ...any) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), query, args...); err != nil {
			t.Fatalf("%s: %s: %v", column, query, err)
		}
	}
	run("CREATE TEMPORARY TABLE " + table + " (id " + column + ")")
	defer run("DROP TABLE " + table)
	run("BEGIN")
	for _, id := range ids {
		run("INSERT INTO "+table+" VALUES ($1)", as(id))
	}
	run("INSERT INTO " + table + " VALUES (NULL)")
	run("COMMIT")
	rows, err := conn.QueryContext(t.Context(), "SELECT id FROM "+table+" WHERE id IS NOT NULL ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var got []T
	for rows.Next() {
		var id T
		if err := rows.Scan(&id); err != nil {
			t.Fatalf("%s: %v", column, err)
		}
		got = append(got, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(ids)
	if compare != nil {
		slices.SortFunc(want, compare)
	} else {
		there := map[T]int{}
		for i, id := range got {
			there[id] = i
		}
		slices.SortFunc(want, func(a, b T) int { return there[a] - there[b] })
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d ids came back otherwise than the %d that were written", column, len(got), len(want))
	}
	var null sql.Null[T]
	if err := conn.QueryRowContext(t.Context(), "SELECT id FROM "+table+" WHERE id IS NULL").Scan(&null); err != nil || null.Valid {
		t.Errorf("%s: a NULL: %+v, %v", column, null, err)
	}
}
