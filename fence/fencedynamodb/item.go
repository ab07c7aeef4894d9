package fencedynamodb

import (
	"context"
	"maps"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
)

// Putter is what [Put] uses of a *dynamodb.Client.
type Putter interface {
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// Updater is what [Update] uses of a *dynamodb.Client.
type Updater interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// Put does the caller's PutItem if the mark on the current item admits s, and puts the mark of s on
// the new item. It doesn't change the caller's input. The caller's own condition has to hold as
// well; when that failed, the error is DynamoDB's own. After an error that is neither, the write
// may have been done.
func Put(ctx context.Context, client Putter, s fence.Sequencer, in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
	if err := s.Valid(); err != nil {
		return nil, err
	}
	guarded := *in
	guarded.Item = item{}
	maps.Copy(guarded.Item, in.Item)
	guarded.Item[TokenAttribute], guarded.Item[HolderAttribute] = attributes(s)
	guarded.ConditionExpression = and(in.ConditionExpression)
	guarded.ExpressionAttributeNames = names(in.ExpressionAttributeNames)
	guarded.ExpressionAttributeValues = values(s, in.ExpressionAttributeValues)
	guarded.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	out, err := client.PutItem(ctx, &guarded)
	return out, refused(s, err)
}

// Update does the caller's UpdateItem if the mark on the item admits s, and sets the mark to that
// of s. It doesn't change the caller's input. The caller's own condition has to hold as well; when
// that failed, the error is DynamoDB's own. After an error that is neither, the write may have been
// done.
func Update(ctx context.Context, client Updater, s fence.Sequencer, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	if err := s.Valid(); err != nil {
		return nil, err
	}
	guarded := *in
	guarded.UpdateExpression = aws.String(set(aws.ToString(in.UpdateExpression)))
	guarded.ConditionExpression = and(in.ConditionExpression)
	guarded.ExpressionAttributeNames = names(in.ExpressionAttributeNames)
	guarded.ExpressionAttributeValues = values(s, in.ExpressionAttributeValues)
	guarded.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	out, err := client.UpdateItem(ctx, &guarded)
	return out, refused(s, err)
}

// and returns the caller's condition with ours.
func and(callers *string) *string {
	if aws.ToString(callers) == "" {
		return aws.String(admits)
	}
	return aws.String("(" + *callers + ") AND " + admits)
}

// setClause finds the SET of an update expression, of which there is one at most. It is a reserved
// word, so that no attribute is named so, but by a # name.
var setClause = regexp.MustCompile(`(?i)(^|[\s)\]])SET\b`)

// set returns the caller's update expression with ours.
func set(callers string) string {
	at := setClause.FindStringIndex(callers)
	if at == nil {
		return "SET " + raise + " " + callers
	}
	return callers[:at[1]] + " " + raise + "," + callers[at[1]:]
}
