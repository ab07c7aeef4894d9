package fencedynamodb_test

import (
	"context"
	"log"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencedynamodb"
)

// The check of the token is a condition of the write itself: one request, as without a guard.
func ExampleUpdate() {
	ctx := context.Background()
	var client *dynamodb.Client // the program's own
	var seq fence.Sequencer     // at the holder: l.Sequencer()

	_, err := fencedynamodb.Update(ctx, client, seq, &dynamodb.UpdateItemInput{
		TableName:                 aws.String("accounts"),
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberN{Value: "7"}},
		UpdateExpression:          aws.String("SET balance = balance - :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: "100"}},
	})
	if err != nil {
		log.Print(err) // a *fence.StaleError when a later term has begun: nothing is written
	}
}
