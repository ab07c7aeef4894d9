package dynamodb

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// testClient returns a client of its own connections to url, with the options that are given. It asks no environment.
func testClient(t testing.TB, url string, opts ...func(*dynamodb.Options)) *dynamodb.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: transport},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	}, opts...)
}

// testTable makes a table of the test's own on the shared DynamoDB Local, and returns its name and the server.
func testTable(t testing.TB) (string, *servers.Server) {
	t.Helper()
	srv := servers.DynamoDB(t, servers.Shared())
	name := strings.ToLower("leases-" + newVersion())
	client := testClient(t, srv.URL)
	if created, err := Create(t.Context(), client, name); err != nil || !created {
		t.Fatalf("created: %v, %v", created, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := client.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: &name, DeletionProtectionEnabled: aws.Bool(false)})
		if err == nil {
			_, err = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name})
		}
		if err != nil {
			t.Log(err)
		}
	})
	return name, srv
}

// patient is how long an attempt may take where a test doesn't say: no server is so slow that a test which counts requests, or wants
// one outcome, meets an attempt that was given up.
const patient = time.Minute

// testOpen opens the store in that table and closes it at the end of the test.
func testOpen(t testing.TB, client Client, name string, opts Options) *Store {
	t.Helper()
	opts.Attempt = cmp.Or(opts.Attempt, patient)
	s, err := Open(t.Context(), client, name, opts)
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

// testStore is a store in a new table.
func testStore(t testing.TB, opts Options) *Store {
	t.Helper()
	name, srv := testTable(t)
	return testOpen(t, testClient(t, srv.URL), name, opts)
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute, Nonce: "n"}
}

func mustPut(t testing.TB, s store.Store, rec store.Record) store.Record {
	t.Helper()
	got, err := s.Put(t.Context(), rec)
	if err != nil {
		t.Fatalf("Put(%s): %v", rec.Key, err)
	}
	return got
}
