package server_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
)

// refusals are requests that are not done, and why. NAME is held by somebody, under TERM.
var refusals = []struct {
	method, path, body, header string
	code                       api.Code
	field                      string
}{
	{"POST", "/v1/leases/NAME", `{}`, "", api.CodeHeld, ""},
	{"POST", "/v1/leases/a", `{`, "", api.CodeInvalid, ""},
	{"POST", "/v1/leases/a", `[]`, "", api.CodeInvalid, ""},
	{"POST", "/v1/leases/a", `null`, "", api.CodeInvalid, ""},
	{"POST", "/v1/leases/a", `{} {}`, "", api.CodeInvalid, ""},
	{"POST", "/v1/leases/a", `{"tll": 60}`, "", api.CodeInvalid, "tll"},
	{"POST", "/v1/leases/a", `{"ttl": 0}`, "", api.CodeInvalid, "ttl"},
	{"POST", "/v1/leases/a", `{"ttl": -1}`, "", api.CodeInvalid, "ttl"},
	{"POST", "/v1/leases/a", `{"ttl": 1e12}`, "", api.CodeInvalid, "ttl"},
	{"POST", "/v1/leases/a", `{"ttl": "soon"}`, "", api.CodeInvalid, "ttl"},
	{"POST", "/v1/leases/a", `{"wait": "2h"}`, "", api.CodeInvalid, "wait"},
	{"POST", "/v1/leases/a", `{"session": "x"}`, "", api.CodeInvalid, "session"},
	{"POST", "/v1/leases/a", `{"info": {"k": 1}}`, "", api.CodeInvalid, "info"},
	{"POST", "/v1/leases/.a", `{}`, "", api.CodeInvalid, "name"},
	{"POST", "/v1/leases/%00", `{}`, "", api.CodeInvalid, "name"},
	{"POST", "/v1/leases/", `{}`, "", api.CodeNoRoute, ""},
	{"POST", "/v1/leases/a/b", `{}`, "", api.CodeNoRoute, ""},
	{"PATCH", "/v1/leases/a", `{}`, "", api.CodeMethod, ""},
	{"PUT", "/v1/leases/NAME", ``, "", api.CodeInvalid, "holder"},
	{"PUT", "/v1/leases/NAME?holder=x&token=-1", ``, "", api.CodeInvalid, "token"},
	{"PUT", "/v1/leases/NAME?holder=x&token=1", ``, "", api.CodeNotCurrent, ""},
	{"PUT", "/v1/leases/NAME", ``, "Leasehold-Sequencer: x", api.CodeInvalid, "Leasehold-Sequencer"},
	{"PUT", "/v1/leases/a", ``, "Leasehold-Sequencer: TERM", api.CodeInvalid, "Leasehold-Sequencer"},
	{"PUT", "/v1/leases/NAME", `{"ttl": "400d"}`, "Leasehold-Sequencer: TERM", api.CodeInvalid, "ttl"},
	{"DELETE", "/v1/leases/NAME?holder=x&token=1", ``, "", api.CodeNotCurrent, ""},
	{"POST", "/v1/leases/NAME/break", `{}`, "", api.CodeInvalid, "token"},
	{"POST", "/v1/leases/NAME/break", `{"token": 1}`, "", api.CodeNotCurrent, ""},
	{"POST", "/v1/leases/NAME/break", `{"token": 9007199254740992}`, "", api.CodeInvalid, "token"},
	{"POST", "/v1/leases/NAME/handoff", `{"any": true, "token": 9007199254740992}`, "", api.CodeInvalid, "token"},
	{"POST", "/v1/leases/NAME/handoff", `{}`, "", api.CodeInvalid, "to"},
	{"POST", "/v1/leases/NAME/handoff", `{"any": true}`, "", api.CodeNotElected, ""},
	{"POST", "/v1/leases/a/handoff", `{"to": "x"}`, "", api.CodeNoLeader, ""},
	{"POST", "/v1/leases/a/pause", `{}`, "", api.CodeInvalid, "reason"},
	{"POST", "/v1/leases/a/pause", `{"reason": "drill", "for": "1ms"}`, "", api.CodeInvalid, "for"},
	{"POST", "/v1/leases/a/resume", ``, "", api.CodeNotPaused, ""},
	{"POST", "/v1/identities/a", `{"as": "web1"}`, "", api.CodeUndeclared, ""},
	{"POST", "/v1/identities/a", `{"range": "9-1"}`, "", api.CodeInvalid, ""},
	{"PUT", "/v1/identities/a", `{}`, "", api.CodeInvalid, ""},
	{"PUT", "/v1/identities/a", `{"range": "1-9"}`, "", api.CodeNotFound, ""},
	{"GET", "/v1/identities/a", ``, "", api.CodeNotFound, ""},
	{"GET", "/v1/ids/snowfall", ``, "", api.CodeInvalid, "layout"},
	{"GET", "/v1/ids/twitter?n=0", ``, "", api.CodeInvalid, "n"},
	{"GET", "/v1/leases?limit=", ``, "", api.CodeInvalid, "limit"},
	{"GET", "/v1/leases?limit=0", ``, "", api.CodeInvalid, "limit"},
	{"PUT", "/v1/sessions/x", ``, "", api.CodeInvalid, "session"},
	{"POST", "/v1/verify", `{"sequencer": "x"}`, "", api.CodeInvalid, "Leasehold-Sequencer"},
	{"GET", "/v1/records/a", ``, "", api.CodeNotFound, ""},
	{"POST", "/v1/leases/a", `{"holder": "256 KiB …"}`, "", api.CodeTooLarge, ""},
}

// TestRefusals sends what is wrong, and sees that docs/server-reference.md says what comes of it.
func TestRefusals(t *testing.T) {
	s := newSite(t, server.Options{MaxWait: time.Hour})
	held := s.acquired(t, "NAME", `{"ttl": 3600}`)
	var table strings.Builder
	table.WriteString("| request | status | code | field |\n|---|---|---|---|\n")
	for _, r := range refusals {
		body := strings.ReplaceAll(r.body, "256 KiB …", strings.Repeat("x", server.DefaultMaxBody))
		name, value, _ := strings.Cut(strings.ReplaceAll(r.header, "TERM", held.Sequencer), ": ")
		header := []string{name, value}
		if r.header == "" {
			header = nil
		}
		var p api.Problem
		a := s.ask(t, r.method, r.path, body, &p, header...)
		if a.status != r.code.Status() || p.Code != r.code || p.Field != r.field || p.Detail == "" {
			t.Errorf("%s %s %s: %d %+v: want %s %s", r.method, r.path, r.body, a.status, p, r.code, r.field)
		}
		text := "`" + r.method + " " + r.path + "`"
		for _, more := range []string{r.header, r.body} {
			if more != "" {
				text += " `" + more + "`"
			}
		}
		fmt.Fprintf(&table, "| %s | %d | `%s` | %s |\n", text, a.status, p.Code, p.Field)
	}
	if text, err := os.ReadFile("../docs/server-reference.md"); err != nil || !strings.Contains(string(text), table.String()) {
		t.Errorf("docs/server-reference.md: %v: want this table in it:\n%s", err, table.String())
	}
}
