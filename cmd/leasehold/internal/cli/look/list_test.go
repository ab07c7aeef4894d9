package look

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/internal/api"
)

func TestTableFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	since, expires := now.Add(-3*time.Minute), api.Seconds(16*time.Second)
	views := []view.View{
		{
			Lease: api.Lease{
				Name: "backup/nightly", State: view.StateHeld, Holder: "blue/some-long-host-name.example.org/12345/abcdefghijklm",
				Token: 1795257194000, ExpiresIn: &expires,
			},
			Since: &since, LeftFor: 16 * time.Second,
		},
		{Lease: api.Lease{Name: "x", State: view.StateFree, Token: 1}},
	}
	for _, width := range []int{0, 200, 120, 100, 80, 70} {
		var out strings.Builder
		if err := output.WriteTable(&out, listColumns(views, now), width, nil); err != nil {
			t.Fatal(err)
		}
		whole := strings.Contains(out.String(), views[0].Holder)
		if (width == 0 || width >= 120) != whole {
			t.Errorf("width %d: the holder is whole: %v", width, whole)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
		if !strings.Contains(out.String(), "3m ago") || !strings.Contains(out.String(), "1795257194000") {
			t.Errorf("width %d:\n%s", width, &out)
		}
	}
}
