package engines

import (
	"context"
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb"
)

const dynamoDBTable = "engines"

var _ = register(kind{
	name: "dynamodb", start: servers.DynamoDB,
	prepare: prepareDynamoDB,
	floor:   dynamoDBFloor,
	planned: true,
})

func prepareDynamoDB(t testing.TB, srv *servers.Server) instance {
	if _, err := dynamodb.Create(t.Context(), awsClient(t, srv.Addr), dynamoDBTable); err != nil {
		t.Fatal(err)
	}
	return instance{open: func(t testing.TB, addr string) store.Store {
		st, err := dynamodb.Open(t.Context(), awsClient(t, addr), dynamoDBTable, dynamodb.Options{})
		return opened(t, st, err)
	}}
}

func dynamoDBFloor(t testing.TB, srv *servers.Server) locker {
	prepareDynamoDB(t, srv)
	client := awsClient(t, srv.Addr)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	return swapping(func(ctx context.Context, name, old string) (string, error) {
		next := rand.Text()
		put := &awsdynamodb.PutItemInput{
			TableName: aws.String(dynamoDBTable), Item: map[string]types.AttributeValue{"key": text(name), "version": text(next), "record": text(floorValue)},
			ConditionExpression: aws.String("attribute_not_exists(version)"),
		}
		if old != "" {
			put.ConditionExpression, put.ExpressionAttributeValues = aws.String("version = :old"), map[string]types.AttributeValue{":old": text(old)}
		}
		_, err := client.PutItem(ctx, put)
		return next, err
	})
}

func awsClient(t testing.TB, addr string) *awsdynamodb.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return awsdynamodb.New(awsdynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + addr), HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}
