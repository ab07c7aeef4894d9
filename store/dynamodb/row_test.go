package dynamodb

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// plain returns a record as a lease has it, of a holder on a host of that name, with n past terms of n other holders.
func plain(host string, n int) store.Record {
	at := time.Date(2026, 11, 21, 10, 13, 16, 123456789, time.UTC)
	owner := func(i int) string {
		return fmt.Sprintf("%s/%d/%013x", host, 4711+i*17, uint64(i+1)*0x9e3779b97f4a7c15>>12)
	}
	rec := store.Record{
		Key: "billing/nightly", Owner: owner(0), Token: fence.Token(at.UnixMilli()), TTL: 15 * time.Second, Acquired: at,
		Info: map[string]string{"host": host, "pid": "4711"}, Nonce: "ABCDEFGHIJKLMNOPQRST", Version: newVersion(),
	}
	for i := 1; i <= n; i++ {
		from := at.Add(-time.Duration(i) * 3987654321012)
		rec.Past = append(rec.Past, store.Term{
			Owner: owner(i), Token: fence.Token(from.UnixMilli()), From: from, Until: from.Add(1234567890123), Why: "released",
		})
	}
	return rec
}

// A plain lease's row takes one write unit, with its whole past, whatever the host is called.
func TestPlainRowTakesOneUnit(t *testing.T) {
	s := testStore(t, Options{})
	for _, host := range []string{"db1", "billing-7d9f8b6c5-x2k4j", "ip-10-0-123-234.eu-west-1.compute.internal", strings.Repeat("h", 64)} {
		for _, n := range []int{0, 4, 8} {
			rec := plain(host, n)
			rec.Key = fmt.Sprintf("billing/%s/%d", host, n)
			row := s.encode(rec)
			size := table.Size(row)
			_, text := row[attrPast].(*types.AttributeValueMemberS)
			t.Logf("host of %d characters, %d past terms: %d bytes, readable past: %v", len(host), n, size, text || n == 0)
			if size > freeRow {
				t.Errorf("%d bytes, want %d at most", size, freeRow)
			}
			if n == 4 && len(host) < 24 && !text {
				t.Errorf("a short past is deflated")
			}
			out, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table.Name, Item: row, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
			if err != nil || aws.ToFloat64(out.ConsumedCapacity.CapacityUnits) != 1 {
				t.Errorf("the server counts %+v, %v", out.ConsumedCapacity, err)
			}
			if got, err := s.Get(t.Context(), rec.Key); err != nil || !reflect.DeepEqual(got.Past, rec.Past) {
				t.Errorf("%+v, %v", got.Past, err)
			}
		}
	}
}

// Size counts as the server does: it charges a unit more from the first byte over a KiB.
func TestSizeIsTheServers(t *testing.T) {
	s := testStore(t, Options{})
	rec := plain("db1", 3)
	rec.Session, rec.Data, rec.Intervention, rec.Note = ".session/x", []byte{0, 1, 2}, store.InterventionBroken, "ada: naïve 🔒"
	for _, total := range []int{1024, 1025, 4096, 4097, 20 << 10} {
		rec.Info = map[string]string{"pad": ""}
		rec.Info["pad"] = strings.Repeat("x", total-table.Size(s.encode(rec)))
		for range 3 { // the past may change its form
			rec.Info["pad"] = strings.Repeat("x", len(rec.Info["pad"])+total-table.Size(s.encode(rec)))
		}
		row := s.encode(rec)
		if table.Size(row) != total {
			t.Fatalf("a row of %d bytes, want %d", table.Size(row), total)
		}
		put, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table.Name, Item: row, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal})
		if err != nil || aws.ToFloat64(put.ConsumedCapacity.CapacityUnits) != table.WriteUnits(total) {
			t.Errorf("%d bytes: the server counts %v write units, %v; want %v", total, aws.ToFloat64(put.ConsumedCapacity.CapacityUnits), err, table.WriteUnits(total))
		}
		get, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{
			TableName: &s.table.Name, Key: rowKey(rec.Key), ConsistentRead: aws.Bool(true), ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		})
		if err != nil || aws.ToFloat64(get.ConsumedCapacity.CapacityUnits) != table.ReadUnits(total) {
			t.Errorf("%d bytes: the server counts %v read units, %v; want %v", total, aws.ToFloat64(get.ConsumedCapacity.CapacityUnits), err, table.ReadUnits(total))
		}
	}
}

