package kubernetes

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestFinding_N2_KindsOfRecords: each record has the label of its kind, or none.
func TestFinding_N2_KindsOfRecords(t *testing.T) {
	for _, c := range []struct {
		key  string
		kind store.Kind
		want string
	}{
		{"billing", store.KindLease, "lease"},
		{"billing", store.KindElection, "election"},
		{"billing", store.KindSemaphore, "semaphore"},
		{"billing", "", ""},
		{".session/vm/1/a/b", "", "session"},
		{".election/billing", store.KindElection, "candidates"},
		{".lock/billing", "", "lock"},
		{".identity/pool", store.KindPool, "identity"},
		{"billing", "of no label!", ""},
		{".", "", ""},
		{".a b/", "", ""},
	} {
		got, labelled := labels(store.Record{Key: c.key, Kind: c.kind}, true)[labelKind]
		if got != c.want || labelled != (c.want != "") {
			t.Errorf("%s of kind %q is labelled %q (%t), want %q", c.key, c.kind, got, labelled, c.want)
		}
	}
}

// TestFinding_N2_LabelsSayWhatALeaseIs: a Lease has them from its first write on, one of others gets them when it is taken, with no request
// more, and keeps those that others have put there.
func TestFinding_N2_LabelsSayWhatALeaseIs(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	var requests counter
	s := open(t, dial(t, requests.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	put := func(rec store.Record, want map[string]string) store.Record {
		t.Helper()
		before := requests.count.Load()
		rec = storetest.MustPut(t, s, rec)
		if n := requests.count.Load() - before; n != 1 {
			t.Errorf("%s: %d requests", rec.Key, n)
		}
		if got := leaseObject(t, s, rec.Key).Labels; !maps.Equal(got, want) {
			t.Errorf("%s has the labels %v, want %v", rec.Key, got, want)
		}
		return rec
	}
	mine := func(kind string) map[string]string {
		return map[string]string{labelManaged: managedBy, labelKind: kind}
	}

	rec := held("billing", 1)
	rec.Kind = store.KindLease
	rec = put(rec, mine("lease"))
	rec.Kind, rec.Token, rec.Nonce = store.KindElection, 2, "n2"
	put(rec, mine("election"))
	put(held(".session/vm/1/a/b", 1), mine("session"))

	annotate(t, s, "billing", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm","leasehold.dev/kind":null,"team":"blue"}}}`)
	rec, err := s.Get(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	rec.Token, rec.Nonce = 3, "n3"
	put(rec, map[string]string{labelManaged: "Helm", labelKind: "election", "team": "blue"})

	electorLease(t, s, "theirs", "controller-0", 15)
	if rec, err = s.Get(t.Context(), "theirs"); err != nil {
		t.Fatal(err)
	}
	taken := rec
	taken.Owner, taken.Token, taken.Nonce, taken.Kind = "me", rec.Token+1, "mine", store.KindLease
	taken = put(taken, mine("lease"))
	// Somebody takes a label off: that is no other record, and the next write, from before it, puts the label there again.
	annotate(t, s, "theirs", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`)
	taken.Token, taken.Nonce = taken.Token+1, "again"
	storetest.MustPut(t, s, taken)
	if got := leaseObject(t, s, "theirs").Labels; !maps.Equal(got, mine("lease")) {
		t.Errorf("the labels %v", got)
	}
	selected, err := s.leases.List(t.Context(), metav1.ListOptions{LabelSelector: labelManaged + "=" + managedBy + "," + labelKind + " notin (session,candidates)"})
	if err != nil || len(selected.Items) != 1 || selected.Items[0].Name != "theirs" {
		t.Errorf("%+v, %v", selected, err)
	}
}

// TestFinding_N2_ColumnsOfTheDocs: the columns that docs/stores.md has kubectl print are those of what the server answers.
func TestFinding_N2_ColumnsOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?s)kubectl get leases -l '([^']+)' \\\n\s+-o custom-columns='([^']+)'`).FindStringSubmatch(string(text))
	if command == nil {
		t.Fatal("docs/stores.md has no such command")
	}
	srv := servers.Kubernetes(t, servers.Shared())
	s := open(t, dial(t, config(t, srv, srv.Addr)), newNamespace(t, srv))
	m, err := lease.NewManager(s, lease.Options{TTL: time.Minute, Name: "east-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	session, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, acquire := range []func() (*lease.Lease, error){
		func() (*lease.Lease, error) { return m.Acquire(t.Context(), "billing") },
		func() (*lease.Lease, error) { return session.Acquire(t.Context(), "Shard/17") },
	} {
		if _, err := acquire(); err != nil {
			t.Fatal(err)
		}
	}
	body, err := s.rest.Get().Namespace(s.namespace).Resource("leases").SetHeader("Accept", "application/json").
		Param("labelSelector", command[1]).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%v: %s", err, body)
	}
	for _, obj := range list.Items {
		row := map[string]string{}
		for column := range strings.SplitSeq(command[2], ",") {
			title, path, _ := strings.Cut(column, ":")
			j := jsonpath.New(title).AllowMissingKeys(true) // as kubectl does
			if err := j.Parse("{" + path + "}"); err != nil {
				t.Fatalf("%s: %v", column, err)
			}
			var cell bytes.Buffer
			if err := j.Execute(&cell, obj); err != nil {
				t.Errorf("%s: %v", column, err)
			}
			row[title] = cell.String()
		}
		t.Log(row)
		name, key := "billing", ""
		if row["NAME"] != name {
			name, key = objectName("Shard/17"), "Shard/17"
		}
		if row["NAME"] != name || row["KEY"] != key || row["KIND"] != "lease" || !strings.HasPrefix(row["HOLDER"], "east-1/") || row["SECONDS"] == "" ||
			row["ACQUIRED"] == "" || row["RENEWED"] == "" {
			t.Errorf("%v", row)
		}
	}
}
