package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/api"
)

// termQuery are the query parameters that name a term, where no sequencer does.
var termQuery = []string{"holder", "token"}

// checkQuery returns the problem of a request with query parameters that its route does not know,
// or of which it can't be told what they say: to ignore them would be to do something else than was
// asked for. Their values may be secret, and are not told.
func checkQuery(rt route, raw string) error {
	if raw == "" {
		return nil
	}
	want := "no query parameters"
	if rt.method == http.MethodPost || rt.method == http.MethodPut {
		want += ": fields are in the JSON body"
	}
	if len(rt.query) > 0 {
		want = "the query parameters " + strings.Join(rt.query, ", ")
	}
	given, err := url.ParseQuery(raw)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		var wrong string
		switch {
		case !slices.Contains(rt.query, name):
			wrong = "is not known"
		case len(given[name]) > 1:
			wrong = "is there more than once"
		default:
			continue
		}
		p := api.NewProblem(api.CodeInvalid, "query parameter %.80q %s: %s %s takes %s", name, wrong, rt.method, rt.path, want)
		p.Field, p.Want = name, want
		return p
	}
	if err != nil {
		p := api.NewProblem(api.CodeInvalid, "the query can't be read: want name=value, percent-encoded, with & between: %s %s takes %s", rt.method, rt.path, want)
		p.Field, p.Want = "query", want
		return p
	}
	return nil
}
