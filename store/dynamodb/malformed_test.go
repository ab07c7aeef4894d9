package dynamodb

import (
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

func str(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func num(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }
func bin(v string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(v)} }

// malformed are attributes that somebody else changed, by what the error says of them.
var malformed = map[string]table.Row{
	"attribute version: missing":                              {attrVersion: nil},
	"attribute version: a number":                             {attrVersion: num("1")},
	"attribute format: missing":                               {attrFormat: nil},
	"attribute format: 2":                                     {attrFormat: num("2")},
	"attribute token: a string":                               {attrToken: str("1")},
	"attribute token: missing":                                {attrToken: nil},
	"attribute token: -1":                                     {attrToken: num("-1")},
	"attribute token: 1.5":                                    {attrToken: num("1.5")},
	"attribute token: invalid record: Token 9007199254740992": {attrToken: num("9007199254740992")},
	"attribute ttl: a number":                                 {attrTTL: num("15")},
	`attribute ttl: "15": want a duration`:                    {attrTTL: str("15")},
	"attribute ttl: invalid record: TTL 1ms":                  {attrTTL: str("1ms")},
	"attribute owner: a boolean":                              {attrOwner: &types.AttributeValueMemberBOOL{Value: true}},
	"attribute owner: invalid record: Owner":                  {attrOwner: str("a\nb")},
	`attribute acquired: "yesterday"`:                         {attrAcquired: str("yesterday")},
	"attribute info: not a JSON object":                       {attrInfo: str("{")},
	"attribute info: a map":                                   {attrInfo: &types.AttributeValueMemberM{Value: table.Row{"host": str("h")}}},
	"attribute data: a string":                                {attrData: str("x")},
	"attribute past: line 2: 1 fields":                        {attrPast: str("1\t2026-11-21T09:00:00Z\t1s\treleased\ta\nx")},
	"attribute past: line 1: the token":                       {attrPast: str("x\t2026-11-21T09:00:00Z\t1s\treleased\ta")},
	"attribute past: line 1: the beginning":                   {attrPast: str("1\tnow\t1s\treleased\ta")},
	"attribute past: line 1: the third field":                 {attrPast: str("1\t2026-11-21T09:00:00Z\tlong\treleased\ta")},
	"attribute past: not deflated":                            {attrPast: bin("x")},
	"attribute past: a list":                                  {attrPast: &types.AttributeValueMemberL{Value: []types.AttributeValue{str("x")}}},
	"attribute past: invalid record: Past 9 terms":            {attrPast: str(strings.Repeat("1\t2026-11-21T09:00:00Z\t1s\treleased\ta\n", 8) + "1\t2026-11-21T09:00:00Z\t1s\treleased\ta")},
	"attribute nonce: a set":                                  {attrNonce: &types.AttributeValueMemberSS{Value: []string{"a"}}},
	`attribute written: "soon"`:                               {attrWritten: str("soon")},
}

// A row that can't be read is an error that names table, key and attribute, from every call that meets it, and stays as it is.
func TestMalformedRows(t *testing.T) {
	s := testStore(t, Options{})
	good := mustPut(t, s, held("good", 1))
	for want, change := range malformed {
		t.Run(want, func(t *testing.T) {
			row := s.encode(store.Record{Key: "bad", Owner: "holder", Token: 3, TTL: 15e9, Nonce: "n", Version: "V"})
			maps.Copy(row, change)
			maps.DeleteFunc(row, func(_ string, v types.AttributeValue) bool { return v == nil })
			if _, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table.Name, Item: row}); err != nil {
				t.Fatal(err)
			}
			check := func(call string, err error) {
				t.Helper()
				if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("%s: %v, want ErrCorrupt and a known outcome", call, err)
					return
				}
				for _, part := range []string{"bad: ", "table " + s.table.Name, want} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %q isn't in: %v", call, part, err)
					}
				}
			}
			_, err := s.Get(t.Context(), "bad")
			check("Get", err)
			_, err = s.Wait(t.Context(), "bad", "")
			check("Wait", err)
			check("Put", putAt(t, s, held("bad", 9)))
			check("Delete", s.Delete(t.Context(), "bad", "other"))
			var keys []string
			for rec, err := range s.List(t.Context(), "") {
				if err != nil {
					check("List", err)
					continue
				}
				keys = append(keys, rec.Key)
			}
			if len(keys) != 1 || keys[0] != good.Key {
				t.Errorf("beside it List yielded %v", keys)
			}
			out, err := s.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table.Name, Key: rowKey("bad"), ConsistentRead: aws.Bool(true)})
			if err != nil || !reflect.DeepEqual(out.Item, row) {
				t.Errorf("it was changed to %v, %v", out.Item, err)
			}
		})
	}
}
