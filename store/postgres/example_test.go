package postgres_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/postgres"
)

// Hold a name in a table of PostgreSQL, through the program's own pool.
func ExampleOpen() {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig("postgres://app@db1,db2/app?target_session_attrs=read-write")
	if err != nil {
		log.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := postgres.Create(ctx, pool, "leasehold"); err != nil { // does nothing when it is there
		log.Fatal(err)
	}
	st, err := postgres.Open(ctx, pool, postgres.Options{Table: "leasehold"})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	err = m.Run(ctx, "billing", func(_ context.Context, l *lease.Lease) error {
		log.Print("we hold billing, with token ", l.Token())
		return nil
	})
	log.Print(err)
}
