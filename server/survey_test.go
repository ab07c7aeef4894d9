package server_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// rotten is a store in which the records of some keys can't be read. It counts its reads.
type rotten struct {
	store.Store
	keys string
	gets *atomic.Int64
}

func (r rotten) bad(key string) bool { return strings.Contains(r.keys, key+",") }

func (r rotten) Get(ctx context.Context, key string) (store.Record, error) {
	r.gets.Add(1)
	if r.bad(key) {
		return store.Record{}, driver.Corrupt(key, errors.New("no JSON"))
	}
	return r.Store.Get(ctx, key)
}

func (r rotten) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range r.Store.List(ctx, prefix) {
			if err == nil && r.bad(rec.Key) {
				rec, err = store.Record{}, driver.Corrupt(rec.Key, errors.New("no JSON"))
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func newRotten(t *testing.T, keys string) (*site, *atomic.Int64) {
	t.Helper()
	var gets atomic.Int64
	s := newSiteOn(t, server.Options{}, func(st store.Store) store.Store { return rotten{st, keys, &gets} })
	return s, &gets
}

// put writes a record behind the server's back.
func (s *site) put(t *testing.T, rec store.Record) {
	t.Helper()
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	rec.Nonce = "n"
	if _, err := st.Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

// One record that can't be read is an entry that says so among the others.
func TestListWithARecordThatCannotBeRead(t *testing.T) {
	s, _ := newRotten(t, "b,.session/x,")
	for _, key := range []string{"a", "b", "c", ".session/x"} {
		s.put(t, store.Record{Key: key, Owner: "x", Token: 1, TTL: time.Minute})
	}
	var list api.List
	want(t, s.ask(t, "GET", "/v1/leases", "", &list), http.StatusOK)
	if len(list.Leases) != 3 || list.Leases[0].State != api.StateHeld || list.Leases[2].Holder != "x" {
		t.Fatalf("%+v", list)
	}
	b := list.Leases[1]
	if b.Name != "b" || b.State != api.StateBad || b.Problem == nil || b.Problem.Code != api.CodeCorrupt || !strings.Contains(b.Problem.Detail, "no JSON") {
		t.Errorf("%+v", b)
	}
	list = api.List{}
	want(t, s.ask(t, "GET", "/v1/leases?limit=1&after=a", "", &list), http.StatusOK)
	if len(list.Leases) != 1 || list.Leases[0].Name != "b" || list.Next != "b" {
		t.Errorf("the page of it: %+v", list)
	}
	// The store over HTTP says the same as the store does: which row it is, and the others.
	st, err := client.Open(t.Context(), s.URL, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	var keys string
	for rec, err := range st.List(t.Context(), "") {
		var corrupt *store.CorruptError
		if errors.As(err, &corrupt) {
			rec.Key = "bad " + corrupt.Key
		}
		keys += rec.Key + " "
	}
	for _, key := range []string{"a ", "bad b ", "c ", "bad .session/x "} {
		if !strings.Contains(keys, key) {
			t.Errorf("no %sin %s", key, keys)
		}
	}
}

// A list says which elections are paused, those too in which nobody has led yet.
func TestListPaused(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "a1", "")
	s.acquired(t, "a2", "")
	s.acquired(t, "b", "")
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	for _, name := range []string{"a2", "a3", "b"} {
		if err := election.SetPause(t.Context(), st, name, election.Pause{By: "ops", Reason: "drill", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	for query, names := range map[string]string{"": "a1 a2! a3! b!", "?prefix=a": "a1 a2! a3!", "?prefix=.election": "", "?prefix=" + strings.Repeat("x", 250): ""} {
		var list api.List
		want(t, s.ask(t, "GET", "/v1/leases"+query, "", &list), http.StatusOK)
		var got []string
		for _, l := range list.Leases {
			if l.Paused != nil && l.Paused.By == "ops" && l.Paused.Reason == "drill" {
				l.Name += "!"
			}
			got = append(got, l.Name)
		}
		if strings.Join(got, " ") != names {
			t.Errorf("%s: %v, want %s", query, got, names)
		}
	}
}

// What can't be read of an election doesn't hide who holds the name.
func TestShowWithAnElectionThatCannotBeRead(t *testing.T) {
	s := newSite(t, server.Options{})
	g := s.acquired(t, "a", "")
	s.put(t, store.Record{Key: election.KeyPrefix + "a", Data: []byte("{")})
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/a", "", &l), http.StatusOK)
	if l.Holder != g.Holder || l.Problem == nil || l.Problem.Code != api.CodeCorrupt {
		t.Errorf("%+v", l)
	}
}

// A sequencer that is current takes one read, and so does one that is stale: that is also what is shown.
func TestVerifyReadsOnce(t *testing.T) {
	s, gets := newRotten(t, "")
	g := s.acquired(t, "a", "")
	before := gets.Load()
	var v api.Verification
	want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+g.Sequencer+`"}`, &v), http.StatusOK)
	if n := gets.Load() - before; n != 1 || !v.Current {
		t.Errorf("current: %d reads, %+v", n, v)
	}
	want(t, s.ask(t, "DELETE", "/v1/leases/a", "", nil, "Leasehold-Sequencer", g.Sequencer, "Leasehold-Secret", g.Secret), http.StatusNoContent)
	before = gets.Load()
	want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+g.Sequencer+`"}`, &v), http.StatusOK)
	if n := gets.Load() - before; n != 1 || v.Current || v.Now == nil || v.Now.Name != "a" || v.Now.State != api.StateFree || v.Now.Token != g.Token {
		t.Errorf("stale: %d reads, %+v", n, v)
	}
}

// A share of a lock is current while it is held.
func TestVerifyAShare(t *testing.T) {
	s := newSite(t, server.Options{})
	m, err := lease.NewManager(s.db.Open(), lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	session, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sem, err := lock.NewSemaphore(session, "licences", lock.SemaphoreOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	h, err := sem.Acquire(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, held := range []bool{true, false} {
		var v api.Verification
		want(t, s.ask(t, "POST", "/v1/verify", `{"sequencer": "`+h.Sequencer().String()+`"}`, &v), http.StatusOK)
		if v.Current != held || v.Name != "licences#0" || held == (v.Now != nil) {
			t.Errorf("%+v, want current: %t", v, held)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
