package comingfrom_test

import (
	"context"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/examples/comingfrom"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// table is a guarded resource in memory.
type table struct {
	newest fence.Token
	rows   []string
}

func (t *table) Write(ctx context.Context, token fence.Token, row string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if token < t.newest {
		return fence.ErrStale
	}
	t.newest, t.rows = token, append(t.rows, row)
	return nil
}

func TestPrograms(t *testing.T) {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db := &table{}
	for range 2 { // the name is free again
		if err := comingfrom.Locked(t.Context(), m, db); err != nil {
			t.Error(err)
		}
		if err := comingfrom.Job(t.Context(), m, []string{"a", "b"}, db); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"paid", "a", "b", "paid", "a", "b"}; !slices.Equal(db.rows, want) {
		t.Errorf("%v, want %v", db.rows, want)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
