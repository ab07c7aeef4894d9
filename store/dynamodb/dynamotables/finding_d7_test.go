package dynamotables

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Neither lock client can read the other's durations, and fails on ours if they are the other's: without the option, what is
// written is what the table's rows have.
func TestFinding_D7_DurationsAsTheTableHasThem(t *testing.T) {
	held := store.Record{Key: "new", Owner: "me", Token: 1, TTL: 20 * time.Second}
	for _, c := range []struct {
		name  string
		rows  map[string]string // durations, by key
		fixed DurationText
		want  string
	}{
		{"an empty table", nil, "", "20000"},
		{"dynamolock's table", map[string]string{"a": "30s", "b": "1m0s"}, "", "20s"},
		{"Java's table", map[string]string{"a": "30000"}, "", "20000"},
		{"rows that either could have written", map[string]string{"a": "0"}, "", "20000"},
		{"the option decides", map[string]string{"a": "30s"}, DurationJava, "20000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := kindOf(t, "aws-lock-client")
			k.open = func(client Client, table string) (*Store, error) {
				return AWSLockClient(client, AWSLockClientOptions{Table: table, Duration: c.fixed, Access: patient})
			}
			w := newWorld(t, k)
			for key, length := range c.rows {
				w.plant(t, key, with(theirRow("aws-lock-client", time.Now()), "leaseDuration", str(length)))
			}
			mustPut(t, w, held)
			if got := lengthOf(t, w, "new"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A client that moves in later, to a table that was empty, is followed at the next write.
func TestFinding_D7_WhoComesLater(t *testing.T) {
	w := newWorld(t, kindOf(t, "aws-lock-client"))
	mustPut(t, w, store.Record{Key: "ours", Owner: "me", Token: 1, TTL: 20 * time.Second})
	w.plant(t, "theirs", with(theirRow("aws-lock-client", time.Now()), "leaseDuration", str("30s")))
	mustGet(t, w, "theirs")
	mustPut(t, w, store.Record{Key: "next", Owner: "me", Token: 1, TTL: 20 * time.Second})
	if got := lengthOf(t, w, "next"); got != "20s" {
		t.Errorf("%q, want 20s", got)
	}
}

func lengthOf(t *testing.T, w *world, key string) string {
	t.Helper()
	text, err := scalar(w.attrs(t, key), column{name: "leaseDuration"})
	if err != nil || text == nil {
		t.Fatal(text, err)
	}
	return *text
}
