package table

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// scripted is a client whose writes are answered in turn, and whose reads find a row, or fail.
type scripted struct {
	Client
	answers  []error
	writes   int
	row      Row
	unread   error
	readings int
}

func (s *scripted) write() error {
	s.writes++
	return s.answers[min(s.writes, len(s.answers))-1]
}

func (s *scripted) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return &dynamodb.PutItemOutput{}, s.write()
}

func (s *scripted) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return &dynamodb.DeleteItemOutput{}, s.write()
}

func (s *scripted) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	s.readings++
	if s.unread != nil {
		return nil, s.unread
	}
	return &dynamodb.GetItemOutput{Item: s.row}, nil
}

// The kinds of what a write comes to.
const (
	succeeded = "done"
	beaten    = "refused by its condition"
	unknown   = "unknown"
	certain   = "certainly not done"
)

func kindOf(err error) string {
	refused := new(RefusedError)
	switch {
	case err == nil:
		return succeeded
	case errors.As(err, &refused):
		return beaten
	case errors.Is(err, store.ErrUnknownOutcome):
		return unknown
	}
	return certain
}

// An attempt that was not answered may have been carried out, however the next one ends, unless the row that is there is the write's own.
func TestWhatAWriteComesTo(t *testing.T) {
	row := func(version string) Row { return Row{"version": &types.AttributeValueMemberS{Value: version}} }
	ours, theirs := row("ours"), row("theirs")
	mine := func(found Row) bool { return found["version"].(*types.AttributeValueMemberS).Value == "ours" }
	inTheWay := func(found Row) error { return answeredBy(400, &types.ConditionalCheckFailedException{Item: found}) }
	silence, denied, throttle := io.ErrUnexpectedEOF, answered(400, accessDenied), answered(400, "ThrottlingException")
	for name, c := range map[string]struct {
		answers          []error
		row              Row
		unread           error
		want, ofDeletion string
		writes, readings int
	}{
		"carried out":              {[]error{nil}, nil, nil, succeeded, succeeded, 1, 0},
		"another row is there":     {[]error{inTheWay(theirs)}, nil, nil, beaten, beaten, 1, 0},
		"sent again by the SDK":    {[]error{inTheWay(ours)}, nil, nil, succeeded, beaten, 1, 0},
		"denied":                   {[]error{denied}, nil, nil, certain, certain, 1, 0},
		"throttled once":           {[]error{throttle, nil}, nil, nil, succeeded, succeeded, 2, 0},
		"throttled":                {[]error{throttle}, nil, nil, certain, certain, maxAttempts, 0},
		"silent once":              {[]error{silence, nil}, nil, nil, succeeded, succeeded, 2, 0},
		"silent":                   {[]error{silence}, nil, nil, unknown, unknown, maxAttempts, 0},
		"silent, then denied":      {[]error{silence, denied}, nil, nil, unknown, unknown, 2, 0},
		"silent, then throttled":   {[]error{silence, throttle}, nil, nil, unknown, unknown, maxAttempts, 0},
		"silent, then ours":        {[]error{silence, inTheWay(ours)}, nil, nil, succeeded, unknown, 2, 0},
		"silent, then theirs":      {[]error{silence, inTheWay(theirs)}, nil, nil, unknown, unknown, 2, 0},
		"no row shown, none read":  {[]error{inTheWay(nil)}, nil, nil, beaten, beaten, 1, 1},
		"an empty row shown":       {[]error{inTheWay(Row{})}, theirs, nil, beaten, beaten, 1, 1},
		"no row shown, theirs":     {[]error{inTheWay(nil)}, theirs, nil, beaten, beaten, 1, 1},
		"no row shown, unreadable": {[]error{inTheWay(nil)}, nil, denied, certain, certain, 1, 1},
		"silent, then none read":   {[]error{silence, inTheWay(nil)}, nil, nil, unknown, unknown, 2, 1},
		"silent, then ours read":   {[]error{silence, inTheWay(nil)}, ours, nil, succeeded, unknown, 2, 1},
		"silent, then theirs read": {[]error{silence, inTheWay(nil)}, theirs, nil, unknown, unknown, 2, 1},
		"silent, then unreadable":  {[]error{silence, inTheWay(nil)}, nil, denied, unknown, unknown, 2, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &scripted{answers: c.answers, row: c.row, unread: c.unread}
			tab := New(client, "t", Options{Clock: clocktest.New(0)})
			defer tab.Close()
			err := tab.Put(t.Context(), nil, ours, Cond{}, mine)
			if kindOf(err) != c.want || client.writes != c.writes || client.readings != c.readings {
				t.Errorf("%s: %s after %d writes and %d readings, want %s after %d and %d: %v", name, kindOf(err), client.writes, client.readings, c.want, c.writes, c.readings, err)
			}
			found := new(RefusedError)
			if errors.As(err, &found) && (found.Row != nil) != (name != "no row shown, none read") {
				t.Errorf("%s: the refusal shows %v", name, found.Row)
			}
			client.writes = 0
			if err := tab.Delete(t.Context(), nil, Cond{}); kindOf(err) != c.ofDeletion {
				t.Errorf("%s: a deletion is %s, want %s: %v", name, kindOf(err), c.ofDeletion, err)
			}
		})
	}
}

