package server_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// What is wrong with a body is said in the words of the API, not in Go's: which field, what came, what is wanted.
func TestBodies(t *testing.T) {
	cut := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)) // as net/http says that the client sent less than it announced
	}
	onStage(t, nil, func(t *testing.T, s *stage) {
		for _, c := range []struct {
			path          string
			body          io.Reader
			code          api.Code
			field, detail string
		}{
			{"", strings.NewReader(`[]`), api.CodeInvalid, "", "body: array: want one JSON object"},
			{"", strings.NewReader(`{`), api.CodeInvalid, "", "body: it ends too early: want one complete JSON object"},
			{"", cut(`{}`), api.CodeInvalid, "", "body: it ends too early: want one complete JSON object"},
			{"", strings.NewReader(`{}` + strings.Repeat(" ", server.DefaultMaxBody)), api.CodeTooLarge, "", "body: want at most 262144 bytes"},
			{"", strings.NewReader(`{} x`), api.CodeInvalid, "", "body: want one JSON object and nothing behind it"},
			{"", strings.NewReader(`ttl=5`), api.CodeInvalid, "", "body: invalid character 't' in literal true (expecting 'r'): want one JSON object"},
			{"", strings.NewReader(`{"tll": 5}`), api.CodeInvalid, "tll", `body: unknown field "tll": known are holder, ttl, wait, session, info`},
			{"", strings.NewReader(`{"ttl": "soon"}`), api.CodeInvalid, "ttl", `body: ttl: "soon": want seconds, or a duration such as "1m30s", 8784h0m0s at most`},
			{"", strings.NewReader(`{"holder": 5}`), api.CodeInvalid, "holder", "body: holder: number: want a string"},
			{"", strings.NewReader(`{"info": 5}`), api.CodeInvalid, "info", "body: info: number: want an object"},
			{"/break", strings.NewReader(`{"token": "5"}`), api.CodeInvalid, "token", "body: token: string: want a token: a whole number"},
			{"/handoff", strings.NewReader(`{"any": 1}`), api.CodeInvalid, "any", "body: any: number: want true or false"},
		} {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/leases/job"+c.path, c.body)
			r.Host = "localhost"
			s.srv.ServeHTTP(w, r)
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code != c.code || p.Field != c.field || p.Detail != c.detail {
				t.Errorf("%v %s, want %s", err, w.Body, c.detail)
			}
		}
	})
}
