package incident

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func minute(m int) time.Time { return noon.Add(time.Duration(m) * time.Minute) }

func spanOf(name string, kind api.SpanKind, holder string, token fence.Token, from, until int, ended string) api.Span {
	s := api.Span{Name: name, Kind: kind, Holder: holder, Token: token, From: minute(from), Ended: ended}
	if until != 0 {
		s.Until = minute(until)
	}
	return s
}

// The worst comes first: what was lost, then who waited, then the longest; text of records can't leave its cell.
func TestReport(t *testing.T) {
	spans := []api.Span{
		spanOf("db", api.SpanTerm, "db-1/a", 1, -300, -31, "expired"),
		spanOf("evil|<b>\n# x", api.SpanTerm, "h|[x](y)", 9, -50, -40, "broken by ops: `rm`"),
		spanOf("ci", api.SpanTerm, "r1/x", 3, -50, -45, "released"),
		spanOf("ci", api.SpanTerm, "r2/x", 4, -20, -10, "released"),
		spanOf("db", api.SpanWaiting, "", 0, -32, -28, ""),
		spanOf("db", api.SpanTerm, "db-2/b", 2, -28, 0, ""),
		spanOf("sem", api.SpanShare, "s1/x", 5, -50, -30, ""),
		spanOf("sem", api.SpanShare, "s2/x", 6, -40, 0, ""),
		spanOf("vote", api.SpanPaused, "ops", 0, -10, -5, ""),
	}
	slices.Reverse(spans) // in any order
	got := Report(spans, minute(-60), noon, minute(-55))
	want := `# Leases from 2026-11-21 11:00:00 UTC to 2026-11-21 12:00:00 UTC

The journal is complete from 2026-11-21 11:05:00 UTC on.

- 5 names, 9 terms and states
- 2 terms that their holders did not end
- 4 times without a holder, the longest 40m0s ("evil\|&lt;b>\n# x", from 2026-11-21 11:20:00 UTC)

## Terms that were lost

| name | holder | token | from | until | ended |
|---|---|---|---|---|---|
| db | db-1/a | 1 | 2026-11-21 07:00:00 UTC | 2026-11-21 11:29:00 UTC | expired |
| "evil\|&lt;b>\n# x" | h\|\[x](y) | 9 | 2026-11-21 11:10:00 UTC | 2026-11-21 11:20:00 UTC | broken by ops: 'rm' |

## Times without a holder

| name | for | from | until | the term before | waiters |
|---|---|---|---|---|---|
| db | 3m0s | 2026-11-21 11:29:00 UTC | 2026-11-21 11:32:00 UTC | expired of db-1/a | yes |
| "evil\|&lt;b>\n# x" | 40m0s | 2026-11-21 11:20:00 UTC | 2026-11-21 12:00:00 UTC, still free then | broken by ops: 'rm' of h\|\[x](y) | no |
| ci | 25m0s | 2026-11-21 11:15:00 UTC | 2026-11-21 11:40:00 UTC | released of r1/x | no |
| ci | 10m0s | 2026-11-21 11:50:00 UTC | 2026-11-21 12:00:00 UTC, still free then | released of r2/x | no |
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for _, line := range []string{
		"| 2026-11-21 11:29:00 UTC | db | expired | db-1/a | 1 |", "| 2026-11-21 11:50:00 UTC | vote | paused | ops |  |", "| 2026-11-21 11:55:00 UTC | vote | resumed | ops |  |",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %s in\n%s", line, got)
		}
	}
	if strings.Contains(got, "07:00:00 UTC | db | acquired") {
		t.Error("what was before the time is told as a change")
	}
	if none := Report(nil, minute(-60), noon, minute(-99)); !strings.Contains(none, "- no time without a holder\n") || strings.Contains(none, "##") {
		t.Errorf("of nothing:\n%s", none)
	}
}
