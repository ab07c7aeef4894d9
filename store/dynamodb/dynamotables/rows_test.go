package dynamotables

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

func kindOf(t testing.TB, name string) kind {
	t.Helper()
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	t.Fatalf("no schema %q", name)
	return kind{}
}

func seconds(at time.Time) types.AttributeValue { return number(strconv.FormatInt(at.Unix(), 10)) }

// theirRows are rows as each neighbour writes them while it holds the name "job", by schema.
func theirRow(schema string, now time.Time) table.Row {
	switch schema {
	case "admiral":
		return table.Row{"leaseOwner": str("pod-1"), "updatedTime": seconds(now), "notes": str("Created at 1700000000")}
	case "dynamodb-lease":
		return table.Row{"lease_version": str("9f0e2c5e-7b62-4a61-8b5e-6d0a4a3f1c11"), "lease_expiry": seconds(now.Add(testTTL))}
	case "aws-lock-client":
		return table.Row{"ownerName": str("host-a"), "leaseDuration": str("20000"), "recordVersionNumber": str("3b241101-e2bb-4255-8caf-4136c566a962")}
	}
	return table.Row{"ownerName": str("host-a"), "leaseDuration": str("20s"), "recordVersionNumber": str("1795270242516805263:I6DW")}
}

// A neighbour's hold reads as a record whose owner, TTL and version are what its rule says.
func TestTheirHolds(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		schema string
		row    table.Row
		owner  string // "" for free
		ttl    time.Duration
	}{
		"admiral":                             {"admiral", theirRow("admiral", now.Add(-testWait)), "pod-1", testWait * testThreshold},
		"admiral, abandoned long ago":         {"admiral", theirRow("admiral", now.Add(-time.Hour)), "pod-1", testWait * testThreshold},
		"admiral, held by an operator":        {"admiral", table.Row{"leaseOwner": str(HoldOwner), "updatedTime": number("1"), "notes": str("")}, HoldOwner, store.MaxTTL},
		"admiral, held by hand":               {"admiral", table.Row{"leaseOwner": str(HoldOwner)}, HoldOwner, store.MaxTTL},
		"admiral, held, odd time":             {"admiral", table.Row{"leaseOwner": str(HoldOwner), "updatedTime": str("now")}, HoldOwner, store.MaxTTL},
		"admiral, a time as a string":         {"admiral", table.Row{"leaseOwner": str("pod-1"), "updatedTime": str("1700000000")}, "pod-1", testWait * testThreshold},
		"admiral, no time":                    {"admiral", table.Row{"leaseOwner": str("pod-1")}, "pod-1", testWait * testThreshold},
		"admiral, nothing but its name":       {"admiral", table.Row{}, "", 0},
		"admiral, without an owner":           {"admiral", table.Row{"leaseOwner": str(""), "updatedTime": seconds(now)}, "", 0},
		"dynamodb-lease":                      {"dynamodb-lease", theirRow("dynamodb-lease", now.Add(-time.Second)), "dynamodb-lease", testTTL},
		"dynamodb-lease, expired long ago":    {"dynamodb-lease", theirRow("dynamodb-lease", now.Add(-time.Hour)), "dynamodb-lease", testTTL},
		"aws-lock-client, Java":               {"aws-lock-client", theirRow("aws-lock-client", now), "host-a", 20 * time.Second},
		"aws-lock-client, dynamolock's text":  {"aws-lock-client", theirRow("aws-lock-client/dynamolock", now), "host-a", 20 * time.Second},
		"dynamolock, Java's text":             {"aws-lock-client/dynamolock", theirRow("aws-lock-client", now), "host-a", 20 * time.Second},
		"dynamolock, odd text":                {"aws-lock-client/dynamolock", with(theirRow("aws-lock-client", now), "leaseDuration", str("1m1.5s")), "host-a", 61500 * time.Millisecond},
		"aws-lock-client, no time at all":     {"aws-lock-client", with(theirRow("aws-lock-client", now), "leaseDuration", str("0")), "host-a", store.MinTTL},
		"aws-lock-client, released, and kept": {"aws-lock-client", with(theirRow("aws-lock-client", now), "isReleased", str("1")), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kindOf(t, c.schema))
			w.plant(t, "job", c.row)
			rec := mustGet(t, w, "job")
			if rec.Owner != c.owner || rec.TTL != c.ttl || rec.Key != "job" || rec.Version == "" || rec.Age != 0 {
				t.Errorf("%+v, want owner %q and TTL %v", rec, c.owner, c.ttl)
			}
			if rec.Owner != "" && driver.Check(rec) != nil {
				t.Errorf("%+v: %v", rec, driver.Check(rec))
			}
			if again := mustGet(t, w, "job"); !reflect.DeepEqual(again, rec) {
				t.Errorf("read again: %+v, want %+v", again, rec)
			}
		})
	}
}

