package dynamotables

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// at is a time of the wall clock between two seconds.
var at = time.Date(2026, 11, 21, 10, 0, 0, 500_000_000, time.UTC)

func render(sc schema, rec store.Record) map[string]string {
	got := map[string]string{}
	for i, v := range sc.write(rec, "ID", at) {
		if v != nil {
			got[sc.columns[i].name] = *v
		}
	}
	return got
}

// What neighbours find in our rows, byte for byte.
func TestTheirColumns(t *testing.T) {
	const now = 1795255200 // at, rounded down
	sec := func(n int) string { return strconv.Itoa(now + n) }
	held := store.Record{Owner: "host/1/x", Token: 1, TTL: 20 * time.Second}
	short, kept, free := held, held, store.Record{Token: 1, Past: []store.Term{{Owner: "host/1/x"}}}
	short.TTL = 1500*time.Millisecond + 1
	kept.Session = "session/1"
	year := int(store.MaxTTL / time.Second)
	for name, c := range map[string]struct {
		schema schema
		rec    store.Record
		want   map[string]string
	}{
		"admiral, TTL of the window":       {admiralSchema(20*time.Second, 0), held, map[string]string{"leaseOwner": "host/1/x", "updatedTime": sec(1)}},
		"admiral, longer TTL":              {admiralSchema(15*time.Second, 0), held, map[string]string{"leaseOwner": "host/1/x", "updatedTime": sec(6)}},
		"admiral, shorter TTL":             {admiralSchema(time.Minute, 0), held, map[string]string{"leaseOwner": "host/1/x", "updatedTime": sec(0)}},
		"admiral, skew":                    {admiralSchema(20*time.Second, 3*time.Second), held, map[string]string{"leaseOwner": "host/1/x", "updatedTime": sec(4)}},
		"admiral, kept by a session":       {admiralSchema(20*time.Second, 0), kept, map[string]string{"leaseOwner": "host/1/x", "updatedTime": sec(year - 20 + 1)}},
		"admiral, free":                    {admiralSchema(20*time.Second, 0), free, map[string]string{"leaseOwner": "", "updatedTime": sec(0)}},
		"dynamodb-lease":                   {dynamodbLeaseSchema(time.Minute, 0), held, map[string]string{"lease_version": "ID", "lease_expiry": sec(21)}},
		"dynamodb-lease, skew":             {dynamodbLeaseSchema(time.Minute, 2*time.Second), short, map[string]string{"lease_version": "ID", "lease_expiry": sec(5)}},
		"dynamodb-lease, kept":             {dynamodbLeaseSchema(time.Minute, 0), kept, map[string]string{"lease_version": "ID", "lease_expiry": sec(year + 1)}},
		"dynamodb-lease, free":             {dynamodbLeaseSchema(time.Minute, 0), free, map[string]string{}},
		"aws-lock-client":                  {awsLockSchema(DurationJava), held, map[string]string{"ownerName": "host/1/x", "leaseDuration": "20000", "recordVersionNumber": "ID"}},
		"aws-lock-client, rounded up":      {awsLockSchema(DurationJava), short, map[string]string{"ownerName": "host/1/x", "leaseDuration": "1501", "recordVersionNumber": "ID"}},
		"aws-lock-client, kept":            {awsLockSchema(DurationJava), kept, map[string]string{"ownerName": "host/1/x", "leaseDuration": strconv.Itoa(year * 1000), "recordVersionNumber": "ID"}},
		"aws-lock-client, free":            {awsLockSchema(DurationJava), free, map[string]string{"ownerName": "host/1/x", "leaseDuration": "0", "recordVersionNumber": "ID", "isReleased": "1"}},
		"aws-lock-client, never held":      {awsLockSchema(DurationJava), store.Record{}, map[string]string{"ownerName": "leasehold", "leaseDuration": "0", "recordVersionNumber": "ID", "isReleased": "1"}},
		"dynamolock":                       {awsLockSchema(DurationDynamolock), held, map[string]string{"ownerName": "host/1/x", "leaseDuration": "20s", "recordVersionNumber": "ID"}},
		"dynamolock, of a TTL to the last": {awsLockSchema(DurationDynamolock), short, map[string]string{"ownerName": "host/1/x", "leaseDuration": "1.500000001s", "recordVersionNumber": "ID"}},
		"dynamolock, free":                 {awsLockSchema(DurationDynamolock), free, map[string]string{"ownerName": "host/1/x", "leaseDuration": "0s", "recordVersionNumber": "ID", "isReleased": "1"}},
	} {
		if got := render(c.schema, c.rec); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A hold of ours outlasts its TTL by the neighbour's own rule, to the second, whatever the TTL.
func TestOursLastLongEnough(t *testing.T) {
	for _, ttl := range []time.Duration{store.MinTTL, time.Second, 1001 * time.Millisecond, 15 * time.Second, time.Hour, store.MaxTTL} {
		for offset := range 10 {
			wall := at.Add(time.Duration(offset) * 100 * time.Millisecond)
			rec := store.Record{Owner: "me", Token: 1, TTL: ttl}
			end := wall.Add(ttl)
			lease := dynamodbLeaseSchema(time.Minute, 0).write(rec, "ID", wall)
			if expiry := seconds64(t, *lease[1]); expiry < end.Unix() { // taken when lease_expiry < now
				t.Errorf("dynamodb-lease: TTL %v from %v: expires at %d, %v before it may", ttl, wall, expiry, end.Sub(time.Unix(expiry, 0)))
			}
			const window = 20
			admiral := admiralSchema(window*time.Second, 0).write(rec, "ID", wall)
			if updated := seconds64(t, *admiral[1]); updated < end.Unix()-window { // taken when updatedTime < now - window
				t.Errorf("admiral: TTL %v from %v: taken over from %d on", ttl, wall, updated+window+1)
			}
			d, err := parseDuration(*awsLockSchema(DurationJava).write(rec, "ID", wall)[1])
			if err != nil || d < ttl {
				t.Errorf("aws-lock-client: TTL %v: leaseDuration %v, %v", ttl, d, err)
			}
		}
	}
}

func seconds64(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Attributes that neither side knows stay, in a row that a neighbour wrote and in one of ours.
func TestUnknownAttributesStay(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		row := theirRow(w.kind.name, time.Now())
		row["team"], row["data"] = str("payments"), &types.AttributeValueMemberB{Value: []byte{0, 0xff}}
		row["list"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{number("1"), str("x")}}
		w.plant(t, "job", row)
		rec := mustGet(t, w, "job")
		for _, step := range []string{"taken", "renewed", "released", "taken again"} {
			next := ours("job", rec.Token+1, rec.Version)
			if step == "released" {
				next.Owner = ""
			}
			rec = mustPut(t, w, next)
			got := w.attrs(t, "job")
			for _, attr := range []string{"team", "data", "list"} {
				if !reflect.DeepEqual(got[attr], row[attr]) {
					t.Errorf("%s: %s is %v, want %v", step, attr, got[attr], row[attr])
				}
			}
			if w.kind.name == "admiral" && !reflect.DeepEqual(got["notes"], row["notes"]) {
				t.Errorf("%s: notes is %v", step, got["notes"])
			}
		}
	})
}

// A neighbour's hold that may last longer than the option says is left until its time has passed, and then no wall clock is
// asked any more: not that of this machine when it is set, forward or back.
func TestPitfall_T4_WallClockIsAskedOnce(t *testing.T) {
	for _, name := range []string{"admiral", "dynamodb-lease"} {
		k := kindOf(t, name)
		w := newWorld(t, k)
		c := clock.NewFake(0)
		open := func() *Store {
			var s *Store
			var err error
			if name == "admiral" {
				s, err = Admiral(w.client, AdmiralOptions{Table: w.name, Wait: testWait, Threshold: testThreshold, Skew: time.Second, Access: Access{Clock: c}})
			} else {
				s, err = DynamoDBLease(w.client, DynamoDBLeaseOptions{Table: w.name, TTL: testTTL, Skew: time.Second, Access: Access{Clock: c}})
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		}
		s := open()
		const far = 10 * time.Minute
		usual := testWait * testThreshold
		if name == "dynamodb-lease" {
			usual = testTTL
		}
		plant := func(ahead time.Duration) { w.plant(t, "job", theirRow(name, time.Now().Add(ahead))) }
		planted := time.Now()
		plant(far)
		first := mustGet(t, s, "job")
		if left := far + usual - time.Since(planted); first.TTL < left || first.TTL > far+usual+3*time.Second {
			t.Errorf("%s: a hold of %v from now lasts %v", name, far+usual, first.TTL)
		}
		for _, step := range []time.Duration{time.Hour, -2 * time.Hour} {
			c.StepWall(step)
			if got := mustGet(t, s, "job"); got.TTL != first.TTL {
				t.Errorf("%s: after a step of %v the same hold lasts %v, want %v", name, step, got.TTL, first.TTL)
			}
		}
		c.StepWall(time.Hour) // right again
		plant(-far)
		for _, step := range []time.Duration{0, time.Hour} { // an abandoned one gets no younger than the option, whatever the clock
			c.StepWall(step)
			if got := mustGet(t, s, "job"); got.TTL != usual {
				t.Errorf("%s: an abandoned hold lasts %v, want %v", name, got.TTL, usual)
			}
		}
		c.StepWall(-time.Hour)
		plant(400 * 24 * time.Hour)
		if got := mustGet(t, open(), "job"); got.TTL != store.MaxTTL {
			t.Errorf("%s: a hold of 400 days lasts %v, want %v", name, got.TTL, store.MaxTTL)
		}
	}
}

// A neighbour's write beats ours that comes later: whether it replaced the row, or changed a column and left our attributes
// beside it, as dynamolock and people at a console do.
func TestPitfall_P3_TheirWritesCount(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		change := map[string]table.Row{
			"admiral":        {"leaseOwner": str(HoldOwner)},
			"dynamodb-lease": {"lease_version": str(newID())},
		}[w.kind.name]
		if change == nil {
			change = table.Row{"recordVersionNumber": str(newID()), "ownerName": str("host-b")}
		}
		for name, write := range map[string]func(key string){
			"replaced": func(key string) { w.plant(t, key, theirRow(w.kind.name, time.Now())) },
			"changed": func(key string) {
				row := w.attrs(t, key)
				maps.Copy(row, change)
				w.plant(t, key, row)
			},
		} {
			stale := mustPut(t, w, ours(name, 5, ""))
			write(name)
			theirs := mustGet(t, w, name)
			if theirs.Owner == stale.Owner || theirs.Version == stale.Version {
				t.Fatalf("%s: reads %+v", name, theirs)
			}
			_, err := w.Put(t.Context(), stale)
			if got := mustConflict(t, err); !reflect.DeepEqual(got, theirs) {
				t.Errorf("%s: a late renewal meets %+v, want %+v", name, got, theirs)
			}
			if got := mustConflict(t, w.Delete(t.Context(), name, stale.Version)); !reflect.DeepEqual(got, theirs) {
				t.Errorf("%s: a late deletion meets %+v, want %+v", name, got, theirs)
			}
		}
	})
}

