package fencepgx_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencepgx"
	"github.com/leasehold/leasehold/fence/fencesql"
)

// Check the token in the same transaction as the write: nothing can come between them.
func ExampleAdmit() {
	ctx := context.Background()
	var pool *pgxpool.Pool  // the program's own
	var seq fence.Sequencer // at the holder: l.Sequencer()

	marks, err := fencesql.NewTable(fencesql.PostgreSQL, "leasehold_fence") // marks.Schema() makes it
	if err != nil {
		log.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := fencepgx.Admit(ctx, marks, tx, seq); err != nil { // first, and before any read
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - $1 WHERE id = $2", 100, 7)
		return err
	})
	if err != nil {
		log.Print(err) // a *fence.StaleError when a later term has begun: nothing is written
	}
}
