package dynamodb

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// The attributes of a row. Those of empty fields are left out.
const (
	attrKey      = "key"      // S, the partition key
	attrFormat   = "format"   // N, of the row: 1
	attrVersion  = "version"  // S, random, made anew by each write
	attrOwner    = "owner"    // S
	attrToken    = "token"    // N
	attrTTL      = "ttl"      // S, a Go duration: DynamoDB's own time to live takes numbers only
	attrSession  = "session"  // S
	attrAcquired = "acquired" // S, RFC 3339
	attrMark     = "mark"     // S
	attrNote     = "note"     // S
	attrKind     = "kind"     // S
	attrInfo     = "info"     // S, a JSON object
	attrPast     = "past"     // S, a line a term, or B: see encodePast
	attrData     = "data"     // B
	attrNonce    = "nonce"    // S
	attrWritten  = "written"  // S, RFC 3339: see stamp
)

const format = 1

func rowKey(key string) table.Row {
	return table.Row{attrKey: &types.AttributeValueMemberS{Value: key}}
}

// encode returns the row of a record that driver.Check has passed.
func (s *Store) encode(rec store.Record) table.Row {
	row := rowKey(rec.Key)
	number := func(name string, n uint64) {
		row[name] = &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
	}
	text := func(name, value string) {
		if value != "" {
			row[name] = &types.AttributeValueMemberS{Value: value}
		}
	}
	number(attrFormat, format)
	number(attrToken, uint64(rec.Token))
	text(attrVersion, rec.Version)
	text(attrOwner, rec.Owner)
	if rec.TTL != 0 {
		text(attrTTL, rec.TTL.String())
	}
	text(attrSession, rec.Session)
	if !rec.Acquired.IsZero() {
		text(attrAcquired, timeText(rec.Acquired))
	}
	text(attrMark, string(rec.Intervention))
	text(attrNote, rec.Note)
	text(attrKind, string(rec.Kind))
	text(attrNonce, rec.Nonce)
	if len(rec.Info) > 0 {
		b, _ := json.Marshal(rec.Info) // a map of strings
		text(attrInfo, string(b))
	}
	if len(rec.Data) > 0 {
		row[attrData] = &types.AttributeValueMemberB{Value: rec.Data}
	}
	text(attrWritten, s.stamp())
	if len(rec.Past) > 0 {
		row[attrPast] = encodePast(rec.Past, table.Size(row))
	}
	return row
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// decode returns the record in a row that was read. Whatever the row holds, it is a record that
// driver.Check passes, or an error that names table, key and attribute.
func (s *Store) decode(key string, read table.Read) (store.Record, error) {
	rec, err := decodeRow(read.Row)
	if err != nil {
		return store.Record{}, driver.Corrupt(key, fmt.Errorf("table %s: %w", s.table.Name, err))
	}
	rec.Age = s.age(read)
	return rec, nil
}

func decodeRow(row table.Row) (store.Record, error) {
	d := decoder{row: row}
	rec := store.Record{
		Key: d.text(attrKey), Owner: d.text(attrOwner), Token: fence.Token(d.number(attrToken)), TTL: d.duration(attrTTL),
		Session: d.text(attrSession), Acquired: d.time(attrAcquired), Intervention: store.Intervention(d.text(attrMark)), Note: d.text(attrNote),
		Kind: store.Kind(d.text(attrKind)), Info: d.info(attrInfo), Past: d.past(attrPast), Data: d.bytes(attrData), Nonce: d.text(attrNonce), Version: d.text(attrVersion),
	}
	d.time(attrWritten)
	if f := d.number(attrFormat); d.err == nil && f != format {
		d.fail(attrFormat, fmt.Errorf("%d: this version of Leasehold reads format %d; was the row written by Leasehold?", f, format))
	}
	if d.err == nil && rec.Version == "" {
		d.fail(attrVersion, errors.New("missing"))
	}
	if d.err != nil {
		return store.Record{}, d.err
	}
	if err := driver.Check(rec); err != nil {
		if invalid := new(store.InvalidError); errors.As(err, &invalid) && fieldAttrs[invalid.Field] != "" {
			d.fail(fieldAttrs[invalid.Field], err)
			return store.Record{}, d.err
		}
		return store.Record{}, err
	}
	return rec, nil
}

// fieldAttrs are the attributes of a record's fields.
var fieldAttrs = map[string]string{
	"Key": attrKey, "Owner": attrOwner, "Token": attrToken, "TTL": attrTTL, "Session": attrSession, "Acquired": attrAcquired,
	"Intervention": attrMark, "Note": attrNote, "Kind": attrKind, "Info": attrInfo, "Past": attrPast, "Data": attrData, "Nonce": attrNonce,
}

// decoder reads attributes and keeps the first error.
type decoder struct {
	row table.Row
	err error
}

func (d *decoder) fail(attr string, err error) {
	if d.err == nil {
		d.err = fmt.Errorf("attribute %s: %w", attr, err)
	}
}

func (d *decoder) text(attr string) string {
	v, ok := d.row[attr]
	if !ok {
		return ""
	}
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		d.fail(attr, fmt.Errorf("a %s: want a string", kindOf(v)))
		return ""
	}
	return s.Value
}

func (d *decoder) number(attr string) uint64 {
	v, ok := d.row[attr]
	if !ok {
		d.fail(attr, errors.New("missing"))
		return 0
	}
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		d.fail(attr, fmt.Errorf("a %s: want a number", kindOf(v)))
		return 0
	}
	u, err := strconv.ParseUint(n.Value, 10, 64)
	if err != nil {
		d.fail(attr, fmt.Errorf("%s: want a whole number, not below 0", n.Value))
	}
	return u
}

func (d *decoder) bytes(attr string) []byte {
	v, ok := d.row[attr]
	if !ok {
		return nil
	}
	b, ok := v.(*types.AttributeValueMemberB)
	if !ok {
		d.fail(attr, fmt.Errorf("a %s: want binary", kindOf(v)))
		return nil
	}
	if len(b.Value) == 0 {
		return nil
	}
	return b.Value
}

func (d *decoder) duration(attr string) time.Duration {
	s := d.text(attr)
	if s == "" {
		return 0
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		d.fail(attr, fmt.Errorf(`%q: want a duration such as "15s"`, s))
	}
	return v
}

func (d *decoder) time(attr string) time.Time {
	s := d.text(attr)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		d.fail(attr, fmt.Errorf("%q: want a time as in RFC 3339", s))
	}
	return t.UTC()
}

func (d *decoder) info(attr string) (info map[string]string) {
	s := d.text(attr)
	if s == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(s), &info); err != nil {
		d.fail(attr, fmt.Errorf("not a JSON object of strings: %w", err))
	}
	if len(info) == 0 {
		return nil
	}
	return info
}

func (d *decoder) past(attr string) []store.Term {
	v, ok := d.row[attr]
	if !ok {
		return nil
	}
	past, err := decodePast(v)
	if err != nil {
		d.fail(attr, err)
	}
	return past
}

// textOf returns a string attribute, or "".
func textOf(row table.Row, attr string) string {
	s, ok := row[attr].(*types.AttributeValueMemberS)
	if !ok {
		return ""
	}
	return s.Value
}

func kindOf(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "string"
	case *types.AttributeValueMemberN:
		return "number"
	case *types.AttributeValueMemberB:
		return "binary"
	case *types.AttributeValueMemberM:
		return "map"
	case *types.AttributeValueMemberL:
		return "list"
	case *types.AttributeValueMemberBOOL:
		return "boolean"
	case *types.AttributeValueMemberNULL:
		return "null"
	}
	return "set"
}
