package hold

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// record is a line of the log.
type record struct {
	Msg   string
	Lease struct {
		Name, Holder, State, Error string
		Token                      fence.Token
		Left                       *float64
	}
}

// logged returns the records that f causes.
func logged(t *testing.T, f func(a *cli.App, w *Words)) (records []record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &cli.App{Err: file, Clock: clock.System(), Values: config.Values{
		{Setting: config.Setting{Name: "log-format"}, Text: "json"}, {Setting: config.Setting{Name: "log-level"}, Text: "debug"},
	}}
	w := NewWords(a, "job")
	f(a, w)
	w.Close()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		records = append(records, r)
	}
	return records
}

// TestEachRecordNamesTheLease: whatever is said of a hold, its record has name, token and holder; before it is held, the name.
func TestEachRecordNamesTheLease(t *testing.T) {
	before := logged(t, func(_ *cli.App, w *Words) {
		w.Say("x")
		w.Retry("", errors.New("the disk is full"))
		w.WaitFor(&lease.HeldError{Name: "job", Holder: "web-2"})
		w.WaitForAny("3 of 3 are held")
		w.Contained(supervise.ContainGroup, nil)
	})
	if len(before) != 5 {
		t.Fatalf("%d records: %+v", len(before), before)
	}
	for _, r := range before {
		if r.Lease.Name != "job" || r.Lease.Token != 0 {
			t.Errorf("before it is held: %+v", r)
		}
	}

	term := fence.Sequencer{Name: "job", Token: 7, Holder: "web-1/4/f"}
	event := func(s lease.State) lease.Event {
		return lease.Event{Name: "job", Token: 7, Holder: "web-1/4/f", State: s, Left: 2 * time.Second, Err: errors.New("no answer")}
	}
	notices := []supervise.Notice{supervise.Terminated, supervise.Leftovers, supervise.Asked, supervise.NoGuard, supervise.Killed}
	during := logged(t, func(a *cli.App, w *Words) {
		a.About(term)
		for _, n := range notices {
			w.Notice(n, "true", time.Second)
		}
		w.Guards(errors.New("the guard has ended"))
		w.Contained(supervise.ContainGroup, errors.New("no cgroup"))
		w.Event(event(lease.StateJeopardy))
		w.Event(lease.Event{Name: ".session/x", Token: 1, Holder: "other", State: lease.StateJeopardy, Err: errors.New("no answer")})
		w.Event(event(lease.StateLost))
	})
	if len(during) != len(notices)+5 {
		t.Fatalf("%d records: %+v", len(during), during)
	}
	for i, r := range during {
		if r.Lease.Name != "job" || r.Lease.Token != 7 || r.Lease.Holder != "web-1/4/f" {
			t.Errorf("while it is held: %+v", r)
		}
		if of := i >= len(during)-3; of != (r.Lease.State != "" && r.Lease.Left != nil && r.Lease.Error == "no answer") {
			t.Errorf("state, left and error: %+v", r)
		}
	}
}
