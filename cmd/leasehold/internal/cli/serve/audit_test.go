package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/server"
)

// The audit log has what was asked to be changed, done or not, and of what only looks no more than what was refused or failed.
func TestAuditLines(t *testing.T) {
	l, err := openAudit(nil, filepath.Join(t.TempDir(), "audit"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for _, c := range []struct {
		action      server.Action
		op, outcome string
		line        bool
	}{
		{server.Acquire, "acquire", "ok", true},
		{server.Acquire, "acquire", "client_gone", true},
		{server.Acquire, "renew", "ok", false},
		{server.Acquire, "renew", "client_gone", true},
		{server.Acquire, "renew session", "not_current", true},
		{server.Read, "show", "ok", false},
		{server.Read, "show", "client_gone", false},
		{server.Read, "show", "forbidden", true},
		{server.Records, "read record", "ok", false},
		{server.Records, "read record", "client_gone", false},
		{server.Records, "read record", "not_found", false},
		{server.Records, "read record", "store_unavailable", true},
		{server.Records, "delete record", "not_found", true},
		{server.Records, "write record", "ok", true},
		{server.Records, "write record", "client_gone", true},
	} {
		if err := l.file.Truncate(0); err != nil {
			t.Fatal(err)
		}
		l.note(server.Event{Action: c.action, Op: c.op, Name: "job", Outcome: c.outcome})
		text, err := os.ReadFile(l.file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if want := `"op":"` + c.op + `","name":"job","outcome":"` + c.outcome + `"`; strings.Contains(string(text), want) != c.line || (len(text) > 0) != c.line {
			t.Errorf("%+v: %q", c, text)
		}
	}
}
