package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store/memory"
)

// specified is a layout that has no name.
const specified = "epoch=2026-01-01,unit=10ms,time=38,node=9,sequence=16"

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
		if p := s.refused(t, "GET", "/v1/ids/"+text, "", wire.CodeInvalid); p.Field != "layout" || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", text, p)
		}
	}
	may = only{server.Assign, "ids/tsid"}
	s.refused(t, "GET", "/v1/ids/"+twitter, "", wire.CodeForbidden)
	want(t, s.ask(t, "GET", "/v1/ids/epoch=2020-01-01,time=41,node=10,sequence=12", "", nil), http.StatusOK)
}

// A pool that is named for two layouts is refused to the second: their ids can be alike.
func TestFinding_I5_AServersPoolHasOneLayout(t *testing.T) {
	s := newSite(t, server.Options{IDPools: map[string]string{"snowflake": "numbers", "tsid": "numbers"}})
	s.assigned(t, "numbers", `{"range": "0-9", "as": "x"}`, http.StatusCreated)
	s.made(t, "twitter")
	if p := s.refused(t, "GET", "/v1/ids/tsid", "", wire.CodeInternal); !strings.Contains(p.Detail, "numbers is no pool for ids of the layout tsid") {
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
	if p := s.refused(t, "GET", "/v1/ids/"+text(32), "", wire.CodeTooMany); p.Field != "layout" {
		t.Errorf("%+v", p)
	}
	s.made(t, text(0))
	s.made(t, "tsid")
}
