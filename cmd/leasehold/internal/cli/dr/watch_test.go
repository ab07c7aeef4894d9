package dr

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
)

func at(second int) time.Time { return time.Date(2026, 11, 25, 12, 0, second, 0, time.UTC) }

// The picture has each Region in a column of its own, what the passive instance waits for, the clocks, and the changes; and an error of
// the store instead of old news. What others wrote can't take the terminal over.
func TestFrame(t *testing.T) {
	since, gap, apart := at(30), api.Seconds(400*time.Millisecond), 3.0
	s := api.Pair{
		Lease: "prod", State: "active", Pod: "west", Region: "us-west-2", Owner: "west/h/1/y", Token: 17, Since: &since,
		Instances: []api.Instance{
			{Pod: "west", Region: "us-west-2", Owner: "west/h/1/y", Status: "active"},
			{Pod: "east", Region: "us-east-2", Owner: "east/h/1/x", Status: "passive", Waits: "another instance \x1b[2Jholds the lease", ClockApart: &apart},
		},
		Changes: []api.PairChange{{At: &since, From: "east", To: "west", Gap: &gap, Why: "handed over"}},
	}
	text, err := frame(s, 200, at(40), nil)
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
	if text, err = frame(s, 200, at(40), errors.New("no route")); err != nil || !strings.Contains(text, "doesn't answer: no route") || strings.Contains(text, "us-east-2") {
		t.Errorf("%v:\n%s", err, text)
	}
}
