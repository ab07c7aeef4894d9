package rules

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// contrib is what people copy for the lock server. That its metrics exist is tested in package server, which has them.
const (
	serverRules = "../../../contrib/prometheus/leasehold-server.rules.yaml"
	serverBoard = "../../../contrib/grafana/leasehold-server.json"
)

func contrib(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// serverAlerts are the lock server's alerts by name, as Prometheus reads them.
func serverAlerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(contrib(t, serverRules), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if _, twice := all[r.Alert]; twice || r.Alert == "" {
				t.Errorf("alert %q: want a name of its own", r.Alert)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
				t.Errorf("%s: annotations %v, labels %v", r.Alert, r.Annotations, r.Labels)
			}
			all[r.Alert] = r
		}
	}
	return all
}

const p = "  leasehold_"

// buckets is a histogram of which in each step so many are in the first bucket, and so many above it.
func buckets(name, more, first, above string, per, slow string) string {
	line := func(le, every string) string {
		return p + name + `_bucket{` + more + `le="` + le + `"} 0+` + every + "x400\n"
	}
	return line(first, per) + line(above, slow) + line("+Inf", slow)
}

// TestServerAlerts: each alert of the lock server fires on series that should make it fire, no earlier than it says, and not on those that
// shouldn't.
func TestServerAlerts(t *testing.T) {
	const never = time.Duration(-1)
	const end = 30 * time.Minute
	up := `  up{job="leasehold",instance="a"} `
	margin := func(good, all string) string {
		return buckets("renewal_margin_ratio", `instance="a",`, "0.2", "0.5", good, all)
	}
	all, tried := serverAlerts(t), map[string]map[bool]bool{}
	for _, c := range []struct {
		alert, what, series string
		want                time.Duration
	}{
		{"LeaseholdDown", "up", up + "1x120\n", never},
		{"LeaseholdDown", "down", up + "0x120\n", time.Minute},
		{"LeaseholdDown", "one of two is down", up + "0x120\n" + `  up{job="leasehold",instance="b"} 1x120` + "\n", never},
		{"LeaseholdDown", "not scraped at all", `  up{job="other"} 1x120` + "\n", time.Minute},
		{"LeaseholdStoreDown", "answers", p + "store_up 1x120\n", never},
		{"LeaseholdStoreDown", "45 s", p + "store_up 1 0 0 0 1x100\n", never},
		{"LeaseholdStoreDown", "stays down", p + "store_up 1 0x120\n", 75 * time.Second},
		{"LeaseholdLeasesLost", "none", p + "lost_total 3x120\n", never},
		{"LeaseholdLeasesLost", "one", p + "lost_total 3 3 4x120\n", 30 * time.Second},
		{"LeaseholdMarginLow", "on time", margin("0", "1000"), never},
		{"LeaseholdMarginLow", "one in ten late", margin("100", "1000"), 5*time.Minute + step},
		{"LeaseholdMarginLow", "one in a thousand late", margin("1", "1000"), never},
		{"LeaseholdStoreSlow", "quick", buckets("store_duration_seconds", `op="put",`, "0.1", "1", "1000", "1000"), never},
		{"LeaseholdStoreSlow", "one in ten slow", buckets("store_duration_seconds", `op="put",`, "0.1", "1", "900", "1000"), 5*time.Minute + step},
		{"LeaseholdStoreSlow", "a slow list", buckets("store_duration_seconds", `op="list",`, "0.1", "1", "900", "1000"), never},
		{"LeaseholdStoreErrors", "none", p + `store_errors_total{op="put"} 7x120` + "\n", never},
		{"LeaseholdStoreErrors", "one a minute", p + `store_errors_total{op="put"} 0 0 0 0+1x100` + "\n", never},
		{"LeaseholdStoreErrors", "one a second", p + `store_errors_total{op="put"} 0+15x120` + "\n", 5*time.Minute + 3*step},
		{"LeaseholdRenewalsSlow", "quick", buckets("renew_duration_seconds", "", "0.5", "5", "1000", "1000"), never},
		{"LeaseholdRenewalsSlow", "one in ten slow", buckets("renew_duration_seconds", "", "0.5", "5", "900", "1000"), 5*time.Minute + step},
		{"LeaseholdStaleWrites", "none", p + "fenced_writes_total 0x120\n", never},
		{"LeaseholdStaleWrites", "one", p + "fenced_writes_total 0 1x120\n", step},
		{"LeaseholdNobodyRenews", "a fail-over", p + `held{state="expired"} 0 1x40 0x80` + "\n", never},
		{"LeaseholdNobodyRenews", "nobody comes", p + `held{state="expired"} 0 1x120` + "\n", 15*time.Minute + step},
		{"LeaseholdNobodyRenews", "held", p + `held{state="held"} 5x120` + "\n", never},
		{"LeaseholdWaitsLong", "seconds", buckets("acquire_wait_seconds", "", "60", "600", "1000", "1000"), never},
		{"LeaseholdWaitsLong", "one in ten for minutes", buckets("acquire_wait_seconds", "", "60", "600", "900", "1000"), step},
		{"LeaseholdWaitersPileUp", "ten", p + "waiters 10x120\n", never},
		{"LeaseholdWaitersPileUp", "2,000", p + "waiters 2000x120\n", 5 * time.Minute},
		{"LeaseholdFaults", "not current", p + `requests_total{op="renew",outcome="not_current"} 0+1x120` + "\n", never},
		{"LeaseholdFaults", "unknown outcome", p + `requests_total{op="renew",outcome="outcome_unknown"} 0 1x120` + "\n", step},
		{"LeaseholdJournalDown", "kept", p + "journal_up 1x120\n", never},
		{"LeaseholdJournalDown", "not kept", p + "journal_up 0x120\n", 15 * time.Minute},
	} {
		r, ok := all[c.alert]
		if !ok {
			t.Fatalf("no alert %s", c.alert)
		}
		if tried[c.alert] == nil {
			tried[c.alert] = map[bool]bool{}
		}
		tried[c.alert][c.want != never] = true
		if got := fires(t, r, c.series, end); got != c.want {
			t.Errorf("%s, %s: fires after %v, want %v", c.alert, c.what, got, c.want)
		}
	}
	for name := range all {
		if len(tried[name]) != 2 {
			t.Errorf("%s: want series on which it fires, and series on which it doesn't", name)
		}
	}
}