// The list has each key once, whoever wrote it, and no companion.
func TestListBesideNeighbours(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		mustPut(t, w, ours("a/held", 5, ""))
		mustPut(t, w, ours("a/deleted", 6, ""))
		w.wipe(t, "a/deleted")
		mustPut(t, w, ours("a/taken", 7, ""))
		w.plant(t, "a/taken", theirRow(w.kind.name, time.Now()))
		w.plant(t, "a/theirs", theirRow(w.kind.name, time.Now()))
		w.plant(t, strings.Repeat("k", store.MaxKey+1), theirRow(w.kind.name, time.Now())) // no key of a record
		mustPut(t, w, ours("b", 8, ""))
		want := map[string]uint64{"a/held": 5, "a/deleted": 6, "a/taken": 8, "a/theirs": 1}
		got := map[string]uint64{}
		for rec, err := range w.List(t.Context(), "a/") {
			if _, twice := got[rec.Key]; err != nil || twice {
				t.Fatalf("%+v, %v", rec, err)
			}
			if read := mustGet(t, w, rec.Key); !reflect.DeepEqual(read, rec) {
				t.Errorf("listed %+v, read %+v", rec, read)
			}
			got[rec.Key] = uint64(rec.Token)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// Rows under another value of the sort key are another's.
func TestSortKeys(t *testing.T) {
	w := newWorld(t, kindOf(t, "aws-lock-client/dynamolock"))
	other := theirRow(w.kind.name, time.Now())
	other["lock"], other["kind"] = str("job"), str("other")
	if _, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.name, Item: other}); err != nil {
		t.Fatal(err)
	}
	if rec, err := w.Get(t.Context(), "job"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%+v, %v", rec, err)
	}
	for rec, err := range w.List(t.Context(), "") {
		t.Errorf("listed %+v, %v", rec, err)
	}
	mustPut(t, w, ours("job", 1, ""))
}