// with returns the row with one attribute changed, or removed for nil.
func with(row table.Row, attr string, v types.AttributeValue) table.Row {
	row = maps.Clone(row)
	if row[attr] = v; v == nil {
		delete(row, attr)
	}
	return row
}

// Each of a neighbour's writes makes another version.
func TestTheirWritesChangeTheVersion(t *testing.T) {
	now := time.Now()
	for _, k := range kinds {
		w := newWorld(t, k)
		versions := map[string]string{}
		see := func(what string, row table.Row) {
			t.Helper()
			w.plant(t, "job", row)
			rec := mustGet(t, w, "job")
			if before, ok := versions[rec.Version]; ok {
				t.Errorf("%s: %s has the version of %s", k.name, what, before)
			}
			versions[rec.Version] = what
		}
		row := theirRow(k.name, now)
		see("an acquisition", row)
		switch k.name {
		case "admiral":
			see("a renewal", with(row, "updatedTime", seconds(now.Add(testWait))))
			see("another owner", with(row, "leaseOwner", str("pod-2")))
			see("an operator's hold", with(row, "leaseOwner", str(HoldOwner)))
		case "dynamodb-lease":
			see("a renewal", with(row, "lease_version", str(newID())))
		default:
			see("a heartbeat", with(row, "recordVersionNumber", str(newID())))
			see("a release", with(row, "isReleased", str("1")))
			see("a heartbeat of another length", with(row, "leaseDuration", str("30000")))
		}
	}
}

// A row that makes no sense is an error that names table, key and attribute. Nothing that is tried with it changes it.
func TestMalformedRows(t *testing.T) {
	type bad struct {
		attr string
		v    types.AttributeValue
	}
	flag := &types.AttributeValueMemberBOOL{Value: true}
	columns := map[string][]bad{
		"admiral": {
			{"leaseOwner", number("1")}, {"leaseOwner", flag}, {"updatedTime", str("soon")}, {"updatedTime", flag},
			{"updatedTime", number("1.5")}, {"updatedTime", number("1700000000000000")},
		},
		"dynamodb-lease": {
			{"lease_version", nil}, {"lease_version", number("1")}, {"lease_expiry", nil}, {"lease_expiry", str("soon")},
			{"lease_expiry", number("1e30")}, {"lease_expiry", number("0.5")},
		},
		"aws-lock-client": {
			{"ownerName", nil}, {"ownerName", str("")}, {"ownerName", number("1")}, {"leaseDuration", nil}, {"leaseDuration", number("20000")},
			{"leaseDuration", str("")}, {"leaseDuration", str("soon")}, {"leaseDuration", str("-5s")}, {"leaseDuration", str("99999999999999999999")},
			{"recordVersionNumber", nil}, {"recordVersionNumber", number("7")}, {"isReleased", str("yes")}, {"isReleased", flag}, {"isReleased", number("1")},
		},
	}
	columns["aws-lock-client/dynamolock"] = columns["aws-lock-client"]
	ours := []bad{{recordAttr.name, nil}, {recordAttr.name, str("{")}, {recordAttr.name, str(`{"v":2}`)}, {recordAttr.name, number("1")}, {versionAttr.name, number("1")}, {keptAttr.name, str("1")}, {columnsAttr.name, number("1")}}
	for _, k := range kinds {
		w := newWorld(t, k)
		good := mustPut(t, w, store.Record{Key: "good", Token: 1})
		check := func(b bad, row table.Row) {
			t.Helper()
			w.plant(t, "job", with(row, b.attr, b.v))
			before := w.attrs(t, "job")
			_, getErr := w.Get(t.Context(), "job")
			_, createErr := w.Put(t.Context(), store.Record{Key: "job"})
			_, putErr := w.Put(t.Context(), store.Record{Key: "job", Version: good.Version})
			deleteErr := w.Delete(t.Context(), "job", good.Version)
			var listErr error
			listed := 0
			for _, err := range w.List(t.Context(), "") {
				listErr = errors.Join(listErr, err)
				listed++
			}
			for what, err := range map[string]error{"Get": getErr, "Put of a new key": createErr, "Put": putErr, "Delete": deleteErr, "List": listErr} {
				if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("%s: %s with a bad %s: %v, want ErrCorrupt", k.name, what, b.attr, err)
					continue
				}
				for _, part := range []string{w.name, "job", "attribute " + b.attr} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %s: %v: want it to name %q", k.name, what, err, part)
					}
				}
			}
			if listed != 2 {
				t.Errorf("%s: with a bad %s the list has %d entries, want 2", k.name, b.attr, listed)
			}
			if after := w.attrs(t, "job"); !reflect.DeepEqual(after, before) {
				t.Errorf("%s: the row with a bad %s was changed to %v", k.name, b.attr, after)
			}
		}
		for _, b := range columns[k.name] {
			check(b, theirRow(k.name, time.Now()))
		}
		mine := mustPut(t, w, store.Record{Key: "mine", Owner: "me", TTL: time.Minute, Token: 7})
		row := w.attrs(t, "mine")
		delete(row, k.key)
		if err := w.Delete(t.Context(), "mine", mine.Version); err != nil { // for the lists of the next
			t.Fatal(err)
		}
		for _, b := range ours {
			check(b, row)
		}
	}
}

