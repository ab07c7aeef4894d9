package dynamodb

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// Get implements [store.Store], by one strong read.
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	read, err := s.table.Get(ctx, rowKey(key))
	if err != nil {
		return store.Record{}, err
	}
	if read.Row == nil {
		return store.Record{}, driver.NotFound(key)
	}
	return s.decode(key, read)
}

// List implements [store.Store], by strong reads of the whole table, page by page. It costs a read
// unit for every 4 KiB of the table, whatever the prefix.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		var filter table.Cond
		if prefix != "" {
			filter = table.Cond{
				Expr: "begins_with(#key, :prefix)", Names: map[string]string{"#key": attrKey},
				Values: table.Row{":prefix": &types.AttributeValueMemberS{Value: prefix}},
			}
		}
		var from table.Row
		for {
			rows, date, next, err := s.table.Page(ctx, from, filter)
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, row := range rows {
				if !yield(s.decode(textOf(row, attrKey), table.Read{Row: row, Date: date})) {
					return
				}
			}
			if from = next; from == nil {
				return
			}
		}
	}
}