func TestOptions(t *testing.T) {
	client := testClient(t, "http://127.0.0.1:1")
	admiral := func(o AdmiralOptions) error { _, err := Admiral(client, o); return err }
	lease := func(o DynamoDBLeaseOptions) error { _, err := DynamoDBLease(client, o); return err }
	aws := func(o AWSLockClientOptions) error { _, err := AWSLockClient(client, o); return err }
	for _, c := range []struct {
		err  error
		want string // "" for none
	}{
		{admiral(AdmiralOptions{Wait: 15 * time.Second, Threshold: 3}), ""},
		{admiral(AdmiralOptions{Threshold: 3}), "Wait 0s"},
		{admiral(AdmiralOptions{Wait: 1500 * time.Millisecond, Threshold: 3}), "Wait 1.5s"},
		{admiral(AdmiralOptions{Wait: 15 * time.Second}), "Threshold 0"},
		{admiral(AdmiralOptions{Wait: time.Hour, Threshold: 1e9}), "Threshold 1000000000"},
		{admiral(AdmiralOptions{Wait: 15 * time.Second, Threshold: 3, Skew: -1}), "Skew -1ns"},
		{lease(DynamoDBLeaseOptions{}), ""},
		{lease(DynamoDBLeaseOptions{TTL: time.Second}), "TTL 1s"},
		{lease(DynamoDBLeaseOptions{TTL: store.MaxTTL + 1}), "TTL 8784h"},
		{lease(DynamoDBLeaseOptions{Skew: -1}), "Skew -1ns"},
		{aws(AWSLockClientOptions{Table: "locks"}), ""},
		{aws(AWSLockClientOptions{}), `Table ""`},
		{aws(AWSLockClientOptions{Table: "locks", Duration: "rust"}), `Duration "rust"`},
		{aws(AWSLockClientOptions{Table: "locks", SortKey: "kind"}), `SortKey "kind"`},
		{aws(AWSLockClientOptions{Table: "locks", SortValue: "job"}), `SortValue "job"`},
		{aws(AWSLockClientOptions{Table: "locks", KeyAttribute: "ownerName"}), `KeyAttribute "ownerName"`},
		{aws(AWSLockClientOptions{Table: "locks", KeyAttribute: "k", SortKey: "k", SortValue: "v"}), `SortKey "k"`},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	if _, err := Admiral(nil, AdmiralOptions{Wait: time.Second, Threshold: 1}); err == nil || !strings.Contains(err.Error(), "client nil") {
		t.Errorf("%v", err)
	}
}

// Inspect finds nothing wrong with a table that is right, says what is with one that isn't, and leaves nothing behind.
func TestInspect(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		if w.kind.ttl != "" {
			w.expireRows(t)
		}
		if err := w.Check(t.Context()); err != nil {
			t.Error(err)
		}
		for _, f := range w.Inspect(t.Context()) {
			if f.Status != driver.StatusOK || f.Detail == "" || f.Advice != "" {
				t.Errorf("%+v", f)
			}
		}
		if rows := w.rows(t); rows != 0 {
			t.Errorf("%d rows are left", rows)
		}
		for _, k := range kinds {
			if k.key == w.kind.key && k.sort == w.kind.sort {
				continue
			}
			s, err := k.open(w.client, w.name)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]driver.Status{}
			for _, f := range s.Inspect(t.Context()) {
				found[f.What] = f.Status
			}
			if err := s.Check(t.Context()); err == nil || !strings.Contains(err.Error(), w.name) || !strings.Contains(err.Error(), "want the key "+k.key) {
				t.Errorf("as %s: %v", k.name, err)
			}
			if found["key schema"] != driver.StatusFail || found["permissions"] != driver.StatusFail {
				t.Errorf("as %s: %v", k.name, found)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// replicated is a client to which every table is a global one of eventual consistency.
type replicated struct{ *dynamodb.Client }

func (c replicated) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, opts ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := c.Client.DescribeTable(ctx, in, opts...)
	if err == nil {
		out.Table.Replicas = []types.ReplicaDescription{{RegionName: ptr("eu-west-1")}}
	}
	return out, err
}

// A global table of eventual consistency is refused, unless this is the Region that everybody writes in.
func TestCheckOfAGlobalTable(t *testing.T) {
	w := newWorld(t, kindOf(t, "admiral"))
	for home, want := range map[string]string{"": "home_region", "eu-west-1": "its home Region is eu-west-1", "us-east-1": ""} {
		access := patient
		access.HomeRegion, access.Identity = home, func(context.Context) (string, error) { return "somebody", nil }
		s, err := Admiral(replicated{w.client}, AdmiralOptions{Table: w.name, Wait: testWait, Threshold: testThreshold, Access: access})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("home Region %q: %v", home, err)
		}
		found := s.Inspect(t.Context())
		for _, f := range found {
			if failed := f.Status == driver.StatusFail; failed != (f.What == "consistency mode" && want != "") {
				t.Errorf("home Region %q: %+v", home, f)
			}
		}
		if !slices.ContainsFunc(found, func(f driver.Finding) bool { return f.What == "identity" && f.Detail == "somebody" }) {
			t.Errorf("nobody's identity: %+v", found)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What DynamoDB's own expiry means for leases.
func TestInspectTTL(t *testing.T) {
	w := newWorld(t, kindOf(t, "dynamodb-lease"))
	for attr, want := range map[string]driver.Status{"lease_expiry": driver.StatusOK, "": driver.StatusWarn, "other": driver.StatusFail} {
		ttl := &types.TimeToLiveDescription{AttributeName: &attr, TimeToLiveStatus: types.TimeToLiveStatusEnabled}
		if attr == "" {
			ttl = nil
		}
		if f := w.inspectTTL(ttl); f.Status != want {
			t.Errorf("%s: %+v, want %s", attr, f, want)
		}
	}
}