// A companion that makes no sense is an error too: the token in it must not be guessed.
func TestMalformedCompanions(t *testing.T) {
	for _, k := range kinds {
		w := newWorld(t, k)
		mustPut(t, w, store.Record{Key: "job", Owner: "me", TTL: time.Minute, Token: 7})
		good := w.attrs(t, companionPrefix+"job")
		for attr, v := range map[string]types.AttributeValue{
			tokenAttr.name: str("7"), revAttr.name: nil, recordAttr.name: str("{"), endsAttr.name: number("1"),
		} {
			w.plant(t, companionPrefix+"job", with(good, attr, v))
			w.plant(t, "job", theirRow(k.name, time.Now()))
			_, err := w.Get(t.Context(), "job")
			if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), attr) || !strings.Contains(err.Error(), w.name) {
				t.Errorf("%s: a companion with a bad %s: %v", k.name, attr, err)
			}
		}
	}
}

// Rows as the real dynamolock 2.1.0 left them, its own and those that it took over from Leasehold: it copies all attributes that
// it doesn't know into its own row.
func TestDynamolockRows(t *testing.T) {
	text, err := os.ReadFile("testdata/dynamolock.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded []struct {
		Name string                       `json:"name"`
		Row  map[string]map[string]string `json:"row"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	free := map[string]bool{"released and kept": true}
	held := 0
	for _, r := range recorded {
		if r.Row == nil {
			continue // it had deleted the row
		}
		t.Run(r.Name, func(t *testing.T) {
			client := newWorld(t, kindOf(t, "aws-lock-client"))
			row := table.Row{}
			for attr, v := range r.Row {
				switch {
				case attr == "key":
				case v["N"] != "":
					row[attr] = number(v["N"])
				case v["B"] != "":
					row[attr] = &types.AttributeValueMemberB{Value: []byte(v["B"])}
				default:
					row[attr] = str(v["S"])
				}
			}
			client.plant(t, "job", row)
			rec := mustGet(t, client, "job")
			want := store.Record{Key: "job", Owner: "host-a", Token: 1, TTL: 2 * time.Second, Info: map[string]string{"held by": "a client of aws-lock-client"}, Version: rec.Version}
			if free[r.Name] {
				want = store.Record{Key: "job", Version: rec.Version}
			} else {
				held++
			}
			if !reflect.DeepEqual(rec, want) {
				t.Errorf("%+v\nwant %+v", rec, want)
			}
			// It is taken over by a write at that version, and what it copied is gone.
			rec.Owner, rec.Token, rec.TTL, rec.Info = "me", 9, time.Minute, nil
			rec = mustPut(t, client, rec)
			if got := mustGet(t, client, "job"); !reflect.DeepEqual(got, rec) {
				t.Errorf("taken over: %+v, want %+v", got, rec)
			}
		})
	}
	if held != 5 {
		t.Errorf("%d recorded holds, want 5", held)
	}
}
