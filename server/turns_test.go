package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// turn has a job begin a turn, and end it with an exit code unless that is negative.
func (s *site) turn(t *testing.T, name string, g api.Grant, hour, code int) {
	t.Helper()
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	at := time.Date(2026, 11, 24, hour, 0, 0, 0, time.UTC)
	one := turns.Turn{At: at, Zone: "Europe/Berlin", Token: g.Token, Holder: g.Holder, Begun: at, Next: at.Add(time.Hour)}
	if done, err := turns.Begin(t.Context(), st, name, one, false); done != nil || err != nil {
		t.Fatal(done, err)
	}
	if code < 0 {
		return
	}
	if err := turns.End(t.Context(), st, name, g.Token, code, at.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// Lists, a name and its history say which turn of a job was the last, and what came of it; also of a name whose own record was swept.
func TestTurns(t *testing.T) {
	s := newSite(t, server.Options{})
	s.acquired(t, "job%2Fnone", "")
	g := s.acquired(t, "job%2Fa", "")
	s.turn(t, "job/a", g, 3, 7)
	later := g
	later.Token, later.Holder = g.Token+1, "gone"
	s.turn(t, "job/a", later, 4, -1)
	s.turn(t, "job/swept", g, 5, 0)
	s.put(t, store.Record{Key: turns.Prefix + "job/bad", Data: []byte("{")})
	g = s.acquired(t, "job%2Fruns", "")
	s.turn(t, "job/runs", g, 6, -1)
	for query, names := range map[string]string{
		"": "job/a:lost:7 job/none:: job/runs:running: job/swept:done:", "?prefix=job/s": "job/swept:done:", "?prefix=.turn": "", "?prefix=" + strings.Repeat("x", 250): "",
	} {
		var list api.List
		want(t, s.ask(t, "GET", "/v1/leases"+query, "", &list), http.StatusOK)
		var got []string
		for _, l := range list.Leases {
			text := l.Name + ":"
			if l.Turn != nil {
				text += string(l.Turn.State)
			}
			if text += ":"; l.CompletedTurn != nil && l.CompletedTurn.Code != nil {
				text += string('0' + rune(*l.CompletedTurn.Code))
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != names {
			t.Errorf("%s: %q, want %s", query, got, names)
		}
	}
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/job%2Fa", "", &l), http.StatusOK)
	if l.Turn == nil || l.Turn.At != "2026-11-24 04:00" || l.Turn.Zone != "Europe/Berlin" || l.Turn.State != api.TurnLost || l.Turn.Next.Hour() != 5 {
		t.Errorf("%+v", l.Turn)
	}
	var h api.History
	want(t, s.ask(t, "GET", "/v1/leases/job%2Fa/history", "", &h), http.StatusOK)
	if len(h.Terms) != 1 || len(h.Turns) != 2 || h.Turns[1].State != api.TurnFailed || *h.Turns[1].Code != 7 || h.Turns[1].Ended.Minute() != 1 {
		t.Errorf("%+v", h)
	}
	want(t, s.ask(t, "GET", "/v1/leases/job%2Fbad", "", &l), http.StatusOK)
	if l.Problem == nil || l.Problem.Code != api.CodeCorrupt {
		t.Errorf("%+v", l)
	}
	c := s.client(t, s.URL)
	all, err := c.Turns(t.Context(), "job/a")
	if err != nil || len(all) != 2 || all[1].Code == nil || *all[1].Code != 7 {
		t.Errorf("%+v, %v", all, err)
	}
	one, err := c.Get(t.Context(), "job/a")
	if err != nil || one.Turn == nil || one.CompletedTurn == nil || *one.CompletedTurn.Code != 7 {
		t.Errorf("%+v, %v", one, err)
	}
}

// Watchers are told when a job's command ends, though the record of its name stays as it is.
func TestTurnsAreWatched(t *testing.T) {
	s := newSite(t, server.Options{})
	g := s.acquired(t, "job", "")
	stream := s.stream(t, "", "")
	for _, end := range []int{-1, 3} {
		if end < 0 {
			s.turn(t, "job", g, 3, -1)
		} else {
			st := s.db.Open()
			if err := turns.End(t.Context(), st, "job", g.Token, end, time.Now()); err != nil {
				t.Fatal(err)
			}
			_ = st.Close()
		}
		for {
			kind, e := stream.next()
			if kind == "" {
				t.Fatal("the stream has ended")
			}
			if e.Lease.Turn != nil && (e.Lease.Turn.Code != nil) == (end >= 0) {
				break
			}
		}
	}
}
