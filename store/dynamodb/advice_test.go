package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// What goes wrong between here and the table says what to do about it.
func TestErrorsSayWhatToDo(t *testing.T) {
	srv := servers.DynamoDB(t, servers.Shared())
	const table = "leases" // which isn't there
	answering := func(answer func(http.ResponseWriter)) func(t *testing.T) (Client, string) {
		return func(t *testing.T) (Client, string) {
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			t.Cleanup(front.Close)
			return testClient(t, front.URL), table
		}
	}
	refuse := func(status int, code string) func(t *testing.T) (Client, string) {
		return answering(says(status, code))
	}
	const brief = 100 * time.Millisecond
	for name, c := range map[string]struct {
		client func(t *testing.T) (Client, string)
		want   []string
	}{
		"unreachable": {func(t *testing.T) (Client, string) {
			return testClient(t, "http://"+servers.FreeAddr(t)), table
		}, []string{"can't be reached", "endpoint", "Region"}},
		"silent": {func(t *testing.T) (Client, string) {
			network := servers.Proxy(t, srv.Addr)
			network.Cut()
			return testClient(t, "http://"+network.Addr), table
		}, []string{"no answer within " + brief.String()}},
		"no such host": {func(t *testing.T) (Client, string) {
			return testClient(t, "http://dynamodb.invalid"), table
		}, []string{"can't be reached"}},
		"missing table": {func(t *testing.T) (Client, string) {
			return testClient(t, srv.URL), table
		}, []string{"leasehold init dynamodb"}},
		"bad table name":   {func(t *testing.T) (Client, string) { return testClient(t, srv.URL), "" }, []string{"want the name of a table"}},
		"access denied":    {refuse(400, "AccessDeniedException"), []string{"dynamodb:DescribeTable", "Options.Unchecked"}},
		"expired token":    {refuse(400, "ExpiredTokenException"), []string{"credentials are refused", "renew"}},
		"unknown identity": {refuse(400, "UnrecognizedClientException"), []string{"credentials are refused"}},
		"throttled":        {refuse(400, "ProvisionedThroughputExceededException"), []string{"on-demand"}},
		"a proxy":          {answering(func(w http.ResponseWriter) { http.Error(w, "no", http.StatusForbidden) }), []string{"isn't DynamoDB's (status 403)", "proxies"}},
		"no credentials": {func(t *testing.T) (Client, string) {
			return testClient(t, srv.URL, func(o *dynamodb.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{}, errors.New("nobody logged in")
				})
			}), table
		}, []string{"AWS credentials", "nobody logged in"}},
		"no Region": {func(t *testing.T) (Client, string) {
			return testClient(t, srv.URL, func(o *dynamodb.Options) { o.Region, o.BaseEndpoint = "", nil }), table
		}, []string{"a Region"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, table := c.client(t)
			var opts Options
			if name == "silent" { // the others have an answer, however long it takes
				opts.Attempt = brief
			}
			s, err := Open(t.Context(), client, table, opts)
			if err == nil {
				t.Fatal(s.Close(), "opened")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q isn't in: %v", want, err)
				}
			}
			if table != "" && !strings.Contains(err.Error(), "table "+table) {
				t.Errorf("it doesn't name the table: %v", err)
			}
		})
	}
}

// The same of an operation, with the permission that it lacks.
func TestDeniedOperationsNameThePermission(t *testing.T) {
	f, table := testFront(t)
	s := testOpen(t, testClient(t, f.URL), table, Options{})
	rec := mustPut(t, s, held("k", 1))
	for op, call := range map[string]func() error{
		"GetItem":    func() error { _, err := s.Get(t.Context(), "k"); return err },
		"PutItem":    func() error { return putAt(t, s, rec) },
		"DeleteItem": func() error { return s.Delete(t.Context(), "k", rec.Version) },
		"Scan": func() error {
			for _, err := range s.List(t.Context(), "") {
				return err
			}
			return nil
		},
	} {
		f.do(fault{unsent: true, answer: says(400, "AccessDeniedException")})
		if err := call(); err == nil || !strings.Contains(err.Error(), "dynamodb:"+op) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A request that never left is not done, whatever was in the way.
func TestUnsentIsNotDone(t *testing.T) {
	f, table := testFront(t)
	network := servers.Proxy(t, strings.TrimPrefix(f.target, "http://"))
	s := testOpen(t, testClient(t, "http://"+network.Addr), table, Options{Unchecked: true}) // has no connection yet
	network.Refuse()
	if _, err := s.Put(t.Context(), held("k", 1)); err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v, want not done", err)
	}
	network.Heal()
	if _, err := s.Get(t.Context(), "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestBadOptions(t *testing.T) {
	for want, opts := range map[string]Options{
		"ServerClock -1s": {ServerClock: -time.Second},
		"ServerClock 25h": {ServerClock: 25 * time.Hour},
		"Attempt 1ms":     {Attempt: time.Millisecond},
		"Attempt 2m":      {Attempt: 2 * time.Minute},
		"PollMax 1ms":     {PollMax: time.Millisecond},
		"PollMax -1s":     {PollMax: -time.Second},
	} {
		if _, err := Open(t.Context(), nil, "table", opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
