package server_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// A name that programs share through the library is neither granted by the server, nor shown as free; and they keep out of what the
// server granted.
func TestFinding_S1_TheServerKnowsKinds(t *testing.T) {
	s := newSite(t, server.Options{RDLM: &rdlm.Options{}})
	st := s.db.Open()
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	session, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rw, err := lock.NewRWMutex(session, "yy")
	if err != nil {
		t.Fatal(err)
	}
	h, err := rw.TryRLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/yy", `{"holder": "a"}`, &p), http.StatusConflict)
	if p.Code != api.CodeOtherKind || p.Name != "yy" || p.Kind != store.KindRW || p.Want != string(store.KindLease) {
		t.Errorf("%+v", p)
	}
	want(t, s.ask(t, "POST", "/locks/yy", `{"title": "me", "lifetime": 60, "wait": 0}`, nil), http.StatusConflict)
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/yy", "", &l), http.StatusOK)
	if l.State != api.StateHeld || l.Kind != store.KindRW || len(l.Holders) != 1 {
		t.Fatalf("%+v", l)
	}
	if share := l.Holders[0]; share.Holder != m.Owner() || share.State != api.ShareHeld || share.Mode != api.ModeRead || share.Token != h.Token() {
		t.Errorf("%+v", share)
	}
	semaphore, err := lock.NewSemaphore(session, "slots", lock.SemaphoreOptions{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	slots, err := semaphore.TryAcquire(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := s.client(t, s.URL).Get(t.Context(), "slots")
	if err != nil || seen.Limit != 5 || len(seen.Holders) != 1 {
		t.Fatalf("%+v, %v", seen, err)
	}
	if share := seen.Holders[0]; share.Holder != m.Owner() || share.Weight != 2 || share.Slot != slots.Slot() || share.Token != slots.Token() || share.Write {
		t.Errorf("%+v", share)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	var g api.Grant
	want(t, s.ask(t, "POST", "/v1/leases/yy", `{"holder": "a"}`, &g), http.StatusCreated)
	if g.Token <= h.Token() {
		t.Errorf("token %d after a reader's %d", g.Token, h.Token())
	}
	other := new(store.KindError)
	if _, err := rw.TryRLock(t.Context()); !errors.As(err, &other) || other.Holder != g.Holder {
		t.Errorf("beside what the server granted: %v", err)
	}
}

// A pool's name is neither granted nor free, and a name that the server granted becomes no pool.
func TestFinding_S1_TheServerKnowsPools(t *testing.T) {
	s := newSite(t, server.Options{RDLM: &rdlm.Options{}})
	var p api.Problem
	want(t, s.ask(t, "POST", "/v1/leases/job", `{"holder": "a"}`, nil), http.StatusCreated)
	want(t, s.ask(t, "POST", "/v1/identities/job", `{"as": "web1", "range": "1-3"}`, &p), http.StatusConflict)
	if p.Code != api.CodeOtherKind || p.Name != "job" || p.Kind != store.KindLease || p.Want != string(store.KindPool) {
		t.Errorf("%+v", p)
	}
	want(t, s.ask(t, "POST", "/v1/identities/machines", `{"as": "web1", "range": "1-3"}`, nil), http.StatusCreated)
	want(t, s.ask(t, "POST", "/v1/leases/machines", `{"holder": "a"}`, &p), http.StatusConflict)
	if p.Code != api.CodeOtherKind || p.Kind != store.KindPool || p.Want != string(store.KindLease) {
		t.Errorf("%+v", p)
	}
	want(t, s.ask(t, "POST", "/locks/machines", `{"title": "me", "lifetime": 60, "wait": 0}`, nil), http.StatusConflict)
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/machines", "", &l), http.StatusOK)
	if l.State != api.StatePool || l.Kind != store.KindPool || l.Holder != "" {
		t.Errorf("%+v", l)
	}
}
