package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// annotate changes an object as kubectl patch does.
func annotate(t testing.TB, s *Store, key, patch string) {
	t.Helper()
	_, err := s.leases.Patch(t.Context(), objectName(key), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeepsWhatOthersPutOnTheObject: labels, annotations and owners that others have put on the object outlive our writes.
func TestKeepsWhatOthersPutOnTheObject(t *testing.T) {
	s, _ := fresh(t)
	rec := storetest.MustPut(t, s, held("shard/17", 1))
	annotate(t, s, rec.Key, `{"metadata":{"labels":{"team":"blue"},"annotations":{"example.com/note":"kept"},
		"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]}}`)
	changed, err := s.Get(t.Context(), rec.Key)
	if err != nil {
		t.Fatal(err)
	}
	if changed.Version == rec.Version || changed.Nonce != rec.Nonce || changed.Owner != rec.Owner {
		t.Errorf("%+v became %+v", rec, changed)
	}
	changed.Owner, changed.Token = "next", 2
	storetest.MustPut(t, s, changed)
	obj, err := s.leases.Get(t.Context(), objectName(rec.Key), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if obj.Labels["team"] != "blue" || obj.Annotations["example.com/note"] != "kept" || len(obj.OwnerReferences) != 1 || obj.Annotations[annotationKey] != rec.Key {
		t.Errorf("%+v", obj.ObjectMeta)
	}
}

// TestMetadataChangesAreNoConflict: a write from before somebody labelled the object is done; one from before another write of
// the record is not, though that wrote the very same.
func TestMetadataChangesAreNoConflict(t *testing.T) {
	s, _ := fresh(t)
	label := func(n string) { annotate(t, s, "k", `{"metadata":{"labels":{"n":"`+n+`"}}}`) }
	first := storetest.MustPut(t, s, held("k", 1))
	label("1")
	second := storetest.MustPut(t, s, first) // writes what is there
	label("2")
	for what, err := range map[string]error{
		"Put":    func() error { _, err := s.Put(t.Context(), first); return err }(),
		"Delete": s.Delete(t.Context(), "k", first.Version),
	} {
		if !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s from the version before: %v, want a conflict", what, err)
		}
	}
	if err := s.Delete(t.Context(), "k", second.Version); err != nil {
		t.Errorf("deleting the record: %v", err)
	}
	// Made anew with the same record it is another object.
	third := storetest.MustPut(t, s, held("k", 1))
	label("3")
	if _, err := s.Put(t.Context(), second); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a change of the record that was deleted: %v", err)
	}
	storetest.MustPut(t, s, third)
}

// TestCopyIsAnotherObject: an object that was deleted and put back from a copy keeps the very same record, and is another one.
func TestCopyIsAnotherObject(t *testing.T) {
	s, _ := fresh(t)
	rec := storetest.MustPut(t, s, held("k", 1))
	obj, err := s.leases.Get(t.Context(), "k", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.leases.Delete(t.Context(), "k", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	obj.UID, obj.ResourceVersion = "", ""
	if _, err := s.leases.Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Put(t.Context(), rec); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Put from before it was put back: %+v, %v, want a conflict", got, err)
	}
	if err := s.Delete(t.Context(), "k", rec.Version); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Delete from before it was put back: %v, want a conflict", err)
	}
}

// TestReadsWellForPeople: what kubectl get shows is who holds, and the YAML has the times and transitions.
func TestReadsWellForPeople(t *testing.T) {
	s, srv := fresh(t)
	rec := held("Billing/nightly", 1)
	rec.Owner, rec.TTL, rec.Acquired = "worker-7/42/f00d", 15900*time.Millisecond, time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.UTC)
	rec = storetest.MustPut(t, s, rec)
	rec.Owner, rec.Token = "worker-8/1/beef", 2
	began := time.Now()
	rec = storetest.MustPut(t, s, rec)
	ended := time.Now()
	storetest.MustPut(t, s, store.Record{Key: "free"})

	header, rows := table(t, s)
	if header != "Name,Holder,Age" {
		t.Errorf("the columns of kubectl get are %s", header)
	}
	if row := rows["0--42illing--2fnightly"]; row != "worker-8/1/beef" {
		t.Errorf("its row shows the holder %q", row)
	}
	if row := rows["free"]; row != "" {
		t.Errorf("the row of a free name shows the holder %q", row)
	}
	obj, err := s.leases.Get(t.Context(), objectName(rec.Key), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := obj.Spec
	if *spec.LeaseDurationSeconds != 16 || *spec.LeaseTransitions != 1 || spec.AcquireTime.UTC().Nanosecond() != 123456000 {
		t.Errorf("%d s, %d transitions, acquired %v", *spec.LeaseDurationSeconds, *spec.LeaseTransitions, spec.AcquireTime)
	}
	// Of two renewals in one second the later one is said to be of the next: client-go's electors see whole seconds.
	if at := spec.RenewTime.Time; at.Before(began.Add(-time.Millisecond)) || at.After(ended.Add(2*time.Second)) {
		t.Errorf("renewed at %v by a write from %v to %v", spec.RenewTime, began, ended)
	}
	if got, err := s.Get(t.Context(), rec.Key); err != nil || got.TTL != rec.TTL || !got.Acquired.Equal(rec.Acquired) {
		t.Errorf("%v, %v, %v: the record's own times are exact", got.TTL, got.Acquired, err)
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Logf("no kubectl to look with: %v", err)
		return
	}
	out, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", srv.Extra["kubeconfig"], "--namespace", s.namespace, "get", "lease").CombinedOutput()
	t.Logf("kubectl get lease\n%s", out)
	if err != nil || !strings.Contains(string(out), "worker-8/1/beef") {
		t.Errorf("%v", err)
	}
}

// table returns what the server gives kubectl get to print: the columns, and the holder by the name.
func table(t *testing.T, s *Store) (header string, holders map[string]string) {
	t.Helper()
	body, err := s.rest.Get().Namespace(s.namespace).Resource("leases").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var tab metav1.Table
	if err := json.Unmarshal(body, &tab); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range tab.ColumnDefinitions {
		names = append(names, c.Name)
	}
	holders = map[string]string{}
	for _, row := range tab.Rows {
		holders[row.Cells[0].(string)], _ = row.Cells[1].(string)
	}
	return strings.Join(names, ","), holders
}

// TestRoundTrips: a read, a new record, a change and a deletion are one request each; a conflict is two.
func TestRoundTrips(t *testing.T) {
	_, srv := fresh(t)
	var c counter
	s := open(t, dial(t, c.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	count := func(what string, want int64, f func() error) {
		t.Helper()
		before := c.count.Load()
		err := f()
		if n := c.count.Load() - before; n != want {
			t.Errorf("%s: %d requests and %v, want %d", what, n, err, want)
		}
	}
	var rec store.Record
	put := func() (err error) { rec, err = s.Put(context.Background(), rec); return err }
	rec = held("k", 1)
	count("create", 1, put)
	old := rec
	count("change", 1, put)
	count("get", 1, func() error { _, err := s.Get(t.Context(), "k"); return err })
	count("conflict", 2, func() error { _, err := s.Put(t.Context(), old); return err })
	count("creating what is there", 2, func() error { _, err := s.Put(t.Context(), held("k", 3)); return err })
	count("delete", 1, func() error { return s.Delete(t.Context(), "k", rec.Version) })
}

// TestRequestsOfALease counts what a lease costs: a new name is read first, for a refusal is dearer here than a read, and so is where
// locks were kept before names had kinds; whatever follows is one request.
func TestRequestsOfALease(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, requestsOfALease)
}

func requestsOfALease(t testing.TB) {
	_, srv := fresh(t)
	var asked counter
	s := open(t, dial(t, asked.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	// An answer that takes long must not have a renewal sent again.
	m, err := lease.NewManager(s, lease.Options{TTL: 10 * time.Minute, Renew: 3 * time.Second, Attempt: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	// since returns how many requests were answered since it was asked last.
	since := func() func() int64 {
		last := asked.count.Load()
		return func() int64 { n := asked.count.Load(); defer func() { last = n }(); return n - last }
	}()
	for i, want := range []int64{3, 1} { // a new name, and one that is remembered
		l, err := m.Acquire(t.Context(), "billing")
		if err != nil {
			t.Fatal(err)
		}
		if n := since(); n != want {
			t.Errorf("acquisition %d: %d requests, want %d", i, n, want)
		}
		var renewal int64
		for renewal == 0 {
			time.Sleep(10 * time.Millisecond)
			renewal = since()
		}
		time.Sleep(100 * time.Millisecond) // for one that follows it; the next renewal is 2.4 s off
		if renewal += since(); renewal != 1 {
			t.Errorf("a renewal: %d requests, want 1", renewal)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := since(); n != 1 {
			t.Errorf("the release: %d requests, want 1", n)
		}
	}
}

// TestMetadataChangesLoseNoLease: somebody who labels the object changes its version, and the holder keeps its lease.
func TestMetadataChangesLoseNoLease(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	m, err := lease.NewManager(s, lease.Options{TTL: time.Minute, Renew: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	l, err := m.Acquire(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	object := func() *coordinationv1.Lease {
		t.Helper()
		obj, err := s.leases.Get(t.Context(), "billing", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	// until waits for what a renewal does, which knows the version from before.
	until := func(what string, renewed func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !renewed(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v, and the object is %+v", what, context.Cause(l.Context()), object().Spec)
			}
		}
	}
	for i := range 3 {
		annotate(t, s, "billing", `{"metadata":{"labels":{"change":"`+strconv.Itoa(i)+`"}}}`)
		labelled := object().ResourceVersion
		until("no renewal over a label", func() bool { return object().ResourceVersion != labelled })
	}
	// An elector that stops unawares takes the holder out; the next renewal puts it right.
	annotate(t, s, "billing", `{"spec":{"holderIdentity":""}}`)
	until("no renewal puts the holder back", func() bool { return *object().Spec.HolderIdentity == l.Holder() })
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
