package server_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// breaker may look at everything, and break what is in ci/.
type breaker struct{}

func (breaker) Name() string { return "ops" }
func (breaker) May(a server.Action, name string) bool {
	return a == server.Read || a == server.Break && (name == "ci/1" || name == "ci/*")
}

func (breaker) Names(a server.Action) []string {
	return map[server.Action][]string{server.Read: {"*"}, server.Break: {"ci/*"}}[a]
}

// Callers are told who they are to the server, and what they may do, of each name as the policy has it.
func TestWhoami(t *testing.T) {
	s := newSite(t, server.Options{Authenticate: func(r *http.Request) (server.Caller, error) {
		if r.Header.Get("Authorization") == "" {
			return nil, errors.New("want a token")
		}
		return breaker{}, nil
	}})
	for _, c := range []struct {
		query, name string
		may         []string
	}{
		{"", "*", []string{"read"}},
		{"?name=ci%2F1", "ci/1", []string{"read", "break"}},
		{"?name=ci%2F*", "ci/*", []string{"read", "break"}},
		{"?name=other", "other", []string{"read"}},
	} {
		var me api.Whoami
		want(t, s.ask(t, "GET", "/v1/whoami"+c.query, "", &me, "Authorization", "Bearer x"), http.StatusOK)
		if me.Caller != "ops" || me.Name != c.name || !slices.Equal(me.May, c.may) {
			t.Errorf("%s: %+v", c.query, me)
		}
		if len(me.Names) != 2 || !slices.Equal(me.Names["read"], []string{"*"}) || !slices.Equal(me.Names["break"], []string{"ci/*"}) {
			t.Errorf("%s: on %v", c.query, me.Names)
		}
	}
	want(t, s.ask(t, "GET", "/v1/whoami", "", nil), http.StatusUnauthorized)
	anybody := newSite(t, server.Options{})
	var me api.Whoami
	want(t, anybody.ask(t, "GET", "/v1/whoami", "", &me), http.StatusOK)
	if me.Caller != "" || len(me.May) != len(server.Actions()) || me.Names != nil {
		t.Errorf("without a policy: %+v", me)
	}
}

// What is left of a lease that a session keeps is what is left of the session.
func TestShowKept(t *testing.T) {
	s := newSite(t, server.Options{})
	open := s.kept(t, "job")
	var l api.Lease
	want(t, s.ask(t, "GET", "/v1/leases/job", "", &l), http.StatusOK)
	if l.ExpiresIn == nil || time.Duration(*l.ExpiresIn) <= 50*time.Second || time.Duration(*l.TTL) != time.Minute {
		t.Errorf("%+v", l)
	}
	want(t, s.ask(t, "DELETE", "/v1/sessions/"+url.PathEscape(open.Session), "", nil, "Leasehold-Secret", open.Secret), http.StatusNoContent)
	l = api.Lease{}
	want(t, s.ask(t, "GET", "/v1/leases/job", "", &l), http.StatusOK)
	if l.Holder != "" && (l.ExpiresIn == nil || *l.ExpiresIn != 0) {
		t.Errorf("its session is over: %+v", l)
	}
}
