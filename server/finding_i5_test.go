package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// specified is a layout that has no name.
const specified = "epoch=2026-01-01,unit=10ms,time=38,node=9,sequence=16"

// A pool that is used up is widened by a request, which may be sent again; who has a value keeps it.
func TestFinding_I5_APoolIsWidenedOverHTTP(t *testing.T) {
	s := newSite(t, server.Options{})
	a := s.assigned(t, "machines", `{"range": "1-1", "as": "web1", "layout": "twitter"}`, http.StatusCreated)
	s.refused(t, "POST", "/v1/identities/machines", `{"as": "web2"}`, api.CodeExhausted)
	for range 2 {
		var p api.DeclaredPool
		want(t, s.ask(t, "PUT", "/v1/identities/machines", `{"range": "0-3"}`, &p), http.StatusOK)
		if p.Pool != "machines" || p.Range != "0-3" || p.Size != 4 || p.Layout != "twitter" {
			t.Errorf("%+v", p)
		}
	}
	if again := s.assigned(t, "machines", `{"range": "0-3", "as": "web1"}`, http.StatusOK); again.Value != a.Value || again.Number != a.Number || again.Token != a.Token {
		t.Errorf("%+v, then %+v", a, again)
	}
	s.assigned(t, "machines", `{"as": "web2"}`, http.StatusCreated)
	for body, code := range map[string]api.Code{
		`{}`:                                      api.CodeInvalid,
		``:                                        api.CodeInvalid,
		`{"range": "3-0"}`:                        api.CodeInvalid,
		`{"range": "0-4", "names": ["a"]}`:        api.CodeInvalid,
		`{"range": "0-4", "as": "web1"}`:          api.CodeInvalid,
		`{"range": "1-4"}`:                        api.CodeMismatch,
		`{"names": ["0", "1", "2", "3", "4"]}`:    api.CodeMismatch,
		`{"range": "0-1024"}`:                     api.CodeMismatch,
		`{"prefix": "10.0.0.0/16", "bits": 24}`:   api.CodeMismatch,
		`{"prefix": "10.0.0.0/16", "bits": "24"}`: api.CodeInvalid,
	} {
		p := s.refused(t, "PUT", "/v1/identities/machines", body, code)
		if code == api.CodeMismatch && (p.Name != "machines" || !strings.Contains(p.Detail, "machines: its values are the range 0-3, and can't become ")) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	s.refused(t, "PUT", "/v1/identities/none", `{"range": "0-3"}`, api.CodeNotFound)
}

// Who may assign values of a pool may widen it, and nobody else.
func TestFinding_I5_WhoMayWiden(t *testing.T) {
	var may server.Caller = only{server.Assign, "identity/machines/*"}
	var last server.Event
	s := newSite(t, server.Options{
		Authenticate: func(*http.Request) (server.Caller, error) { return may, nil }, OnEvent: func(e server.Event) { last = e },
	})
	s.assigned(t, "machines", `{"range": "1-1"}`, http.StatusCreated)
	want(t, s.ask(t, "PUT", "/v1/identities/machines", `{"range": "1-2"}`, nil), http.StatusOK)
	if last.Op != "widen pool" || last.Action != server.Assign || last.Name != "identity/machines/" || last.Caller != "ci" {
		t.Errorf("told: %+v", last)
	}
	s.refused(t, "PUT", "/v1/identities/others", `{"range": "1-2"}`, api.CodeForbidden)
	for _, action := range []server.Action{server.Read, server.Acquire, server.Records} {
		may = only{action, "*"}
		s.refused(t, "PUT", "/v1/identities/machines", `{"range": "1-3"}`, api.CodeForbidden)
	}
}

// From Go, too.
func TestFinding_I5_AClientWidens(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	if _, err := c.Widen(ctx, "red/blue", identity.Values{Range: "1-2"}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{Values: identity.Values{Range: "1-1"}, Layout: specified, As: "a"}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Widen(ctx, "red/blue", identity.Values{Range: "1-2"})
	if err != nil || got.Pool != "red/blue" || got.Values.Range != "1-2" || got.Size != 2 || !strings.HasPrefix(got.Layout, "epoch=2026-01-01T00:00:00Z,unit=10ms,time=38") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Widen(ctx, "red/blue", identity.Values{Range: "2-9"}); !errors.Is(err, identity.ErrMismatch) {
		t.Error(err)
	}
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{Layout: "tsid", As: "b"}); !errors.Is(err, identity.ErrMismatch) {
		t.Error(err)
	}
	var invalid *store.InvalidError
	if _, err := c.Assign(ctx, "red/blue", client.AssignOptions{Layout: "sid", As: "b"}); !errors.As(err, &invalid) || invalid.Field != "layout" {
		t.Error(err)
	}
}

// Ids of a layout that a request describes are of that layout; one that has a name is that one, with its numbers, and who may not have ids of
// that one may not have them by another text.
func TestFinding_I5_IDsOfASpecification(t *testing.T) {
	may := server.Anybody
	s := newSite(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return may, nil }})
	l, err := flake.ParseLayout(specified)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, text := range []string{specified, url.PathEscape(specified), "epoch=1767225600000,unit=10ms,bits=64,unused=1,time=38,node=9,sequence=16"} {
		made := s.made(t, text+"?n=50")
		if made.Layout != l.Name() {
			t.Errorf("%s: of %s", text, made.Layout)
		}
		for _, text := range made.IDs {
			id, err := flake.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := flake.Decode(l, id); err != nil || p.Node != made.Node || seen[text] {
				t.Errorf("%s: %+v, %v; made before: %t", text, p, err, seen[text])
			}
			seen[text] = true
		}
	}
	const twitter = "epoch=1288834974657,time=41,node=10,sequence=12"
	for _, text := range []string{twitter, "snowflake", "twitter"} {
		if made := s.made(t, text); made.Layout != "twitter" {
			t.Errorf("%s is of %s", text, made.Layout)
		}
	}
	for text, want := range map[string]string{
		"epoch=2026-01-01,time=41,machine=10,sequence=12": "machine=10: want epoch, unit",
		"epoch=2026-01-01,time=41,node=10,sequence=11":    "want 63, or bits=62",
		"snowfall": "want one of twitter",
	} {
		if p := s.refused(t, "GET", "/v1/ids/"+text, "", api.CodeInvalid); p.Field != "layout" || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", text, p)
		}
	}
	may = only{server.Assign, "ids/tsid"}
	s.refused(t, "GET", "/v1/ids/"+twitter, "", api.CodeForbidden)
	want(t, s.ask(t, "GET", "/v1/ids/epoch=2020-01-01,time=41,node=10,sequence=12", "", nil), http.StatusOK)
}

