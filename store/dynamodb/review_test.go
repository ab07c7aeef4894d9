package dynamodb

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store/driver"
)

// described returns the description of a good table, changed.
func described(change func(*types.TableDescription)) *types.TableDescription {
	t := &types.TableDescription{
		TableName: aws.String("leases"), TableStatus: types.TableStatusActive, TableArn: aws.String("arn:aws:dynamodb:us-east-1:123456789012:table/leases"),
		KeySchema:                 Plan{Table: "leases"}.input().KeySchema,
		AttributeDefinitions:      Plan{Table: "leases"}.input().AttributeDefinitions,
		BillingModeSummary:        &types.BillingModeSummary{BillingMode: types.BillingModePayPerRequest},
		DeletionProtectionEnabled: aws.Bool(true),
	}
	if change != nil {
		change(t)
	}
	return t
}

func replicas(mode types.MultiRegionConsistency, regions ...string) func(*types.TableDescription) {
	return func(t *types.TableDescription) {
		t.GlobalTableVersion, t.MultiRegionConsistency = aws.String("2019.11.21"), mode
		for _, r := range regions {
			t.Replicas = append(t.Replicas, types.ReplicaDescription{RegionName: aws.String(r), ReplicaStatus: types.ReplicaStatusActive})
		}
	}
}

func TestReview(t *testing.T) {
	on := func(attr string) *types.TimeToLiveDescription {
		return &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled, AttributeName: &attr}
	}
	for name, c := range map[string]struct {
		table        *types.TableDescription
		ttl          *types.TimeToLiveDescription
		region, home string
		what         string // the finding that isn't ok; "" when all are
		status       driver.Status
		says         []string
	}{
		"good":               {table: described(nil)},
		"good, home Region":  {table: described(nil), region: "us-east-1", home: "us-east-1"},
		"updating":           {table: described(func(t *types.TableDescription) { t.TableStatus = types.TableStatusUpdating })},
		"strong mode":        {table: described(replicas(types.MultiRegionConsistencyStrong, "us-east-1", "us-east-2"))},
		"strong, with home":  {table: described(replicas(types.MultiRegionConsistencyStrong, "us-east-1", "us-east-2")), home: "us-east-1"},
		"a replica of own":   {table: described(replicas("", "us-east-1"))}, // the last one of a table that was global
		"TTL being disabled": {table: described(nil), ttl: &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabling, AttributeName: aws.String("token")}},

		"eventual mode": {
			table: described(replicas(types.MultiRegionConsistencyEventual, "eu-west-1", "us-east-1")), what: "consistency mode", status: driver.StatusFail,
			says: []string{"MREC", "eu-west-1", "last writer wins", "home_region", "MRSC", "us-east-1"},
		},
		"a mode that isn't said":     {table: described(replicas("", "eu-west-1")), what: "consistency mode", status: driver.StatusFail, says: []string{"MREC"}},
		"a mode that isn't known":    {table: described(replicas("NOVEL", "eu-west-1")), what: "consistency mode", status: driver.StatusFail, says: []string{"MREC"}},
		"eventual, pinned here":      {table: described(replicas("EVENTUAL", "eu-west-1")), region: "us-east-1", home: "us-east-1", what: "consistency mode", status: driver.StatusWarn, says: []string{"us-east-1 only", "every other program"}},
		"eventual, pinned elsewhere": {table: described(replicas("EVENTUAL", "eu-west-1")), region: "us-east-1", home: "eu-west-1", what: "consistency mode", status: driver.StatusFail, says: []string{"home Region is eu-west-1", "client is one of us-east-1"}},
		"pinned elsewhere by ARN":    {table: described(nil), home: "eu-west-1", what: "consistency mode", status: driver.StatusFail, says: []string{"one of us-east-1"}},
		"strong, pinned elsewhere":   {table: described(replicas("STRONG", "eu-west-1")), home: "eu-west-1", what: "consistency mode", status: driver.StatusFail},
		"legacy global table": {
			table: described(func(t *types.TableDescription) { t.GlobalTableVersion = aws.String("2017.11.29") }), what: "consistency mode", status: driver.StatusFail, says: []string{"other Regions"},
		},
		"creating":   {table: described(func(t *types.TableDescription) { t.TableStatus = types.TableStatusCreating }), what: "table status", status: driver.StatusFail, says: []string{"CREATING", "try again"}},
		"deleting":   {table: described(func(t *types.TableDescription) { t.TableStatus = types.TableStatusDeleting }), what: "table status", status: driver.StatusFail, says: []string{"DELETING"}},
		"no KMS key": {table: described(func(t *types.TableDescription) { t.TableStatus = types.TableStatusInaccessibleEncryptionCredentials }), what: "table status", status: driver.StatusFail, says: []string{"KMS"}},
		"another key": {
			table: described(func(t *types.TableDescription) {
				t.KeySchema = []types.KeySchemaElement{{AttributeName: aws.String("leaseName"), KeyType: types.KeyTypeHash}}
				t.AttributeDefinitions = []types.AttributeDefinition{{AttributeName: aws.String("leaseName"), AttributeType: "S"}}
			}), what: "key schema", status: driver.StatusFail, says: []string{"leaseName S HASH", "key S HASH", "leasehold init dynamodb"},
		},
		"a number": {table: described(func(t *types.TableDescription) {
			t.AttributeDefinitions = []types.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: "N"}}
		}), what: "key schema", status: driver.StatusFail, says: []string{"key N HASH"}},
		"a sort key": {table: described(func(t *types.TableDescription) {
			t.KeySchema = append(t.KeySchema[:1:1], types.KeySchemaElement{AttributeName: aws.String("sort"), KeyType: types.KeyTypeRange})
		}), what: "key schema", status: driver.StatusFail, says: []string{"RANGE"}},
		"TTL on the token":    {table: described(nil), ttl: on("token"), what: "time to live", status: driver.StatusFail, says: []string{"could delete one that is held", "update-time-to-live"}},
		"TTL on the duration": {table: described(nil), ttl: on("ttl"), what: "time to live", status: driver.StatusFail},
		"TTL on another":      {table: described(nil), ttl: on("expires"), what: "time to live", status: driver.StatusWarn, says: []string{"expires", "turn it off"}},
		"provisioned":         {table: described(func(t *types.TableDescription) { t.BillingModeSummary = nil }), what: "capacity", status: driver.StatusWarn, says: []string{"on-demand"}},
		"an index": {table: described(func(t *types.TableDescription) {
			t.GlobalSecondaryIndexes = []types.GlobalSecondaryIndexDescription{{}}
		}), what: "capacity", status: driver.StatusWarn, says: []string{"1 indexes", "drop"}},
		"unprotected": {table: described(func(t *types.TableDescription) { t.DeletionProtectionEnabled = nil }), what: "deletion protection", status: driver.StatusWarn},
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range review(c.table, c.ttl, c.region, c.home) {
				want := driver.StatusOK
				if f.What == c.what {
					want = c.status
				}
				if f.Status != want || (f.Advice == "") != (want == driver.StatusOK) || f.Detail == "" {
					t.Errorf("%+v, want %s", f, want)
				}
				for _, text := range c.says {
					if f.What == c.what && !strings.Contains(f.Detail+" "+f.Advice, text) {
						t.Errorf("%q isn't in %+v", text, f)
					}
				}
			}
		})
	}
}

