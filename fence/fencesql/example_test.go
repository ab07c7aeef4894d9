package fencesql_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
)

// Check the token in the same transaction as the write: nothing can come between them.
func ExampleTable_Admit() {
	ctx := context.Background()
	var db *sql.DB          // the program's own, of PostgreSQL
	var seq fence.Sequencer // at the holder: l.Sequencer()

	marks, err := fencesql.NewTable(fencesql.PostgreSQL, "leasehold_fence") // marks.Schema() makes it
	if err != nil {
		log.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()              // no effect after Commit
	if err := marks.Admit(ctx, tx, seq); err != nil { // first, and before any read
		log.Print(err) // a *fence.StaleError when a later term has begun
		return
	}
	if _, err := tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - $1 WHERE id = $2", 100, 7); err != nil {
		log.Print(err)
		return
	}
	if err := tx.Commit(); err != nil {
		log.Print(err)
	}
}
