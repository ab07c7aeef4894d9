package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencedynamodb"
)

const dynamodbTable = "fencing-example"

var dynamodbKey = map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "billing"}}

type dynamodbAccount struct{ client *dynamodb.Client }

// openDynamoDB takes any credentials, as DynamoDB Local does.
func openDynamoDB(ctx context.Context, address string) (account, error) {
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &address,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "example", SecretAccessKey: "example"}, nil
		}),
	})
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(dynamodbTable), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	if inUse := new(types.ResourceInUseException); err != nil && !errors.As(err, &inUse) {
		return nil, err
	}
	_, err = client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: aws.String(dynamodbTable), Key: dynamodbKey})
	return dynamodbAccount{client}, err
}

// Close has nothing to do: the client has no connections but those of net/http.
func (dynamodbAccount) Close() error { return nil }

// deposit keeps the mark on the item itself: it is the same write.
func (a dynamodbAccount) deposit(ctx context.Context, s fence.Sequencer, amount int) error {
	_, err := fencedynamodb.Update(ctx, a.client, s, &dynamodb.UpdateItemInput{
		TableName: aws.String(dynamodbTable), Key: dynamodbKey,
		UpdateExpression:          aws.String("ADD balance :n"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":n": &types.AttributeValueMemberN{Value: strconv.Itoa(amount)}},
	})
	return err
}

func (a dynamodbAccount) balance(ctx context.Context) (int, error) {
	out, err := a.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(dynamodbTable), Key: dynamodbKey, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return 0, err
	}
	n, ok := out.Item["balance"].(*types.AttributeValueMemberN)
	if !ok {
		return 0, errors.New("the item has no balance")
	}
	return strconv.Atoi(n.Value)
}
