package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// edit changes a record as an outsider does, with a tool of the store's.
func (s *site) edit(t *testing.T, key string, change func(*store.Record)) {
	t.Helper()
	st := s.db.Open()
	rec, err := st.Get(t.Context(), key)
	if err == nil {
		change(&rec)
		_, err = st.Put(t.Context(), rec)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// erase deletes it.
func (s *site) erase(t *testing.T, key string) {
	t.Helper()
	st := s.db.Open()
	rec, err := st.Get(t.Context(), key)
	if err == nil {
		err = st.Delete(t.Context(), key, rec.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outsiders are what an outsider may do to the record of a lease, each with what the loser says then.
func outsiders(t *testing.T, s *site, key string, before store.Record) map[string]struct {
	do  func()
	say string
} {
	edit := func(change func(*store.Record)) func() { return func() { s.edit(t, key, change) } }
	return map[string]struct {
		do  func()
		say string
	}{
		"deletes it":        {func() { s.erase(t, key) }, "its record is gone"},
		"frees it":          {edit(func(r *store.Record) { r.Owner, r.TTL, r.Session = "", 0, "" }), "somebody freed it"},
		"takes it":          {edit(func(r *store.Record) { r.Owner, r.Token, r.Session = "other", r.Token+1, "" }), "other holds it under token"},
		"edits the holder":  {edit(func(r *store.Record) { r.Owner = "other" }), "other holds it under token"},
		"edits the token":   {edit(func(r *store.Record) { r.Token-- }), "of an earlier term"},
		"edits the session": {edit(func(r *store.Record) { r.Session = ".session/x" }), "names another session"},
		"restores it":       {edit(func(r *store.Record) { version := r.Version; *r = before; r.Version = version }), "of an earlier term"},
	}
}

// Whatever an outsider does to the record of a lease that a served session keeps, the answer to the next renewal, which is at most TTL/3
// away, says that the lease is lost, and why, until it is released; the session and its other leases stay.
func TestFinding_S16_AServedSessionLooksAtItsLeases(t *testing.T) {
	for name := range outsiders(nil, nil, "", store.Record{}) {
		for _, leases := range []int{1, 40} { // read one by one, and listed
			t.Run(fmt.Sprint(name, ", of ", leases), func(t *testing.T) {
				s := newSite(t, server.Options{})
				c, ctx := s.client(t, s.URL), t.Context()
				first, err := c.Acquire(ctx, "job/1", client.AcquireOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Release(ctx, first); err != nil {
					t.Fatal(err)
				}
				before, err := s.db.Open().Get(ctx, "job/1")
				if err != nil {
					t.Fatal(err)
				}
				ses := opened(t, c)
				var held []client.Grant
				for i := range leases {
					held = append(held, under(t, c, ses, fmt.Sprint("job/", i+1)))
				}
				ses = renewed(t, c, ses)
				holding(t, ses, held...)
				outsider := outsiders(t, s, "job/1", before)[name]
				outsider.do()
				for range 2 { // an answer may be lost
					ses = renewed(t, c, ses)
					lostOne(t, ses, held[0], outsider.say)
					holding(t, ses, held[1:]...)
				}
				if err := c.Release(ctx, held[0]); err != nil && !errors.Is(err, lease.ErrNotCurrent) {
					t.Error(err)
				}
				if ses = renewed(t, c, ses); ses.Lost != nil {
					t.Errorf("still lost after its release: %v", ses.Lost)
				}
				holding(t, ses, held[1:]...)
			})
		}
	}
}

func opened(t *testing.T, c *client.Client) client.Session {
	t.Helper()
	ses, err := c.OpenSession(t.Context(), client.SessionOptions{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

func renewed(t *testing.T, c *client.Client, ses client.Session) client.Session {
	t.Helper()
	ses, err := c.RenewSession(t.Context(), ses, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

func under(t *testing.T, c *client.Client, ses client.Session, name string) client.Grant {
	t.Helper()
	g, err := c.Acquire(t.Context(), name, client.AcquireOptions{Session: ses})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func holding(t *testing.T, ses client.Session, held ...client.Grant) {
	t.Helper()
	for _, g := range held {
		if err := ses.Check(g); err != nil {
			t.Errorf("not lost: %v", err)
		}
	}
}

func lostOne(t *testing.T, ses client.Session, g client.Grant, say string) {
	t.Helper()
	err := ses.Check(g)
	if lost, ok := errors.AsType[*lease.LostError](err); !ok || lost.Cause != lease.Taken || lost.Token != g.Token || !strings.Contains(fmt.Sprint(err), say) || len(ses.Lost) != 1 {
		t.Errorf("%v (%v), want it lost: %q", err, ses.Lost, say)
	}
}

// What changes nothing of what the record says of the term is no end of it.
func TestFinding_S16_TouchesEndNoServedLease(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	ses := opened(t, c)
	g := under(t, c, ses, "job")
	s.edit(t, "job", func(*store.Record) {})
	s.edit(t, "job", func(r *store.Record) { r.Info = map[string]string{"label": "of an outsider"} })
	holding(t, renewed(t, c, ses), g)
}

// A lost name can be had again, under the same session, and a value of a pool is looked at as any lease.
func TestFinding_S16_WhatWasLostCanBeHadAgain(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	ses := opened(t, c)
	g := under(t, c, ses, "job")
	id, err := c.Assign(t.Context(), "pool", client.AssignOptions{Values: identity.Values{Range: "1-9"}, Session: ses})
	if err != nil {
		t.Fatal(err)
	}
	value := "identity/pool/" + id.Value
	s.erase(t, "job")
	s.erase(t, value)
	if ses = renewed(t, c, ses); len(ses.Lost) != 2 || ses.Lost[value].Token != id.Token || ses.Check(g) == nil {
		t.Errorf("%+v", ses.Lost)
	}
	g = under(t, c, ses, "job")
	_ = c.Unassign(t.Context(), id, time.Time{}) // there is none any more
	ses = renewed(t, c, ses)
	holding(t, ses, g)
	if ses.Lost != nil {
		t.Errorf("%+v", ses.Lost)
	}
}

// A server that knows nothing of what a session keeps, since another one granted it, is told by the renewal.
func TestFinding_S16_AnotherServerLooks(t *testing.T) {
	s := newSite(t, server.Options{})
	other := s.again(t, server.Options{})
	var at atomic.Pointer[site]
	at.Store(s)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { at.Load().srv.ServeHTTP(w, r) }))
	defer front.Close()
	c := s.client(t, front.URL)
	ses := opened(t, c)
	g, beside := under(t, c, ses, "job"), under(t, c, ses, "beside")
	at.Store(other)
	s.erase(t, "job")
	ses = renewed(t, c, ses)
	lostOne(t, ses, g, "its record is gone")
	holding(t, ses, beside)
}

// A script that names nothing hears of what this server has granted it. Nobody names what it may not have.
func TestFinding_S16_WhatARenewalNames(t *testing.T) {
	var told ledger
	s := club(t, &told)
	var ses api.Session
	want(t, s.as(t, "alice", "POST", "/v1/sessions", `{"ttl": 60}`, &ses), http.StatusCreated)
	path, secret := "/v1/sessions/"+url.PathEscape(ses.Session), []string{"Leasehold-Secret", ses.Secret}
	var g api.Grant
	want(t, s.as(t, "alice", "POST", "/v1/leases/job", `{"session": "`+ses.Session+`"}`, &g, secret...), http.StatusCreated)
	want(t, s.as(t, "alice", "PUT", path, ``, &ses, secret...), http.StatusOK)
	if ses.LookedAt == nil || *ses.LookedAt != 1 || ses.Lost != nil {
		t.Errorf("%+v", ses)
	}
	s.erase(t, "job")
	for range 2 {
		want(t, s.as(t, "alice", "PUT", path, ``, &ses, secret...), http.StatusOK)
		if ses.Lost["job"].Token != g.Token || ses.Lost["job"].Cause != "taken" {
			t.Errorf("%+v", ses)
		}
	}
	told.mu.Lock()
	if e := told.events[len(told.events)-1]; !strings.Contains(e.Note, "job (token "+g.Token.String()+") is lost: its record is gone") {
		t.Errorf("noted: %q", e.Note)
	}
	told.mu.Unlock()
	want(t, s.as(t, "alice", "DELETE", fmt.Sprintf("/v1/leases/job?holder=%s&token=%d", url.QueryEscape(g.Holder), g.Token), ``, nil, "Leasehold-Secret", g.Secret), http.StatusConflict)
	ses.Lost = nil
	want(t, s.as(t, "alice", "PUT", path, ``, &ses, secret...), http.StatusOK)
	if ses.Lost != nil {
		t.Errorf("after the release: %+v", ses.Lost)
	}
	for body, field := range map[string]string{
		`{"leases": {".session/x": 1}}`: "leases", `{"leases": {"": 1}}`: "leases", `{"leases": {"job": -1}}`: "", `{"leases": 1}`: "leases",
		`{"leases": {` + many(1025) + `}}`: "leases",
	} {
		var p api.Problem
		want(t, s.as(t, "alice", "PUT", path, body, &p, secret...), http.StatusBadRequest)
		if field != "" && p.Field != field {
			t.Errorf("%.60s: %+v", body, p)
		}
	}
}

func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"n%d": 1`, i))
	}
	return strings.Join(all, ",")
}

// A renewal names nothing to a server from before, which takes no such field.
func TestFinding_S16_AnOlderServerIsNamedNothing(t *testing.T) {
	s := newSite(t, server.Options{})
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	older := httputil.NewSingleHostReverseProxy(target)
	older.ModifyResponse = func(r *http.Response) error {
		text, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		text = bytes.Replace(bytes.Replace(text, []byte(`,"looked_at":0`), nil, 1), []byte(`,"looked_at":1`), nil, 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Length", fmt.Sprint(len(text)))
		return err
	}
	var named atomic.Bool
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if bytes.Contains(text, []byte("leases")) {
			named.Store(true)
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		older.ServeHTTP(w, r)
	}))
	defer front.Close()
	c := s.client(t, front.URL)
	ses := opened(t, c)
	g := under(t, c, ses, "job")
	ses = renewed(t, c, renewed(t, c, ses))
	holding(t, ses, g)
	if named.Load() {
		t.Error("it was named leases")
	}
	c = s.client(t, s.URL)
	ses = opened(t, c)
	holding(t, renewed(t, c, ses), under(t, c, ses, "beside"))
}