// A pool shows of which layout the ids are that are made with its values, to who lists it over HTTP or by the client.
func TestFinding_I5_AListedPoolShowsItsLayout(t *testing.T) {
	s := newSite(t, server.Options{})
	s.made(t, "twitter")
	s.assigned(t, "machines", `{"names": ["a", "b"], "as": "x"}`, http.StatusCreated)
	for pool, want := range map[string]identity.Declared{
		"ids-twitter": {Pool: "ids-twitter", Values: identity.Values{Range: "0-1023"}, Size: 1024, Layout: "twitter"},
		"machines":    {Pool: "machines", Values: identity.Values{Names: []string{"a", "b"}}, Size: 2},
	} {
		var got api.Identities
		if s.ask(t, "GET", "/v1/identities/"+pool, "", &got); got.Pool != pool || got.Layout != want.Layout || got.Size != want.Size || len(got.Identities) != 1 {
			t.Errorf("%+v", got)
		}
		listed, all, err := s.client(t, s.URL).Identities(t.Context(), pool)
		if err != nil || !reflect.DeepEqual(listed, want) || len(all) != 1 {
			t.Errorf("%+v, %+v, %v, want %+v", listed, all, err, want)
		}
	}
}

// A pool that is named for two layouts is refused to the second: their ids can be alike.
func TestFinding_I5_AServersPoolHasOneLayout(t *testing.T) {
	s := newSite(t, server.Options{IDPools: map[string]string{"snowflake": "numbers", "tsid": "numbers"}})
	s.assigned(t, "numbers", `{"range": "0-9", "as": "x"}`, http.StatusCreated)
	s.made(t, "twitter")
	if p := s.refused(t, "GET", "/v1/ids/tsid", "", api.CodeInternal); !strings.Contains(p.Detail, "numbers is no pool for ids of the layout tsid") {
		t.Errorf("%+v", p)
	}
	_, err := server.New(memory.New(memory.Options{}), server.Options{IDPools: map[string]string{"snowflake": "a", "twitter": "b"}})
	if err == nil || !strings.Contains(err.Error(), "the layout twitter has two pools") {
		t.Error(err)
	}
}

// Callers describe some layouts, and no more: each is a pool and a number that the server keeps. Those that are there continue, and those with names.
func TestFinding_I5_DescribedLayoutsAreBounded(t *testing.T) {
	s := newSite(t, server.Options{})
	text := func(n int) string { return fmt.Sprintf("epoch=%d,time=41,node=10,sequence=12", 1767225600000+n) }
	for n := range 32 {
		s.made(t, text(n))
	}
	if p := s.refused(t, "GET", "/v1/ids/"+text(32), "", api.CodeTooMany); p.Field != "layout" {
		t.Errorf("%+v", p)
	}
	s.made(t, text(0))
	s.made(t, "tsid")
}
