package servers

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
)

var dynamodb = &engine{
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
}

// DynamoDB starts DynamoDB Local. It keeps its tables over [Server.Restart], and serves any Region
// and any credentials, all from the same tables.
func DynamoDB(t testing.TB, opts ...Option) *Server { t.Helper(); return start(t, dynamodb, opts) }

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
