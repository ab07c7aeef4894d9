package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
)

// Cond is a condition, or a filter, in DynamoDB's expression language.
type Cond struct {
	Expr   string
	Names  map[string]string // for the #names in Expr
	Values Row               // for the :values in Expr
	// Absent: the condition also holds where there is no row. Then it may hold again after the row
	// that the write made was deleted.
	Absent bool
}

// RefusedError says that a write was not done, now or later, because its condition didn't hold.
type RefusedError struct {
	Row  Row       // what was there instead; nil where there was nothing
	Date time.Time // as in Read
}

func (e *RefusedError) Error() string { return "the condition of the write didn't hold" }

// Put writes the whole row if cond holds. mine recognises the row as this very write's.
//
// Its errors are those of every write here: *[RefusedError]; one that matches
// [store.ErrUnknownOutcome]; any other says that the write was not done.
func (t *Table) Put(ctx context.Context, key, row Row, cond Cond, mine func(Row) bool) error {
	in := &dynamodb.PutItemInput{
		TableName: &t.Name, Item: row, ConditionExpression: text(cond.Expr), ExpressionAttributeNames: cond.Names,
		ExpressionAttributeValues: cond.Values, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity: t.counted(),
	}
	return t.write(ctx, key, mine, call{op: "PutItem", once: cond.Absent, size: Size(row), send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		out, err := t.client.PutItem(ctx, in, opts)
		if err != nil {
			return answer{}, err
		}
		return answer{date: date(out.ResultMetadata), capacity: out.ConsumedCapacity, write: true}, nil
	}})
}

// Update changes attributes of a row, by an update expression that uses the names and values of
// cond too, if cond holds. Attributes that it doesn't name stay. mine recognises the row as this
// very write's.
func (t *Table) Update(ctx context.Context, key Row, update string, cond Cond, mine func(Row) bool) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &t.Name, Key: key, UpdateExpression: &update, ConditionExpression: text(cond.Expr),
		ExpressionAttributeNames: cond.Names, ExpressionAttributeValues: cond.Values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld, ReturnConsumedCapacity: t.counted(),
	}
	return t.write(ctx, key, mine, call{op: "UpdateItem", once: cond.Absent, size: Size(cond.Values), send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		out, err := t.client.UpdateItem(ctx, in, opts)
		if err != nil {
			return answer{}, err
		}
		return answer{date: date(out.ResultMetadata), capacity: out.ConsumedCapacity, write: true}, nil
	}})
}

// Delete removes the row if cond holds. Nothing is left to recognise: a deletion that had an
// unclear attempt and then finds another row, or none, has an unknown outcome.
func (t *Table) Delete(ctx context.Context, key Row, cond Cond) error {
	in := &dynamodb.DeleteItemInput{
		TableName: &t.Name, Key: key, ConditionExpression: text(cond.Expr), ExpressionAttributeNames: cond.Names,
		ExpressionAttributeValues: cond.Values, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnConsumedCapacity: t.counted(),
	}
	return t.write(ctx, key, nil, call{op: "DeleteItem", once: cond.Absent, send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		out, err := t.client.DeleteItem(ctx, in, opts)
		if err != nil {
			return answer{}, err
		}
		return answer{date: date(out.ResultMetadata), capacity: out.ConsumedCapacity, write: true}, nil
	}})
}

func (t *Table) write(ctx context.Context, key Row, mine func(Row) bool, c call) error {
	ctx, done, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	a, doubt, err := t.do(ctx, c)
	cond := new(types.ConditionalCheckFailedException)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &cond):
		return t.lost(ctx, key, mine, doubt, Read{Row: present(cond.Item), Date: a.date})
	case doubt != nil && c.once && t.landed(ctx, key, mine):
		return nil
	case doubt != nil:
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, t.explain(err, c.op))
	}
	return t.explain(err, c.op)
}

// landed reports whether a read finds the row of a write. false says nothing: it may come yet.
func (t *Table) landed(ctx context.Context, key Row, mine func(Row) bool) bool {
	if mine == nil || ctx.Err() != nil {
		return false
	}
	found, err := t.get(ctx, key)
	return err == nil && found.Row != nil && mine(found.Row)
}

// lost says what a condition that failed means. Where the answer has no row, there was none, or the
// server is one of those that don't send it: a read tells.
func (t *Table) lost(ctx context.Context, key Row, mine func(Row) bool, doubt error, found Read) error {
	var err error
	if found.Row == nil {
		if found, err = t.get(ctx, key); err != nil && doubt == nil {
			return fmt.Errorf("the condition of the write didn't hold, and what is there can't be read: %w", err)
		}
	}
	switch {
	case found.Row != nil && mine != nil && mine(found.Row):
		return nil
	case err != nil:
		return fmt.Errorf("%w: an attempt failed: %w; the next found its condition broken, and what is there can't be read: %w", store.ErrUnknownOutcome, doubt, err)
	case doubt != nil:
		return fmt.Errorf("%w: an attempt failed, and the next found the row changed: %w", store.ErrUnknownOutcome, doubt)
	}
	return &RefusedError{Row: found.Row, Date: found.Date}
}