// Any past comes back as it was, as text and deflated.
func TestPastRoundTrip(t *testing.T) {
	words := rapid.StringMatching(`[ -~é日🔒]{0,40}`)
	when := rapid.Custom(func(t *rapid.T) time.Time {
		year := rapid.IntRange(0, 9999).Draw(t, "year")
		return time.Date(year, 1, 1, 0, 0, 0, rapid.IntRange(0, 999_999_999).Draw(t, "ns"), time.UTC).Add(time.Duration(rapid.Int64Range(0, 300*86400).Draw(t, "s")) * time.Second)
	})
	term := rapid.Custom(func(t *rapid.T) store.Term {
		return store.Term{
			Owner: words.Draw(t, "owner"), Token: fence.Token(rapid.Uint64Range(0, uint64(fence.MaxToken)).Draw(t, "token")),
			From: when.Draw(t, "from"), Until: when.Draw(t, "until"), Why: words.Draw(t, "why"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		past := rapid.SliceOfN(term, 1, store.MaxPast).Draw(t, "past")
		for _, rest := range []int{0, 1 << 20} {
			got, err := decodePast(encodePast(past, rest))
			if err != nil || !reflect.DeepEqual(got, past) {
				t.Fatalf("%+v, %v; want %+v", got, err, past)
			}
		}
	})
}

// Deflated text that would fill the memory is refused.
func TestPastIsBounded(t *testing.T) {
	v := encodePast([]store.Term{{Why: strings.Repeat("x", 1<<20)}}, freeRow)
	if past, err := decodePast(v); err == nil || !strings.Contains(err.Error(), "when inflated") {
		t.Errorf("%d terms, %v", len(past), err)
	}
}

// A row is what the package's doc says, for people who look at the table.
func TestRowReads(t *testing.T) {
	s := testStore(t, Options{})
	rec := plain("db1", 1)
	rec.Version = "V"
	row := s.encode(rec)
	delete(row, attrWritten)
	want := table.Row{
		attrKey: str("billing/nightly"), attrFormat: num("1"), attrVersion: str("V"), attrOwner: str(rec.Owner), attrToken: num("1795255996123"),
		attrTTL: str("15s"), attrAcquired: str("2026-11-21T10:13:16.123456789Z"), attrInfo: str(`{"host":"db1","pid":"4711"}`), attrNonce: str(rec.Nonce),
		attrPast: str("1795252008469\t2026-11-21T09:06:48.469135777Z\t20m34.567890123s\treleased\t" + rec.Past[0].Owner),
	}
	for attr, v := range want {
		if !reflect.DeepEqual(row[attr], v) {
			t.Errorf("%s is %#v, want %#v", attr, row[attr], v)
		}
	}
	if len(row) != len(want) {
		t.Errorf("%d attributes, want %d", len(row), len(want))
	}
}

// Whatever is in a row, decoding it doesn't panic, and what it gives is a record that a store takes.
func FuzzDecodePast(f *testing.F) {
	f.Add("1\t2026-11-21T09:00:00Z\t1s\treleased\ta", false)
	f.Add("x", true)
	f.Fuzz(func(t *testing.T, text string, deflated bool) {
		v := str(text)
		if deflated {
			v = bin(text)
		}
		row := table.Row{attrKey: str("k"), attrFormat: num("1"), attrVersion: str("v"), attrToken: num("1"), attrPast: v}
		rec, err := decodeRow(row)
		if err != nil {
			return
		}
		if err := driver.Check(rec); err != nil {
			t.Error(err)
		}
	})
}
