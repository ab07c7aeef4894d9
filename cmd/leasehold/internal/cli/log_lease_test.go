package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// TestLogIsAboutALease: each record has one group lease, in which what the record itself says counts.
func TestLogIsAboutALease(t *testing.T) {
	var b bytes.Buffer
	a := &App{Values: config.Values{{Setting: config.Setting{Name: "log-format"}, Text: "json"}}}
	log := a.LogTo(&b).With("component", "x")
	log.Info("of none")
	a.About(fence.Sequencer{Name: "job"})
	log.Info("of a name", "n", 1)
	a.About(fence.Sequencer{Name: "job", Token: 7, Holder: "web-1/4/f"})
	log.Info("of a term")
	log.Info("of another term", "lease", fence.Sequencer{Name: "job", Token: 8, Holder: "web-2/9/a"}, "n", 2)
	log.Info("of an event", "lease", lease.Event{State: lease.StateJeopardy, Left: 1500e6})
	want := []string{
		`"of none","component":"x"}`,
		`"of a name","component":"x","n":1,"lease":{"name":"job"}}`,
		`"of a term","component":"x","lease":{"name":"job","token":7,"holder":"web-1/4/f"}}`,
		`"of another term","component":"x","n":2,"lease":{"name":"job","token":8,"holder":"web-2/9/a"}}`,
		`"of an event","component":"x","lease":{"name":"job","token":7,"holder":"web-1/4/f","state":"jeopardy","left":1.5}}`,
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines: %s", len(lines), b.String())
	}
	for i, line := range lines {
		if !json.Valid([]byte(line)) || !strings.HasSuffix(line, `"msg":`+want[i]) {
			t.Errorf("%s\nwant %s", line, want[i])
		}
	}
}

// TestPlainLogIsForPeople: they read the name in the text.
func TestPlainLogIsForPeople(t *testing.T) {
	var b bytes.Buffer
	a := &App{}
	a.About(fence.Sequencer{Name: "job", Token: 7})
	log := a.LogTo(&b)
	log.Info("said")
	log.Info("cut", "lease", fence.Sequencer{Name: "job", Token: 8})
	if want := "leasehold: said\nleasehold: cut lease.name=job lease.token=8\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
