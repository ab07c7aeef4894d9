package dynamotables

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// schema is what one neighbour's table has of its own.
type schema struct {
	name      string // as in URLs
	guarantee string // what a lease is worth beside this neighbour, in one line

	key       string // the partition key's attribute
	sort      string // the sort key's; "" where there is none
	sortValue string // the one value of the sort key that this store uses

	// columns are the attributes that the neighbour's own writes change and its rules look at.
	columns []column
	// read says what they mean. It isn't called for a row of ours that nobody has touched.
	read func(columns) (hold, error)
	// write returns them as the neighbour is to find them while rec is stored, as version id, from
	// wall on.
	write func(rec store.Record, id string, wall time.Time) columns

	// learn looks at the table before a write, if how rows are written depends on that; nil if not.
	learn func(context.Context, *table.Table)

	// Further attributes that a row gets when it has none of that name.
	born func(wall time.Time) table.Row
	// Those of a companion row, so that neighbours who read the whole table can read it.
	beside func(id string) table.Row
	// The attribute that the neighbour wants expired by DynamoDB; "" for none.
	ttl  string
	wall bool // its rule compares wall clocks
}

// column is an attribute: its name and whether it is a number or a string.
type column struct {
	name   string
	number bool
	// A number that people write, perhaps as a string: its text begins with a quote then.
	typed bool
}

// quote begins the text of a string where a number is expected, which never does.
const quote = `"`

// columns are values in the order of schema.columns; nil where a row has no such attribute.
type columns []*string

// hold is what a row says by its neighbour's rules.
type hold struct {
	owner string        // "" when nobody holds it
	ttl   time.Duration // how long it lasts after the row's last change
	// By the wall clock, it is not over before; zero where the neighbour reads no wall clock.
	until time.Time
}

// attributeError says which attribute of a row can't be read, and why.
type attributeError struct {
	name    string
	problem string
}

func (e *attributeError) Error() string { return "attribute " + e.name + ": " + e.problem }

func missing(name string) error { return &attributeError{name, "it is missing"} }

// text returns a column's value, or an error when the row has none.
func (sc *schema) text(c columns, i int) (string, error) {
	if c[i] == nil {
		return "", missing(sc.columns[i].name)
	}
	return *c[i], nil
}

// seconds returns a column's value as a time in whole seconds.
func (sc *schema) seconds(c columns, i int) (time.Time, error) {
	text, err := sc.text(c, i)
	if err != nil {
		return time.Time{}, err
	}
	text = strings.TrimPrefix(text, quote)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < -maxSeconds || n > maxSeconds {
		return time.Time{}, &attributeError{sc.columns[i].name, fmt.Sprintf("%s: want a time in whole seconds since 1970", text)}
	}
	return time.Unix(n, 0), nil
}

// maxSeconds keeps arithmetic with times from overflowing. What is later than that was meant in
// milliseconds.
const maxSeconds = 1 << 38

// extract returns the neighbour's columns of a row.
func (sc *schema) extract(row table.Row) (columns, error) {
	cols := make(columns, len(sc.columns))
	for i, col := range sc.columns {
		var err error
		if cols[i], err = scalar(row, col); err != nil {
			return nil, err
		}
	}
	return cols, nil
}

// scalar returns the value of an attribute, or nil where the row has none.
func scalar(row table.Row, col column) (text *string, err error) {
	switch v := row[col.name].(type) {
	case nil:
		return text, nil
	case *types.AttributeValueMemberS:
		if !col.number {
			return &v.Value, nil
		}
		if col.typed {
			return ptr(quote + v.Value), nil
		}
	case *types.AttributeValueMemberN:
		if col.number {
			return &v.Value, nil
		}
	}
	want := "S"
	if col.number {
		want = "N"
	}
	return nil, &attributeError{col.name, fmt.Sprintf("it is of type %s, want %s", typeName(row[col.name]), want)}
}

// typeName returns DynamoDB's name of a value's type.
func typeName(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	}
	return "a set"
}

// value returns the attribute's value in DynamoDB's form.
func (col column) value(text string) types.AttributeValue {
	if written, ok := strings.CutPrefix(text, quote); ok && col.typed {
		return str(written)
	}
	if col.number {
		return &types.AttributeValueMemberN{Value: text}
	}
	return str(text)
}

func str(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }

// lasting returns how long a neighbour has to leave rec its holder after it was written. What a
// session keeps isn't renewed, and neighbours know no sessions: it has to last.
func lasting(rec store.Record) time.Duration {
	if rec.Session != "" {
		return store.MaxTTL
	}
	return rec.TTL
}

// ceil returns t in seconds, rounded up.
func ceil(t time.Time) int64 {
	if t.Nanosecond() > 0 {
		return t.Unix() + 1
	}
	return t.Unix()
}

func decimal(n int64) *string {
	text := strconv.FormatInt(n, 10)
	return &text
}
