package comingfrom

import (
	"context"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// Database is the guarded resource: it refuses a token that is older than one it has seen.
type Database interface {
	Write(ctx context.Context, token fence.Token, row string) error
}

// Locked replaces a mutex of etcd's concurrency package.
func Locked(ctx context.Context, m *lease.Manager, db Database) error {
	l, err := m.Acquire(ctx, "billing")
	if err != nil {
		return err
	}
	defer func() { _ = l.Release(context.WithoutCancel(ctx)) }()
	return db.Write(l.Context(), l.Token(), "paid")
}

// Job replaces a mutex that the program extends by itself.
func Job(ctx context.Context, m *lease.Manager, rows []string, db Database) error {
	return m.Run(ctx, "import", func(ctx context.Context, l *lease.Lease) error {
		for _, row := range rows {
			if err := l.Check(); err != nil {
				return err
			}
			if err := db.Write(ctx, l.Token(), row); err != nil {
				return err
			}
		}
		return nil
	})
}
