package kubernetes

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestFinding_N2_OwnersThatAreRefused: what ends before the last holder would take the Lease away from the others.
func TestFinding_N2_OwnersThatAreRefused(t *testing.T) {
	for want, owner := range map[string]metav1.OwnerReference{
		`apiVersion ""`:        {Kind: "Deployment", Name: "web", UID: "u"},
		`apiVersion "a/b/c"`:   {APIVersion: "a/b/c", Kind: "Deployment", Name: "web", UID: "u"},
		`kind ""`:              {APIVersion: "apps/v1", Name: "web", UID: "u"},
		"outlives each holder": {APIVersion: "v1", Kind: "Pod", Name: "web-0", UID: "u"},
		"kind ReplicaSet":      {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d", UID: "u"},
		"kind Job":             {APIVersion: "batch/v1", Kind: "Job", Name: "web", UID: "u"},
		`name "Web"`:           {APIVersion: "apps/v1", Kind: "Deployment", Name: "Web", UID: "u"},
		`uid ""`:               {APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
	} {
		_, err := New(dial(t, &rest.Config{Host: "http://127.0.0.1"}), Options{Namespace: "ns", Owner: &owner})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", owner, err, want)
		}
	}
}

// TestFinding_N2_LeasesOfAnOwner: a Lease that is made has the owner; one that others made keeps what it has. An owner that isn't there, or is
// another one of that name, is told at the beginning.
func TestFinding_N2_LeasesOfAnOwner(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	client, namespace := dial(t, config(t, srv, srv.Addr)), newNamespace(t, srv)
	apply(t, srv, "/apis/apps/v1/namespaces/"+namespace+"/deployments", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`)
	var web metav1.PartialObjectMetadata
	if err := open(t, client, namespace).getJSON(t.Context(), &web, "/apis/apps/v1/namespaces", namespace, "deployments", "web"); err != nil {
		t.Fatal(err)
	}
	owned := func(o metav1.OwnerReference) *Store {
		t.Helper()
		s, err := New(client, Options{Namespace: namespace, Owner: &o})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	right := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: web.UID}
	s := owned(right)
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	electorLease(t, s, "theirs", "controller-0", 15)
	for key, want := range map[string]int{"billing": 1, "Shard/17": 1, "theirs": 0} {
		rec, err := s.Get(t.Context(), key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		for n := range 2 { // made, or taken; and renewed
			next := held(key, rec.Token+1)
			next.Version, next.Nonce = rec.Version, next.Nonce+strings.Repeat("x", n)
			rec = storetest.MustPut(t, s, next)
			got := leaseObject(t, s, key).OwnerReferences
			if len(got) != want || want > 0 && (got[0].UID != web.UID || got[0].Kind != "Deployment" || got[0].Name != "web" || got[0].BlockOwnerDeletion != nil) {
				t.Errorf("write %d: %s is owned by %+v", n, key, got)
			}
		}
	}
	for want, change := range map[string]func(*metav1.OwnerReference){
		"its uid is " + string(web.UID) + ", not 1234": func(o *metav1.OwnerReference) { o.UID = "1234" },
		"has none of that name":                        func(o *metav1.OwnerReference) { o.Name = "api" },
		"has no Node that is in a namespace":           func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = "v1", "Node" },
		"of example.com/v1: ":                          func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" },
	} {
		o := right
		change(&o)
		if err := owned(o).Ping(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", o, err, want)
		}
	}
}

// TestFinding_N2_WhoMayNotLookForTheOwner: the Role needs no more rights for an owner.
func TestFinding_N2_WhoMayNotLookForTheOwner(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	bound, _ := boundStore(t, srv, "")
	bound.owners = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u"}}
	if err := bound.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := bound.Put(t.Context(), held("billing", 1)); err != nil {
		t.Error(err)
	}

	cfg := config(t, srv, srv.Addr) // nor what kinds there are: an operator has taken system:discovery away
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/apis/apps/v1" {
				return next.RoundTrip(r)
			}
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Request: r, ProtoMajor: 1, ProtoMinor: 1,
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)),
			}, nil
		})
	})
	s, err := New(dial(t, cfg), Options{Namespace: newNamespace(t, srv), Owner: &bound.owners[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
