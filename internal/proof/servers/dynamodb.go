package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var dynamodb = register(&engine{
	name: "dynamodb", title: "DynamoDB Local", ports: 1,
	find: func() (string, error) { return Program("dynamodb", "Loopback.class") },
	plan: func(_ context.Context, s *Server, program string) (command, error) {
		java, err := exec.LookPath("java")
		if err != nil {
			return command{}, err
		}
		dir := filepath.Dir(program)
		s.reachDynamoDB("http://" + s.Addr)
		return command{args: []string{
			java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
			// Else each leaves a megabyte behind.
			"-Djava.library.path=" + dir, "-Djava.io.tmpdir=" + s.Dir,
			"-cp", dir + ":" + dir + "/*", "Loopback", "-sharedDb", "-dbPath", s.Dir, "-disableTelemetry", "-port", s.ports[0].String(),
		}}, nil
	},
	ready: func(ctx context.Context, s *Server) error {
		return wants(200, "TableNames")(s.ask(ctx, "POST", s.URL, "{}", dynamodbHeader("ListTables")...))
	},
	adopt: func(s *Server, text string) error {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return fmt.Errorf("want http://HOST:PORT")
		}
		s.Addr = u.Host
		s.reachDynamoDB(text)
		return nil
	},
	store:  storeOfDynamoDB,
	page:   Page{Address: regexp.MustCompile(`http://127\.0\.0\.1:8000`)},
	client: dynamodbClient{},
})

// DynamoDB starts DynamoDB Local. It keeps its tables over [Server.Restart], and serves any Region
// and any credentials, all from the same tables. What it has acknowledged outlives [Server.Kill]:
// of 19,986 conditional writes by 8 plain HTTP clients, over 440 kills, none was lost, none of
// 6,687 refused ones was done, and each row was as of its last write or the one without an answer.
func DynamoDB(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, dynamodb, opts) }

func storeOfDynamoDB(s *Server) Store {
	return Store{
		URL: "dynamodb://leasehold?region=us-east-1&endpoint=" + s.URL, Init: "dynamodb",
		Env: []string{"AWS_ACCESS_KEY_ID=leasehold", "AWS_SECRET_ACCESS_KEY=leasehold", "AWS_EC2_METADATA_DISABLED=true"},
	}
}

func (s *Server) reachDynamoDB(url string) {
	s.URL = url
	s.Env["AWS_ENDPOINT_URL_DYNAMODB"] = url
	s.Env["AWS_REGION"] = "us-east-1"
	s.Env["AWS_ACCESS_KEY_ID"], s.Env["AWS_SECRET_ACCESS_KEY"] = "leasehold", "leasehold"
}

// dynamodbHeader is the header of a request that is signed, but not rightly: emulators don't check
// that.
func dynamodbHeader(operation string) []string {
	return []string{
		"X-Amz-Target", "DynamoDB_20120810." + operation, "Content-Type", "application/x-amz-json-1.0", "X-Amz-Date", "20200101T000000Z",
		"Authorization", "AWS4-HMAC-SHA256 Credential=leasehold/20200101/us-east-1/dynamodb/aws4_request, " +
			"SignedHeaders=host;x-amz-date;x-amz-target, Signature=0",
	}
}

// dynamodbClient is the plainest client.
type dynamodbClient struct{}

func (dynamodbClient) do(ctx context.Context, s *Server, operation, body string) (int, string, error) {
	return s.ask(ctx, "POST", s.URL, body, dynamodbHeader(operation)...)
}

func (d dynamodbClient) put(ctx context.Context, s *Server, value string) error {
	_, text, err := d.do(ctx, s, "CreateTable", `{"TableName":"servers","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],"KeySchema":[{"AttributeName":"k","KeyType":"HASH"}]}`)
	if err != nil || !strings.Contains(text, "TableStatus") && !strings.Contains(text, "ResourceInUseException") {
		return fmt.Errorf("%q: %w", text, err)
	}
	for !strings.Contains(text, "ACTIVE") {
		if _, text, err = d.do(ctx, s, "DescribeTable", `{"TableName":"servers"}`); err != nil {
			return err
		}
	}
	return wants(200, "{}")(d.do(ctx, s, "PutItem", fmt.Sprintf(`{"TableName":"servers","Item":{"k":{"S":"k"},"v":{"S":%q}}}`, value)))
}

func (d dynamodbClient) get(ctx context.Context, s *Server) (string, error) {
	_, text, err := d.do(ctx, s, "GetItem", `{"TableName":"servers","Key":{"k":{"S":"k"}},"ConsistentRead":true}`)
	var answer struct {
		Item struct{ V struct{ S string } }
	}
	return answer.Item.V.S, errors.Join(err, json.Unmarshal([]byte(text), &answer))
}
