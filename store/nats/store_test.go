package nats

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestOpenRefuses(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	good := newBucket(t, js, 1)
	for name, c := range map[string]struct {
		config jetstream.KeyValueConfig
		want   string
	}{
		"a bucket with a TTL": {jetstream.KeyValueConfig{Bucket: good + "-ttl", TTL: time.Hour}, "without a TTL"},
		"a mirror":            {jetstream.KeyValueConfig{Bucket: good + "-mirror", Mirror: &jetstream.StreamSource{Name: good}}, "name the bucket that it copies"},
		"no bucket":           {jetstream.KeyValueConfig{}, "nats kv add"},
	} {
		bucket := c.config.Bucket
		if bucket == "" {
			bucket = "missing"
		} else if _, err := js.CreateKeyValue(t.Context(), c.config); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), js, bucket, Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), bucket) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Open(t.Context(), js, "a b", Options{}); err == nil || !strings.Contains(err.Error(), "want letters") {
		t.Errorf("a name that is none: %v", err)
	}
	if err := Create(t.Context(), js, good, 1); err != nil {
		t.Errorf("creating what is there: %v", err)
	}
	if err := Create(t.Context(), js, good+"-ttl", 1); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("creating a bucket that has other settings: %v", err)
	}
	if err := Create(t.Context(), js, good+"-three", 3); err == nil || !strings.Contains(err.Error(), "use 1 replica") {
		t.Errorf("three replicas on one server: %v", err)
	}
	if err := Create(t.Context(), js, good, 7); err == nil || !strings.Contains(err.Error(), "1 to 5") {
		t.Errorf("seven replicas: %v", err)
	}
	plain := dial(t, servers.NATS(t, servers.Set("jetstream", "false")).Addr)
	if _, err := Open(t.Context(), plain, good, Options{}); err == nil || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("without JetStream: %v", err)
	}
}

func TestFencing(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	files, memory := newBucket(t, js, 1), fmt.Sprint("m", time.Now().UnixNano())
	if _, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: memory, Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bucket string
		opts   Options
		want   store.Fencing
	}{
		{files, Options{}, store.FencingPerPrimary},
		{files, Options{SyncAlways: true}, store.FencingLinearizable},
		{memory, Options{SyncAlways: true}, store.FencingPerPrimary},
	} {
		s, err := Open(t.Context(), js, c.bucket, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Properties().Fencing; got != c.want {
			t.Errorf("%+v, %s: fencing is %q, want %q", c.opts, s.config.Load().Storage, got, c.want)
		}
		s.Close()
	}
}

// What isn't a record is left as it is, and named.
func TestCorruptRows(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	s := open(t, js, newBucket(t, js, 1))
	good := storetest.MustPut(t, s, held("good", 1))
	for key, value := range map[string]string{"bad": "{", "newer": `{"v":99}`, "empty": "", "a.dotted.key": "{}", "=0A": "{}"} {
		if _, err := s.kv.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	entry, err := s.kv.Get(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	_, getErr := s.Get(t.Context(), "bad")
	_, createErr := s.Put(t.Context(), held("bad", 1))
	_, waitErr := s.Wait(t.Context(), "bad", "")
	for call, err := range map[string]error{"Get": getErr, "Put": createErr, "Delete": s.Delete(t.Context(), "bad", "1"), "Wait": waitErr} {
		if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: %v, want ErrCorrupt with the key", call, err)
		}
	}
	var corrupt, records int
	for rec, err := range s.List(t.Context(), "") {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			corrupt++
		case err != nil || rec.Version != good.Version:
			t.Errorf("List: %+v, %v", rec, err)
		default:
			records++
		}
	}
	if corrupt != 5 || records != 1 {
		t.Errorf("List yielded %d corrupt rows and %d records, want 5 and 1", corrupt, records)
	}
	waiting := startWait(t, s, "good", good.Version)
	if _, err := s.kv.Put(t.Context(), "good", []byte("spoiled")); err != nil {
		t.Fatal(err)
	}
	if got := <-waiting; !errors.Is(got.err, store.ErrCorrupt) {
		t.Errorf("Wait for a row that was spoiled: %+v, want ErrCorrupt", got)
	}
	if now, err := s.kv.Get(t.Context(), "bad"); err != nil || now.Revision() != entry.Revision() {
		t.Errorf("the row is now %v, %v", now, err)
	}
}

func TestInspect(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	s := open(t, js, newBucket(t, js, 1))
	found := map[string]driver.Finding{}
	for _, f := range s.Inspect(t.Context()) {
		found[f.What] = f
	}
	for what, want := range map[string]driver.Finding{
		"server":      {Status: driver.StatusOK, Detail: "NATS 2."},
		"bucket":      {Status: driver.StatusWarn, Detail: "1 replicas", Advice: "3 replicas"},
		"durability":  {Status: driver.StatusWarn, Detail: "may be lost", Advice: "sync_interval: always"},
		"permissions": {Status: driver.StatusOK, Detail: "read, confirmed"},
		"consistency": {Status: driver.StatusOK, Detail: "leader"},
		"clock":       {Status: driver.StatusOK, Detail: "from this machine's"},
	} {
		if f := found[what]; f.Status != want.Status || !strings.Contains(f.Detail, want.Detail) || !strings.Contains(f.Advice, want.Advice) {
			t.Errorf("%s: %+v, want %+v", what, f, want)
		}
	}
	for rec, err := range s.List(t.Context(), "") {
		t.Errorf("Inspect left %+v, %v", rec, err)
	}
}
