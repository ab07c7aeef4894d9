package resources

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencedynamodb"
)

// inDynamoDB has an item for each name, with a list of lines.
type inDynamoDB struct {
	*dynamodb.Client
	base *http.Transport
}

const table = "log"

func openDynamoDB(_ context.Context, url string) (Resource, error) { return dialDynamoDB(url), nil }

func dialDynamoDB(url string) *inDynamoDB {
	base := &http.Transport{}
	return &inDynamoDB{base: base, Client: dynamodb.New(dynamodb.Options{
		// So that no line is there twice.
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: base}, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "soak", SecretAccessKey: "soak"}, nil
		}),
	})}
}

// makeTable makes the table.
func makeTable(ctx context.Context, url string) error {
	r := dialDynamoDB(url)
	_, err := r.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(table), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("name"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("name"), KeyType: types.KeyTypeHash}},
	})
	_ = r.Close() // it can't fail
	return err
}

func (r *inDynamoDB) key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: name}}
}

func (r *inDynamoDB) Write(ctx context.Context, s fence.Sequencer, line string) error {
	_, err := fencedynamodb.Update(ctx, r, s, &dynamodb.UpdateItemInput{
		TableName: aws.String(table), Key: r.key(s.Name),
		UpdateExpression:         aws.String("SET #l = list_append(if_not_exists(#l, :none), :line)"),
		ExpressionAttributeNames: map[string]string{"#l": "lines"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":none": &types.AttributeValueMemberL{},
			":line": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: line}}},
		},
	})
	return err
}

func (r *inDynamoDB) Log(ctx context.Context, name string) (lines []string, err error) {
	out, err := r.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(table), Key: r.key(name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	list, ok := out.Item["lines"].(*types.AttributeValueMemberL)
	if !ok {
		return nil, nil
	}
	for _, v := range list.Value {
		if line, ok := v.(*types.AttributeValueMemberS); ok {
			lines = append(lines, line.Value)
		}
	}
	return lines, nil
}

func (r *inDynamoDB) Close() error { r.base.CloseIdleConnections(); return nil }
