package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store/memory"
)

// A query parameter that a route does not know, twice the same one, or a query that can't be read, is refused by each route, by name and
// without its value, and nothing is done.
func TestFinding_O4_UnknownQueryParameters(t *testing.T) {
	st := memory.New(memory.Options{})
	s, err := New(st, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = s.Close()
		_ = st.Close()
	}()
	fill := strings.NewReplacer("{name}", "job", "{id}", ".session%2Fa%2Fb", "{pool}", "pool", "{space}", "jobs", "{value}", "1", "{layout}", "twitter", "{key}", "job")
	for _, rt := range routes {
		queries := map[string]string{"ttl=secret-1h": "ttl", "access_token=secret": "access_token", "%zz=secret": "query"}
		for _, name := range rt.query {
			queries[name+"=secret&"+name+"=1"] = name
			queries[name+"=secret&Prefix=1"] = "Prefix" // names are told apart by case
		}
		for query, field := range queries {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(rt.method, fill.Replace(rt.path)+"?"+query, nil))
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusBadRequest || p.Field != field || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s %s?%s: %d %s %v", rt.method, rt.path, query, w.Code, w.Body, err)
			}
			for _, known := range rt.query {
				if !strings.Contains(p.Detail, known) {
					t.Errorf("%s %s?%s: %s: it takes %s", rt.method, rt.path, query, p.Detail, known)
				}
			}
		}
	}
	for rec, err := range st.List(t.Context(), "") {
		t.Errorf("%s was written, %v", rec.Key, err)
	}
}
