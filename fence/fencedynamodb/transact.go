package fencedynamodb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
)

// Client is what a [Guard] uses of a *dynamodb.Client.
type Client interface {
	Updater
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Guard keeps the mark of each lease name in an item of its own. It keeps nothing in memory, so any
// number of processes may have one on the same marks. All methods may be called from any goroutine.
type Guard struct {
	client Client
	table  string
	key    func(name string) map[string]types.AttributeValue
}

var _ fence.Guard = (*Guard)(nil)

// New returns a guard that keeps marks in that table: key returns the whole primary key of the mark
// for a lease's name. The table may be the one that is guarded, but not one that leases are kept
// in. New does no I/O.
func New(client Client, table string, key func(name string) map[string]types.AttributeValue) (*Guard, error) {
	switch {
	case client == nil:
		return nil, errors.New("DynamoDB guard: client is nil: want one from dynamodb.NewFromConfig")
	case table == "":
		return nil, errors.New("DynamoDB guard: table is empty: want the name of the table that marks are kept in")
	case key == nil:
		return nil, errors.New("DynamoDB guard: key is nil: want a function that returns the primary key of a mark")
	}
	return &Guard{client, table, key}, nil
}

// Transact does the caller's transaction if the mark of s.Name admits s. Otherwise it returns a
// *[fence.StaleError]. It doesn't change the caller's input. It is one request. For the first of a
// new token, two more requests write the mark. The mark may be written even if the transaction is
// cancelled.
//
// Of the 100 items of a transaction, the check is one: the last, so that the reasons of a
// cancellation are in the caller's order. Transactions under one mark that meet are cancelled for
// TransactionConflict, like any that share an item. The error is DynamoDB's own then, and the
// caller may retry. After an error that is neither, the transaction may have been done.
func (g *Guard) Transact(ctx context.Context, s fence.Sequencer, in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := s.Valid(); err != nil {
		return nil, err
	}
	out, old, err := g.try(ctx, s, in)
	if err == nil || old == nil {
		return out, err
	}
	if err := g.raise(ctx, s, *old); err != nil {
		return nil, err
	}
	out, old, err = g.try(ctx, s, in)
	if old != nil {
		if _, reason := judge(s, *old); reason != nil {
			return nil, reason
		}
		return nil, fmt.Errorf("%s: its mark was taken away while this transaction began: %w", s.Name, err)
	}
	return out, err
}

// try does the transaction if the mark is that of s. Otherwise it returns the item of the mark,
// which is empty when there is none.
func (g *Guard) try(ctx context.Context, s fence.Sequencer, in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, *item, error) {
	guarded := *in
	guarded.TransactItems = append(slices.Clone(in.TransactItems), types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: &g.table, Key: g.key(s.Name), ConditionExpression: aws.String(isMine),
		ExpressionAttributeNames: names(nil), ExpressionAttributeValues: mine(s),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}})
	out, err := g.client.TransactWriteItems(ctx, &guarded)
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) && len(cancelled.CancellationReasons) == len(guarded.TransactItems) {
		if last := cancelled.CancellationReasons[len(in.TransactItems)]; aws.ToString(last.Code) == "ConditionalCheckFailed" {
			return nil, &last.Item, err
		}
	}
	return out, nil, err
}

// raise makes the mark that of s, if the one that was read, and then the one that is there, admits
// it.
func (g *Guard) raise(ctx context.Context, s fence.Sequencer, old item) error {
	if same, err := judge(s, old); same || err != nil {
		return err
	}
	_, err := g.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &g.table, Key: g.key(s.Name),
		UpdateExpression: aws.String("SET " + raise), ConditionExpression: aws.String(isLower),
		ExpressionAttributeNames: names(nil), ExpressionAttributeValues: values(s, nil),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) { // somebody else has raised it meanwhile: to s, or further
		same, reason := judge(s, failed.Item)
		if same || reason != nil {
			return reason
		}
	}
	if err != nil {
		return fmt.Errorf("%s: the mark of token %d can't be stored: %w", s.Name, s.Token, err)
	}
	return nil
}

// Check is [fence.Guard.Check], for resources elsewhere that are reached through several processes:
// all of them share the mark. It is one strongly consistent read, and a write for each new token.
// Guard items in DynamoDB itself by [Guard.Transact], [Put] or [Update] instead. A sequencer that
// came from outside has to be of the lease that guards the resource: call [fence.Sequencer.Of]
// first.
func (g *Guard) Check(ctx context.Context, s fence.Sequencer) error {
	if err := s.Valid(); err != nil {
		return err
	}
	out, err := g.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &g.table, Key: g.key(s.Name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return fmt.Errorf("%s: its mark can't be read: %w", s.Name, err)
	}
	return g.raise(ctx, s, out.Item)
}
