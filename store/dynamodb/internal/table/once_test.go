package table

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// A write that may find no row is sent once if its first copy may be on its way; whether it was carried out, a read tells, or nobody.
func TestWhatACreationComesTo(t *testing.T) {
	row := func(version string) Row { return Row{"version": &types.AttributeValueMemberS{Value: version}} }
	ours, theirs := row("ours"), row("theirs")
	mine := func(found Row) bool { return found["version"].(*types.AttributeValueMemberS).Value == "ours" }
	silence, denied, throttle := io.ErrUnexpectedEOF, answered(400, accessDenied), answered(400, "ThrottlingException")
	refusal := answeredBy(400, &types.ConditionalCheckFailedException{Item: theirs})
	for name, c := range map[string]struct {
		answers          []error
		row              Row
		unread           error
		want             string
		writes, readings int
	}{
		"carried out":                 {[]error{nil}, nil, nil, succeeded, 1, 0},
		"another row is there":        {[]error{refusal}, nil, nil, beaten, 1, 0},
		"denied":                      {[]error{denied}, nil, nil, certain, 1, 0},
		"throttled once":              {[]error{throttle, nil}, nil, nil, succeeded, 2, 0},
		"silent, and nothing there":   {[]error{silence, nil}, nil, nil, unknown, 1, 1},
		"silent, and ours there":      {[]error{silence, nil}, ours, nil, succeeded, 1, 1},
		"silent, and theirs there":    {[]error{silence, nil}, theirs, nil, unknown, 1, 1},
		"silent, and unreadable":      {[]error{silence, nil}, ours, denied, unknown, 1, 1},
		"throttled, silent, and ours": {[]error{throttle, silence, nil}, ours, nil, succeeded, 2, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &scripted{answers: c.answers, row: c.row, unread: c.unread}
			tab := New(client, "t", Options{Clock: clocktest.New(0)})
			defer tab.Close()
			for what, write := range map[string]func() error{
				"a put":     func() error { return tab.Put(t.Context(), nil, ours, Cond{Absent: true}, mine) },
				"an update": func() error { return tab.Update(t.Context(), nil, "", Cond{Absent: true}, mine) },
			} {
				client.writes, client.readings = 0, 0
				err := write()
				if kindOf(err) != c.want || client.writes != c.writes || client.readings != c.readings {
					t.Errorf("%s: %s is %s after %d writes and %d readings, want %s after %d and %d: %v",
						name, what, kindOf(err), client.writes, client.readings, c.want, c.writes, c.readings, err)
				}
			}
		})
	}
}

func (s *scripted) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return &dynamodb.UpdateItemOutput{}, s.write()
}

// ending is a client whose write ends the caller's context.
type ending struct {
	*scripted
	end func()
}

func (e ending) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	e.end()
	return e.scripted.PutItem(ctx, in, opts...)
}

// A caller whose context has ended waits for no read.
func TestACreationThatIsGivenUp(t *testing.T) {
	errEnough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	client := &scripted{answers: []error{io.ErrUnexpectedEOF}}
	tab := New(ending{client, func() { cancel(errEnough) }}, "t", Options{})
	defer tab.Close()
	err := tab.Put(ctx, nil, nil, Cond{Absent: true}, func(Row) bool { return true })
	if !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, errEnough) || client.writes != 1 || client.readings != 0 {
		t.Errorf("%v after %d writes and %d readings, want the cause, unknown, after 1 and 0", err, client.writes, client.readings)
	}
}
