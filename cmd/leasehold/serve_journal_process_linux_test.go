package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A journal outlives its server, killed at any moment, has what happened meanwhile, and is one server's at a time; the command reads it
// over HTTP.
func TestServeJournal(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.dir, "journal.sqlite")
	history := func(s *served, args ...string) string {
		t.Helper()
		cmd := p.command(append([]string{"history", "--store", s.url, "--since", "1h"}, args...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			t.Fatalf("history %v: %v %s", args, err, errs.String())
		}
		return string(out)
	}
	s := p.serve("--journal", file)
	if code, text := s.ask(http.MethodPost, "/v1/leases/ci%2Fa", `{"holder": "web1", "ttl": 600}`, ""); code != http.StatusCreated {
		t.Fatal(code, text)
	}
	eventually(t, "it is noted", func() bool {
		_, text := s.ask(http.MethodGet, "/v1/history?prefix=ci/", "", "")
		return strings.Contains(text, `"holder":"web1/`)
	})
	s.signal(syscall.SIGKILL)
	_ = s.code()
	p.must("run", "job", "--", "true") // while no server runs
	s = p.serve("--journal", file)
	eventually(t, "what happened meanwhile is noted", func() bool { return strings.Contains(history(s, "-o", "jsonl"), `"name":"job"`) })
	if text := history(s, "--prefix", "ci/", "-o", "jsonl"); strings.Count(text, "\n") != 1 || strings.Contains(text, `"until"`) {
		t.Errorf("of what is held still: %s", text)
	}
	if text := history(s, "--report"); !strings.Contains(text, "- 2 names, 2 terms and states\n") {
		t.Errorf("the report: %s", text)
	}
	other := newPlace(t)
	second := other.serve("--journal", file)
	eventually(t, "a second server says that the file is another's", func() bool {
		_, ready := second.ask(http.MethodGet, "/readyz", "", "")
		return strings.HasPrefix(ready, "ok\n") && strings.Contains(ready, "another server writes to this file")
	})
	said := func() int { return strings.Count(second.stderr.String(), "another server writes") }
	eventually(t, "it says so on standard error, too", func() bool { return said() > 0 })
	if code, text := second.ask(http.MethodPost, "/v1/leases/x", `{"holder": "web1"}`, ""); code != http.StatusCreated {
		t.Errorf("without its journal: %d %s", code, text)
	}
	s.signal(syscall.SIGTERM)
	_ = s.code()
	eventually(t, "the second one keeps it then", func() bool { return strings.Contains(second.stderr.String(), "the journal is kept again") })
	if n := said(); n != 1 {
		t.Errorf("said %d times: %s", n, second.stderr.String())
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a file that is removed is begun again", func() bool {
		_, text := second.ask(http.MethodGet, "/v1/history", "", "")
		return strings.Contains(text, `"name":"x"`)
	})
}
