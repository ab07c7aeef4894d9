package dr

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/compat/admiral"
)

func at(second int) time.Time { return time.Date(2026, 11, 25, 12, 0, second, 0, time.UTC) }

// Of a hand-over the gap is told; of a term that expired, a bound; of a hold neither, since nobody was to be active.
func TestChanges(t *testing.T) {
	cfg := admiral.Config{WaitTime: 15 * time.Second, FailureThreshold: 3}
	all := changes([]view.Term{
		{Holder: "east/h/1/x", From: at(50)},
		{Holder: admiral.SkipOwner, From: at(40), Until: at(45), Ended: "resumed by me"},
		{Holder: "west/h/1/y", From: at(30), Until: at(40), Ended: "held passive by me"},
		{Holder: "east/h/1/z", From: at(10), Until: at(29), Ended: "handed over to west"},
		{Holder: "west/h/1/q", From: at(0), Until: at(10), Ended: "expired"},
	}, cfg)
	if len(all) != 5 {
		t.Fatalf("%+v", all)
	}
	for i, want := range []struct {
		from, to  string
		gap, most float64
	}{{admiral.SkipOwner, "east", -1, -1}, {"west", admiral.SkipOwner, -1, -1}, {"east", "west", 1, -1}, {"west", "east", -1, 60}, {"", "west", -1, -1}} {
		value := func(v *float64) float64 {
			if v == nil {
				return -1
			}
			return *v
		}
		if c := all[i]; c.From != want.from || c.To != want.to || value(c.Gap) != want.gap || value(c.GapAtMost) != want.most {
			t.Errorf("%d: %+v, want %+v", i, c, want)
		}
	}
}

// The picture has each Region in a column of its own, what the passive instance waits for, the clocks, and the changes; and an error of
// the store instead of old news. What others wrote can't take the terminal over.
func TestFrame(t *testing.T) {
	since, gap, apart := at(30), 0.4, 3.0
	s := standing{
		Lease: "prod", State: "active", Pod: "west", Region: "us-west-2", Owner: "west/h/1/y", Token: 17, Since: &since,
		Instances: []admiral.Instance{
			{Pod: "west", Region: "us-west-2", Owner: "west/h/1/y", Status: "active"},
			{Pod: "east", Region: "us-east-2", Owner: "east/h/1/x", Status: "passive", Waits: "another instance \x1b[2Jholds the lease", ClockApart: &apart},
		},
		Changes: []change{{At: at(30), From: "east", To: "west", Gap: &gap, Why: "handed over"}},
	}
	text, err := s.frame(200, at(40), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"lease prod   ACTIVE", "us-east-2", "us-west-2", "3s or more from the store's", "(10s ago)", "0.4s", "handed over"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q isn't in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	lines := strings.Split(text, "\n")
	if east, west := strings.Index(lines[2], "us-east-2"), strings.Index(lines[2], "us-west-2"); east < 0 || west < east {
		t.Errorf("not side by side:\n%s", text)
	}
	if text, err = s.frame(200, at(40), errors.New("no route")); err != nil || !strings.Contains(text, "doesn't answer: no route") || strings.Contains(text, "us-east-2") {
		t.Errorf("%v:\n%s", err, text)
	}
}