// network is a transport's way to connect, and how often it was asked for.
type network struct {
	connect func() (net.Conn, error)
	asked   int
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	n.asked++
	return n.connect()
}

// A request is certainly not carried out when there was no connection to send it on, whatever the error says, or nothing to send.
func TestHowFarAnAttemptGot(t *testing.T) {
	allowed := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
	})
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("none here")
	})
	closed := func() (net.Conn, error) {
		here, there := net.Pipe()
		go func() { // it takes the request, and goes away
			_, _ = there.Read(make([]byte, 1<<16))
			_ = there.Close()
		}()
		return here, nil
	}
	for name, c := range map[string]struct {
		credentials aws.CredentialsProvider
		connect     func() (net.Conn, error)
		want        string
		asked       int
	}{
		"no credentials":        {none, closed, certain, 0},
		"no connection":         {allowed, func() (net.Conn, error) { return nil, errors.New("the proxy says no") }, certain, maxAttempts},
		"closed before a reply": {allowed, closed, unknown, maxAttempts},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &network{connect: c.connect}
			transport := &http.Transport{DialContext: n.dial}
			defer transport.CloseIdleConnections()
			tab := New(dynamodb.New(dynamodb.Options{
				Region: "us-east-1", BaseEndpoint: aws.String("http://nowhere.invalid"), HTTPClient: &http.Client{Transport: transport}, Credentials: c.credentials,
			}), "t", Options{Attempt: time.Minute, Clock: clocktest.New(0)})
			defer tab.Close()
			key := Row{"key": &types.AttributeValueMemberS{Value: "k"}}
			err := tab.Put(t.Context(), key, key, Cond{Expr: "attribute_not_exists(k)"}, nil)
			if kindOf(err) != c.want || n.asked != c.asked {
				t.Errorf("%s: %s after %d connections, want %s after %d: %v", name, kindOf(err), n.asked, c.want, c.asked, err)
			}
		})
	}
}

// A write that is asked for after the table was closed, or after its context has ended, is not done, and says why.
func TestWriteThatCantBegin(t *testing.T) {
	errEnough := errors.New("enough")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	client := &scripted{answers: []error{nil}}
	tab := New(client, "t", Options{})
	if err := tab.Put(canceled, nil, nil, Cond{}, nil); kindOf(err) != certain || !errors.Is(err, errEnough) {
		t.Errorf("the context has ended: %v", err)
	}
	tab.Close()
	if err := tab.Put(t.Context(), nil, nil, Cond{}, nil); kindOf(err) != certain || !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if client.writes != 0 {
		t.Errorf("%d writes were sent", client.writes)
	}
}
