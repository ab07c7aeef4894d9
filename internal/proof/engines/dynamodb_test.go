package engines

import (
	"context"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb"
)

const dynamoDBTable = "engines"

var dynamoDB = kind{
	name: "dynamodb", start: servers.DynamoDB,
	prepare: func(t testing.TB, srv *servers.Server) instance {
		if _, err := dynamodb.Create(t.Context(), awsClient(t, srv.Addr), dynamoDBTable); err != nil {
			t.Fatal(err)
		}
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := dynamodb.Open(t.Context(), awsClient(t, addr), dynamoDBTable, dynamodb.Options{})
			return opened(t, st, err)
		}}
	},
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
