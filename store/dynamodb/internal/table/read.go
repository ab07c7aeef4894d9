package table

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Read is what a strong read found.
type Read struct {
	Row Row // nil where there is none
	// The server's clock when it answered, truncated to the second; zero when it didn't say.
	Date time.Time
}

// Get reads the row under key (the key attributes) strongly.
func (t *Table) Get(ctx context.Context, key Row) (Read, error) {
	ctx, done, err := t.begin(ctx)
	if err != nil {
		return Read{}, err
	}
	defer done()
	return t.get(ctx, key)
}

func (t *Table) get(ctx context.Context, key Row) (Read, error) {
	in := &dynamodb.GetItemInput{
		TableName: &t.Name, Key: key, ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: t.counted(),
	}
	a, _, err := t.do(ctx, call{op: "GetItem", read: true, send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		out, err := t.client.GetItem(ctx, in, opts)
		if err != nil {
			return answer{}, err
		}
		return answer{row: out.Item, date: date(out.ResultMetadata), capacity: out.ConsumedCapacity}, nil
	}})
	if err != nil {
		return Read{}, t.explain(err, "GetItem")
	}
	return Read{Row: present(a.row), Date: a.date}, nil
}

// present returns row, or nil for one without attributes, which some servers answer where there is
// none.
func present(row Row) Row {
	if len(row) == 0 {
		return nil
	}
	return row
}

// Page reads one page of the whole table strongly. from is nil for the first page, and the next
// that the page before returned. A filter may be given; it saves no units. It is not for the hot
// path.
func (t *Table) Page(ctx context.Context, from Row, filter Cond) (rows []Row, date time.Time, next Row, err error) {
	return t.scan(ctx, &dynamodb.ScanInput{
		ConsistentRead: aws.Bool(true), ExclusiveStartKey: from, FilterExpression: text(filter.Expr),
		ExpressionAttributeNames: filter.Names, ExpressionAttributeValues: filter.Values,
	})
}

// Sample reads up to n rows, any of them.
func (t *Table) Sample(ctx context.Context, n int32) ([]Row, error) {
	rows, _, _, err := t.scan(ctx, &dynamodb.ScanInput{Limit: &n})
	return rows, err
}

func (t *Table) scan(ctx context.Context, in *dynamodb.ScanInput) (rows []Row, date time.Time, next Row, err error) {
	ctx, done, err := t.begin(ctx)
	if err != nil {
		return nil, time.Time{}, nil, err
	}
	defer done()
	in.TableName, in.ReturnConsumedCapacity = &t.Name, t.counted()
	var out *dynamodb.ScanOutput
	a, _, err := t.do(ctx, call{op: "Scan", read: true, send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		var err error
		if out, err = t.client.Scan(ctx, in, opts); err != nil {
			return answer{}, err
		}
		return answer{date: dateIn(out), capacity: out.ConsumedCapacity}, nil
	}})
	if err != nil {
		return nil, time.Time{}, nil, t.explain(err, "Scan")
	}
	return out.Items, a.date, present(out.LastEvaluatedKey), nil
}

func dateIn(out *dynamodb.ScanOutput) time.Time { return date(out.ResultMetadata) }

// Describe returns the table's description, and its expiry by time to live. The latter is nil, with
// the reason, where it can't be read.
func (t *Table) Describe(ctx context.Context) (*dynamodb.DescribeTableOutput, error) {
	ctx, done, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out *dynamodb.DescribeTableOutput
	_, _, err = t.do(ctx, call{op: "DescribeTable", read: true, send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		var err error
		if out, err = t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.Name}, opts); err != nil {
			return answer{}, err
		}
		return answer{date: date(out.ResultMetadata)}, nil
	}})
	if err == nil && out.Table == nil {
		err = fmt.Errorf("the server described nothing")
	}
	if err != nil {
		return nil, t.explain(err, "DescribeTable")
	}
	return out, nil
}

// DescribeTTL returns the table's setting for expiry by time to live.
func (t *Table) DescribeTTL(ctx context.Context) (*dynamodb.DescribeTimeToLiveOutput, error) {
	ctx, done, err := t.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out *dynamodb.DescribeTimeToLiveOutput
	_, _, err = t.do(ctx, call{op: "DescribeTimeToLive", read: true, send: func(ctx context.Context, opts func(*dynamodb.Options)) (answer, error) {
		var err error
		if out, err = t.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.Name}, opts); err != nil {
			return answer{}, err
		}
		return answer{date: date(out.ResultMetadata)}, nil
	}})
	if err != nil {
		return nil, t.explain(err, "DescribeTimeToLive")
	}
	return out, nil
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