// variable is one of Grafana's own or of the dashboard's.
var variable = regexp.MustCompile(`\$\{?(\w+)\}?`)

// TestServerDashboard: each expression is PromQL, each variable is Grafana's or declared, a rate is of a counter, a quantile of buckets,
// and each series is narrowed to the job and instances that were chosen.
func TestServerDashboard(t *testing.T) {
	var board struct {
		UID           string
		SchemaVersion int
		Templating    struct{ List []struct{ Name string } }
		Panels        []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(contrib(t, serverBoard), &board); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"__rate_interval": "5m", "__range": "1h", "__all": ".*"}
	for _, v := range board.Templating.List {
		known[v.Name] = ".*"
	}
	if board.UID == "" || board.SchemaVersion < 30 || len(board.Panels) < 10 {
		t.Errorf("uid %q, schema version %d, %d panels", board.UID, board.SchemaVersion, len(board.Panels))
	}
	ids, n := map[int]bool{}, 0
	for _, panel := range board.Panels {
		at := panel.GridPos
		if ids[panel.ID] || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("%s: id %d, at %+v: want an id of its own and 24 columns at most", panel.Title, panel.ID, at)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			n++
			text := variable.ReplaceAllStringFunc(target.Expr, func(v string) string {
				name := variable.FindStringSubmatch(v)[1]
				if _, ok := known[name]; !ok {
					t.Errorf("%s: $%s is declared nowhere: %s", panel.Title, name, slices.Sorted(maps.Keys(known)))
				}
				return known[name]
			})
			e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
			if err != nil {
				t.Errorf("%s: %v", panel.Title, err)
				continue
			}
			sound(t, panel.Title, e)
		}
	}
	if n < 15 {
		t.Errorf("%d expressions", n)
	}
	for alert, r := range serverAlerts(t) {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
		if err != nil {
			t.Fatal(err)
		}
		counters(t, alert, e)
	}
}

// sound looks at every part of an expression of the dashboard.
func sound(t *testing.T, title string, e parser.Expr) {
	t.Helper()
	counters(t, title, e)
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			for _, label := range []string{"job", "instance"} {
				if !slices.ContainsFunc(v.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == label }) {
					t.Errorf("%s: %s is not narrowed by %s", title, v, label)
				}
			}
		}
		return nil
	})
}

// counters holds rates and increases to counters, and quantiles to the buckets of histograms, kept apart by le.
func counters(t *testing.T, title string, e parser.Expr) {
	t.Helper()
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		call, ok := n.(*parser.Call)
		if !ok {
			return nil
		}
		switch call.Func.Name {
		case "rate", "increase":
			if text := call.Args[0].String(); !strings.Contains(text, "_total") && !strings.Contains(text, "_bucket") {
				t.Errorf("%s: %s of what is no counter: %s", title, call.Func.Name, text)
			}
		case "histogram_quantile":
			if text := call.Args[1].String(); !strings.Contains(text, "_bucket") || !strings.Contains(text, "le") {
				t.Errorf("%s: a quantile of what are no buckets: %s", title, text)
			}
		}
		return nil
	})
}
