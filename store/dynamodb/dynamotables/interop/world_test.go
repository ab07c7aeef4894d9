package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
)

// world is a table that a neighbour and Leasehold share.
type world struct {
	t      testing.TB
	url    string
	addr   string
	table  string
	key    string
	ttl    string // the attribute by which the neighbour wants DynamoDB to expire rows; "" for none
	client *dynamodb.Client
	open   func(client dynamotables.Client, table string) (*dynamotables.Store, error)
}

// newWorld makes a table with that key. DynamoDB expires no rows in it: see expire.
func newWorld(t testing.TB, key, ttl string, open func(dynamotables.Client, string) (*dynamotables.Store, error)) *world {
	t.Helper()
	srv := servers.DynamoDB(t, servers.Shared())
	w := &world{
		t: t, url: srv.URL, addr: srv.Addr, key: key, ttl: ttl, client: newClient(t, srv.URL), open: open,
		table: "interop-" + rand.Text(),
	}
	_, err := w.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &w.table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// expire has DynamoDB expire rows, or no more. A neighbour that wants that looks only when it starts. From then on it is off: DynamoDB
// Local looks every ten seconds or so for rows whose second has come, which the neighbour's own rule leaves for one second more, and
// what it deletes nobody takes over.
func (w *world) expire(on bool) {
	w.t.Helper()
	_, err := w.client.UpdateTimeToLive(w.t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: &w.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &w.ttl, Enabled: &on},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func newClient(t testing.TB, url string) *dynamodb.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

// manager returns a lease manager of Leasehold's, whose requests go to url.
func (w *world) manager(url string, ttl time.Duration) *lease.Manager {
	w.t.Helper()
	st, err := w.open(newClient(w.t, url), w.table)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := errors.Join(m.Close(), st.Close()); err != nil {
			w.t.Log("closing: ", err) // some leave what they hold behind a cut
		}
	})
	return m
}

// row reads a row as it is.
func (w *world) row(name string) map[string]types.AttributeValue {
	w.t.Helper()
	out, err := w.client.GetItem(w.t.Context(), &dynamodb.GetItemInput{
		TableName: &w.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{w.key: &types.AttributeValueMemberS{Value: name}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Item
}

func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	}
	return ""
}

func acquire(t testing.TB, m *lease.Manager, name string) *lease.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	l, err := m.Acquire(ctx, name)
	if err != nil {
		t.Fatalf("Leasehold acquires %s: %v", name, err)
	}
	return l
}

func release(t testing.TB, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatalf("Leasehold releases %s: %v", l.Name(), err)
	}
}

// excluded checks that Leasehold doesn't get a name that a neighbour holds.
func excluded(t testing.TB, m *lease.Manager, name string) {
	t.Helper()
	l, err := m.TryAcquire(t.Context(), name)
	var held *lease.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("Leasehold tries for %s, which a neighbour holds: %v and error %v, want *lease.HeldError", name, l, err)
	}
	if held.Token == 0 {
		t.Errorf("the neighbour's hold of %s has token 0", name)
	}
}

// during calls look again and again for that long.
func during(t testing.TB, d time.Duration, look func()) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(d / 20) {
		look()
	}
}

// until calls look until it says so, and returns how long that took.
func until(t testing.TB, what string, within time.Duration, look func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !look() {
		if time.Since(start) > within {
			t.Fatalf("%s: not within %v", what, within)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

var _ store.Store = (*dynamotables.Store)(nil)
