package standby_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// admiralTable makes Admiral's table in DynamoDB Local, and returns the server's URL.
func admiralTable(t *testing.T) string {
	t.Helper()
	srv := servers.DynamoDB(t)
	for name, value := range srv.Env {
		t.Setenv(name, value)
	}
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	db := dynamodb.New(dynamodb.Options{
		Region: "us-east-2", BaseEndpoint: &srv.URL, HTTPClient: closing(t),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local"}, nil
		}),
	})
	key := "leaseName"
	_, err := db.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String(admiral.DefaultTable), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &key, AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: &key, KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return srv.URL
}

// closing is a client whose connections are closed when the test is over.
func closing(t *testing.T) *http.Client {
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// sts answers AssumeRole as the real service does.
func sts(t *testing.T, allowed string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRole" {
			http.Error(w, "want AssumeRole", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/xml")
		if r.Form.Get("RoleArn") != allowed {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not authorized to perform sts:AssumeRole</Message></Error><RequestId>1</RequestId></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token-of-%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleResponse>`,
			r.Form.Get("RoleSessionName"), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
}

// TestRole: the table is used under the role, and a role that is refused is an error that names it.
func TestRole(t *testing.T) {
	target, err := url.Parse(admiralTable(t))
	if err != nil {
		t.Fatal(err)
	}
	const role = "arn:aws:iam::123456789012:role/dr"
	sts(t, role)
	var mu sync.Mutex
	keys := map[string]int{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		mu.Lock()
		defer mu.Unlock()
		key, _, _ := strings.Cut(strings.TrimPrefix(r.In.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
		keys[key+" "+r.In.Header.Get("X-Amz-Security-Token")]++
	}, Transport: closing(t).Transport}
	front := httptest.NewServer(proxy)
	defer front.Close()

	cfg := admiral.Config{
		LeaseName: "prod", PodIdentifier: "east 1", WaitTime: time.Second, FailureThreshold: 3, TableName: admiral.DefaultTable,
		Region: "us-east-2", Role: role, Endpoint: front.URL,
	}
	st, err := standby.OpenTable(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Put(t.Context(), store.Record{Key: "prod", Owner: "east", Token: 1, TTL: cfg.TTL(), Nonce: "n"}); err != nil {
		t.Error(err)
	}
	rec, err := st.Get(t.Context(), "prod")
	if err != nil || rec.Owner != "east" {
		t.Error(rec, err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	if n := keys["ASIAROLE token-of-leasehold-east-1"]; n == 0 || len(keys) != 1 {
		t.Errorf("requests by who made them: %v", keys)
	}
	cfg.Role += "-other"
	if _, err := standby.OpenTable(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), cfg.Role) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("a role that is refused: %v", err)
	}
	cfg.Role, cfg.Region = "", ""
	t.Setenv("AWS_REGION", "")
	if _, err := standby.OpenTable(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "region is missing") {
		t.Errorf("no Region: %v", err)
	}
}

// TestEventualMode: in a global table in eventual mode, instances in two Regions could both be active, so it is refused unless
// everybody writes in one Region.
func TestEventualMode(t *testing.T) {
	target, err := url.Parse(admiralTable(t))
	if err != nil {
		t.Fatal(err)
	}
	global := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ModifyResponse: func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.Header.Get("X-Amz-Target"), ".DescribeTable") {
			return nil
		}
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		b = bytes.Replace(b, []byte(`{"Table":{`), []byte(`{"Table":{"GlobalTableVersion":"2019.11.21","Replicas":[{"RegionName":"eu-west-1"}],`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		r.Header.Del("X-Amz-Crc32")
		return nil
	}, Transport: closing(t).Transport}
	front := httptest.NewServer(global)
	defer front.Close()
	cfg := admiral.Config{
		LeaseName: "prod", PodIdentifier: "east", WaitTime: time.Second, FailureThreshold: 3, TableName: admiral.DefaultTable,
		Region: "us-east-2", Endpoint: front.URL,
	}
	for home, want := range map[string]string{"": "homeRegion", "eu-west-1": "home Region is eu-west-1", "us-east-2": ""} {
		cfg.HomeRegion = home
		st, err := standby.OpenTable(t.Context(), cfg)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("homeRegion %q: %v", home, err)
		}
		if err == nil {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWrongTable: the error says what to do, and the same when it is met again, so that nobody takes it for news.
func TestWrongTable(t *testing.T) {
	cfg := admiral.Config{
		LeaseName: "prod", PodIdentifier: "east", WaitTime: time.Second, FailureThreshold: 3, TableName: "admiral-laese",
		Region: "us-east-2", Endpoint: admiralTable(t),
	}
	_, first := standby.OpenTable(t.Context(), cfg)
	_, second := standby.OpenTable(t.Context(), cfg)
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Fatalf("first: %v\nsecond: %v", first, second)
	}
	for _, want := range []string{"table admiral-laese", "no such table", "its name or the Region", "as the documentation of admiral says"} {
		if !strings.Contains(first.Error(), want) {
			t.Errorf("%q is not in: %v", want, first)
		}
	}
}
