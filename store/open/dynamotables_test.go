package open

import (
	"strings"
	"testing"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

func TestParseNeighbours(t *testing.T) {
	for rest, want := range map[string]string{ // "" for what is right
		"//admiral-lease?schema=admiral&wait=15s&threshold=3&skew=2s&region=eu-west-1":                     "",
		"//leases?schema=dynamodb-lease":                                                                   "",
		"//leases?schema=dynamodb-lease&ttl=5m&skew=1s":                                                    "",
		"//locks?schema=aws-lock-client":                                                                   "",
		"//locks?schema=aws-lock-client&key_attribute=id&sort_key=kind&sort_value=job&duration=dynamolock": "",
		"//locks?schema=consul":                                                                            "want admiral, aws-lock-client, dynamodb-lease",
		"//locks?schema=":                                                                                  "want admiral, aws-lock-client, dynamodb-lease",
		"//locks?wait=15s":                                                                                 `parameter "wait"`,
		"//locks?schema=aws-lock-client&ttl=5m":                                                            `parameter "ttl"`,
		"//locks?schema=aws-lock-client&duration=rust":                                                     `Duration "rust"`,
		"//locks?schema=aws-lock-client&sort_key=kind":                                                     "SortKey",
		"//locks?schema=aws-lock-client&poll=1s":                                                           "",
		"//locks?schema=aws-lock-client&poll=2h":                                                           "PollMax 2h0m0s",
		"//locks?schema=aws-lock-client&unchecked=true":                                                    `parameter "unchecked"`,
		"//admiral-lease?schema=admiral&threshold=3":                                                       "Wait 0s",
		"//admiral-lease?schema=admiral&wait=15s":                                                          "failureThreshold",
		"//admiral-lease?schema=admiral&wait=15&threshold=3":                                               "want a duration",
		"//leases?schema=dynamodb-lease&ttl=1s":                                                            "TTL 1s",
		"//leases?schema=dynamodb-lease&skew=x":                                                            "skew",
	} {
		_, err := dynamoDBScheme.parse(rest)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}
}

// A neighbour's table opens by its URL, and one of another shape is refused.
func TestOpenNeighbours(t *testing.T) {
	srv := servers.DynamoDB(t)
	setAWS(t, map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"})
	for table, c := range map[string]struct{ key, query string }{
		"admiral-lease": {"leaseName", "schema=admiral&wait=15s&threshold=3"},
		"leases":        {"key", "schema=dynamodb-lease"},
		"locks":         {"id", "schema=aws-lock-client&key_attribute=id"},
	} {
		rest := "//" + table + "?" + c.query + "&endpoint=" + srv.URL
		if _, err := openDynamoDB(t.Context(), rest, Options{}); err == nil || !strings.Contains(err.Error(), "no such table") {
			t.Errorf("%s, not there yet: %v", rest, err)
		}
		d, err := dialDynamoDB(t.Context(), rest)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.Client.CreateTable(t.Context(), &awsdynamodb.CreateTableInput{
			TableName: &table, BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &c.key, AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: &c.key, KeyType: types.KeyTypeHash}},
		})
		d.Close()
		if err != nil {
			t.Fatal(err)
		}
		st, err := openDynamoDB(t.Context(), rest, Options{})
		if err != nil {
			t.Fatalf("%s: %v", rest, err)
		}
		if _, err := st.Put(t.Context(), store.Record{Key: "job", Token: 7}); err != nil {
			t.Error(err)
		}
		if got := store.Describe(st); !strings.Contains(got.Engine, "DynamoDB, table of ") || got.Guarantee == "" {
			t.Errorf("%+v", got)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := openDynamoDB(t.Context(), "//leases?schema=admiral&wait=15s&threshold=3&endpoint="+srv.URL, Options{})
	if err == nil || !strings.Contains(err.Error(), "leaseName S HASH") {
		t.Errorf("a table of another neighbour: %v", err)
	}
}