// The wire's own words for a global table, as the service answers DescribeTable.
const globalTable = `{"Table":{"AttributeDefinitions":[{"AttributeName":"key","AttributeType":"S"}],"TableName":"leases",
"KeySchema":[{"AttributeName":"key","KeyType":"HASH"}],"TableStatus":"ACTIVE","CreationDateTime":1.7636544E9,"ItemCount":0,
"TableArn":"arn:aws:dynamodb:us-east-1:123456789012:table/leases","BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST"},
"GlobalTableVersion":"2019.11.21","Replicas":[{"RegionName":"eu-west-1","ReplicaStatus":"ACTIVE"}],
"MultiRegionConsistency":"%s","DeletionProtectionEnabled":true}}`

const noTTL = `{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`

// describing is a server that describes a table, and does nothing else.
func describing(t *testing.T, table, ttl string) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch opOf(r) {
		case "DescribeTable":
			_, _ = io.WriteString(w, table)
		case "DescribeTimeToLive":
			_, _ = io.WriteString(w, ttl)
		default:
			says(400, "ValidationException")(w)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestOpenLooksAtTheTable(t *testing.T) {
	single := `{"Table":` + string(must(json.Marshal(map[string]any{
		"TableName": "leases", "TableStatus": "ACTIVE", "KeySchema": []map[string]string{{"AttributeName": "key", "KeyType": "HASH"}},
		"AttributeDefinitions": []map[string]string{{"AttributeName": "key", "AttributeType": "S"}},
	}))) + "}"
	for name, c := range map[string]struct {
		table, ttl string
		opts       Options
		refused    []string
	}{
		"one Region":            {single, noTTL, Options{}, nil},
		"strong mode":           {fmt.Sprintf(globalTable, "STRONG"), noTTL, Options{}, nil},
		"eventual mode":         {fmt.Sprintf(globalTable, "EVENTUAL"), noTTL, Options{}, []string{"table leases", "MREC", "eu-west-1", "home_region", "HomeRegion in Go", "homeRegion"}},
		"eventual mode, pinned": {fmt.Sprintf(globalTable, "EVENTUAL"), noTTL, Options{HomeRegion: "us-east-1"}, nil},
		"pinned elsewhere":      {fmt.Sprintf(globalTable, "EVENTUAL"), noTTL, Options{HomeRegion: "eu-west-1"}, []string{"home Region is eu-west-1", "one of us-east-1"}},
		"elsewhere, unchecked":  {"", "", Options{HomeRegion: "eu-west-1", Unchecked: true}, []string{"home Region is eu-west-1"}},
		"unchecked":             {fmt.Sprintf(globalTable, "EVENTUAL"), noTTL, Options{Unchecked: true}, nil},
		"TTL on the token":      {single, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"token"}}`, Options{}, []string{"time to live", "token"}},
		"TTL being enabled":     {single, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLING","AttributeName":"token"}}`, Options{}, []string{"time to live", "token"}},
		"TTL on another":        {single, `{"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"expires"}}`, Options{}, nil},
		"nothing":               {"{}", noTTL, Options{}, []string{"described nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), testClient(t, describing(t, c.table, c.ttl)), "leases", c.opts)
			if err == nil {
				if c.refused != nil {
					t.Errorf("opened, want a refusal that says %q", c.refused)
				}
				_ = s.Close()
				return
			}
			if c.refused == nil {
				t.Errorf("refused: %v", err)
			}
			for _, want := range c.refused {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q isn't in: %v", want, err)
				}
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
