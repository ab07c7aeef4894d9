package serve

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/server"
)

// audit writes down what a server was asked to change, and who asked.
type audit struct {
	mu   sync.Mutex
	file *os.File
	own  bool // the file is to be closed
}

// AuditLine is one line of it.
type AuditLine struct {
	Time    time.Time   `json:"time"`
	Caller  string      `json:"caller"`
	Remote  string      `json:"remote"`
	Op      string      `json:"op"`
	Name    string      `json:"name"`
	Holder  string      `json:"holder,omitempty"`
	Token   fence.Token `json:"token,omitempty"`
	Outcome string      `json:"outcome"`
	Note    string      `json:"note,omitempty"`
}

func openAudit(a *app, path string) (*audit, error) {
	if path == "-" {
		return &audit{file: a.Err}, nil
	}
	f, err := openAuditFile(path)
	if err != nil {
		return nil, cli.Usage("%w", err)
	}
	return &audit{file: f, own: true}, nil
}

func openAuditFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--audit: %w", err)
	}
	return f, nil
}

// reopens reports whether the file can be opened again. A nil log has none.
func (l *audit) reopens() bool { return l != nil && l.own }

// reopen opens the file again, which may have been renamed to make room for a new one.
func (l *audit) reopen() error {
	f, err := openAuditFile(l.file.Name())
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close() // every line was written at once
	l.file = f
	return nil
}

func (l *audit) close() {
	if l.own {
		_ = l.file.Close() // as before
	}
}

// What has no line of its own when all went well: what only looks, and renewals, which change
// nobody's ownership.
var (
	looking = []string{"read record", "list records"}
	// Of a look: that there is nothing is an answer, and a watcher's going is no failure.
	answered = []string{"ok", "not_found", "client_gone"}
	renewing = []string{"renew", "renew session"}
)

// note writes a line, but for renewals that went well and found nothing lost, and for what only
// looks unless that was refused, or failed.
func (l *audit) note(e server.Event) {
	look := e.Action == server.Read || slices.Contains(looking, e.Op)
	if look && slices.Contains(answered, e.Outcome) || e.Outcome == "ok" && e.Note == "" && slices.Contains(renewing, e.Op) {
		return
	}
	text, err := json.Marshal(AuditLine{e.Time, e.Caller, e.Remote, e.Op, e.Name, e.Holder, e.Token, e.Outcome, e.Note})
	if err != nil { // strings and numbers only
		text = fmt.Appendf(nil, "%q", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.file.Write(append(text, '\n')) // a full disk must not keep leases from being released
}
