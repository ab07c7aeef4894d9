package dynamotables

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// testClient returns a client of its own connections to url. It asks no environment.
func testClient(t testing.TB, url string) *dynamodb.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

// kind is one of the schemas, as the tests set it up.
type kind struct {
	name      string
	key, sort string
	ttl       string // the attribute of DynamoDB's own expiry
	open      func(client Client, table string) (*Store, error)
}

const (
	testWait      = 2 * time.Second // Admiral's
	testThreshold = 2
	testTTL       = 3 * time.Second // dynamodb-lease's
)

// patient has no attempt given up because the server is slow: another one would follow, which tests that count requests don't expect.
var patient = Access{Attempt: time.Minute}

var kinds = []kind{
	{"admiral", "leaseName", "", "", func(c Client, table string) (*Store, error) {
		return Admiral(c, AdmiralOptions{Table: table, Wait: testWait, Threshold: testThreshold, Access: patient})
	}},
	{"dynamodb-lease", "key", "", "lease_expiry", func(c Client, table string) (*Store, error) {
		return DynamoDBLease(c, DynamoDBLeaseOptions{Table: table, TTL: testTTL, Access: patient})
	}},
	{"aws-lock-client", "key", "", "", func(c Client, table string) (*Store, error) {
		return AWSLockClient(c, AWSLockClientOptions{Table: table, Access: patient})
	}},
	{"aws-lock-client/dynamolock", "lock", "kind", "", func(c Client, table string) (*Store, error) {
		return AWSLockClient(c, AWSLockClientOptions{
			Table: table, KeyAttribute: "lock", SortKey: "kind", SortValue: "job", Duration: DurationDynamolock, Access: patient,
		})
	}},
}

// makeTable makes a table for a schema, and has it deleted at the end of the test. DynamoDB's own expiry is off: it
// deletes rows in the midst of a test.
func makeTable(t testing.TB, client *dynamodb.Client, k kind) string {
	t.Helper()
	name := "neighbour-" + newID()
	in := &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &k.key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &k.key, KeyType: types.KeyTypeHash}},
	}
	if k.sort != "" {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: &k.sort, AttributeType: types.ScalarAttributeTypeS})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: &k.sort, KeyType: types.KeyTypeRange})
	}
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Log(err)
		}
	})
	return name
}

// world is a schema's store over a table of its own, and the client beneath.
type world struct {
	*Store
	kind   kind
	client *dynamodb.Client
	name   string
}

func newWorld(t testing.TB, k kind) *world {
	t.Helper()
	client := testClient(t, servers.DynamoDB(t, servers.Shared()).URL)
	w := &world{kind: k, client: client, name: makeTable(t, client, k)}
	w.Store = w.open(t)
	return w
}

// expireRows has DynamoDB delete rows when their time is past.
func (w *world) expireRows(t testing.TB) {
	t.Helper()
	_, err := w.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               &w.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &w.kind.ttl, Enabled: aws.Bool(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// open returns one more handle.
func (w *world) open(t testing.TB) *Store {
	t.Helper()
	s, err := w.kind.open(w.client, w.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// attrs reads a row as it is; nil where there is none.
func (w *world) attrs(t testing.TB, key string) table.Row {
	t.Helper()
	out, err := w.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &w.name, Key: w.schema.keyRow(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Item) == 0 {
		return nil
	}
	return out.Item
}

// plant writes a row as a neighbour's PutItem does: the key, those attributes, and nothing else.
func (w *world) plant(t testing.TB, key string, row table.Row) {
	t.Helper()
	item := w.schema.keyRow(key)
	for name, v := range row {
		item[name] = v
	}
	if _, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.name, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// wipe deletes a row as a neighbour's DeleteItem does.
func (w *world) wipe(t testing.TB, key string) {
	t.Helper()
	if _, err := w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &w.name, Key: w.schema.keyRow(key)}); err != nil {
		t.Fatal(err)
	}
}

func number(text string) types.AttributeValue { return &types.AttributeValueMemberN{Value: text} }

func mustPut(t testing.TB, s store.Store, rec store.Record) store.Record {
	t.Helper()
	got, err := s.Put(t.Context(), rec)
	if err != nil {
		t.Fatalf("Put(%s at %q): %v", rec.Key, rec.Version, err)
	}
	return got
}

func mustGet(t testing.TB, s store.Store, key string) store.Record {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get(%s): %v", key, err)
	}
	return got
}

// mustConflict returns the current record in a *store.ConflictError.
func mustConflict(t testing.TB, err error) store.Record {
	t.Helper()
	var c *store.ConflictError
	if !errors.As(err, &c) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Fatalf("%v, want a *ConflictError", err)
	}
	return c.Current
}

// rows counts the rows of the table, companions included.
func (w *world) rows(t testing.TB) int {
	t.Helper()
	out, err := w.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &w.name, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Items)
}
