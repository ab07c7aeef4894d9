package rules

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// printed is where the command has what it prints.
const printed = "../../../cmd/leasehold/internal/pair/testdata/"

var schemas = []string{"admiral", "native", "strong"}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(printed + name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rules are the alerts by name, as Prometheus reads them.
func rules(t *testing.T, schema string) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.Parse(read(t, schema+".prometheus.yaml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := map[string]rulefmt.Rule{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s: annotations %v, labels %v", r.Alert, r.Annotations, r.Labels)
			}
			all[r.Alert] = r
		}
	}
	return all
}

// step is how often rules are evaluated, and instances are scraped.
const step = 15 * time.Second

// fires returns when an alert fires first over series in promtool's notation, or -1. It is evaluated every step, from the first sample to
// the end; an expression has to hold for as long as the rule says.
func fires(t *testing.T, r rulefmt.Rule, series string, end time.Duration) time.Duration {
	t.Helper()
	st := promqltest.LoadedStorage(t, "load 15s\n"+series)
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	var since time.Duration = -1
	for at := time.Duration(0); at <= end; at += step {
		q, err := engine.NewInstantQuery(context.Background(), st, nil, r.Expr, time.Unix(0, 0).Add(at))
		if err != nil {
			t.Fatal(err)
		}
		res := q.Exec(context.Background())
		v, err := res.Vector()
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		held := hot(v)
		q.Close()
		switch {
		case !held:
			since = -1
		case since < 0:
			since = at
		}
		if since >= 0 && at-since >= time.Duration(r.For) {
			return at
		}
	}
	return -1
}

func hot(v promql.Vector) bool { return len(v) > 0 }

// pair is series of both instances.
func pair(metric, east, west string) string {
	line := func(pod, values string) string {
		if values == "" {
			return ""
		}
		return fmt.Sprintf("  %s{lease=\"prod\",pod=%q} %s\n", metric, pod, values)
	}
	return line("east", east) + line("west", west)
}

// TestAlerts: each alert fires on series that should make it fire, no earlier than it should, and not on those that shouldn't. 15 s × 3.
func TestAlerts(t *testing.T) {
	const never = time.Duration(-1)
	const p = "leasehold_standby_"
	// Seen by the same scrapes, and as they should be.
	well := pair(p+"active", "1x2000", "0x2000")
	for _, c := range []struct {
		alert, what, series string
		end, want           time.Duration
	}{
		{"LeaseholdNobodyActive", "one is active", well, 10 * time.Minute, never},
		{"LeaseholdNobodyActive", "both passive", pair(p+"active", "0x40", "0x40"), 10 * time.Minute, time.Minute},
		{"LeaseholdNobodyActive", "a take-over of 60 s", pair(p+"active", "1 0 0 0 0 0x30", "0 0 0 0 1 1x30"), 8 * time.Minute, never},
		{"LeaseholdNobodyActive", "none is seen", "  up 1x40\n", 10 * time.Minute, time.Minute},
		{"LeaseholdNobodyActive", "held by an operator", pair(p+"active", "0x40", "0x40") + pair(p+"held", "1x40", "1x40"), 10 * time.Minute, never},
		{"LeaseholdNobodyActive", "another lease's hold", pair(p+"active", "0x40", "0x40") + "  leasehold_standby_held{lease=\"stage\",pod=\"x\"} 1x40\n", 10 * time.Minute, time.Minute},
		{"LeaseholdTwoActive", "one", well, 10 * time.Minute, never},
		{"LeaseholdTwoActive", "two", pair(p+"active", "1x40", "1x40"), 10 * time.Minute, 45 * time.Second},
		{"LeaseholdTwoActive", "a switchover between two scrapes", pair(p+"active", "1 1 1 0x30", "0 0 1 1x30"), 8 * time.Minute, never},
		{"LeaseholdTwoActive", "a term of another lease", pair(p+"active", "1x40", "") + "  leasehold_standby_active{lease=\"stage\",pod=\"x\"} 1x40\n", 10 * time.Minute, never},
		{"LeaseholdJeopardy", "none", pair(p+"jeopardy", "0x40", "0x40"), 10 * time.Minute, never},
		{"LeaseholdJeopardy", "in one scrape", pair(p+"jeopardy", "0 0 0 1 0x30", "0x34"), 8 * time.Minute, 45 * time.Second},
		{"LeaseholdStoreDown", "two TTLs", pair(p+"store_up", "1x40", "1 0x40"), 10 * time.Minute, 105 * time.Second},
		{"LeaseholdStoreDown", "one TTL", pair(p+"store_up", "1x40", "1 0 0 0 1x30"), 8 * time.Minute, never},
		{"LeaseholdNoStandby", "both are seen", well, 20 * time.Minute, never},
		{"LeaseholdNoStandby", "one is seen", pair(p+"active", "1x80", ""), 20 * time.Minute, 5 * time.Minute},
		{"LeaseholdClockSkew", "3 s from the table's clock", pair(p+"clock_apart_seconds", "0x40", "3x40"), 10 * time.Minute, 5 * time.Minute},
		{"LeaseholdClockSkew", "3 s ahead of Prometheus", pair(p+"clock_seconds", "3+15x40", "0+15x40"), 10 * time.Minute, 5 * time.Minute},
		{"LeaseholdClockSkew", "3 s behind Prometheus", pair(p+"clock_seconds", "-3+15x40", "0+15x40"), 10 * time.Minute, 5 * time.Minute},
		{"LeaseholdClockSkew", "1 s", pair(p+"clock_seconds", "1+15x40", "0+15x40"), 10 * time.Minute, never},
		{"LeaseholdThrottled", "none", pair(p+"throttled_total", "0x40", "7x40"), 10 * time.Minute, never},
		{"LeaseholdThrottled", "one", pair(p+"throttled_total", "0x40", "7 7 7 8x30"), 8 * time.Minute, 45 * time.Second},
		{"LeaseholdHoldForgotten", "4 h", pair(p+"held", "1x1000", "1x1000"), 5 * time.Hour, 4 * time.Hour},
		{"LeaseholdHoldForgotten", "resumed after 3 h 59 min", pair(p+"held", "1x955 0x100", "1x955 0x100"), 4*time.Hour + 10*time.Minute, never},
	} {
		r, ok := rules(t, "admiral")[c.alert]
		if !ok {
			t.Fatalf("no alert %s", c.alert)
		}
		if got := fires(t, r, c.series, c.end); got != c.want {
			t.Errorf("%s, %s: fires after %v, want %v", c.alert, c.what, got, c.want)
		}
	}
}

// TestEachAlertIsTried: no alert is printed that TestAlerts doesn't know.
func TestEachAlertIsTried(t *testing.T) {
	source, err := os.ReadFile("rules_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range schemas {
		for alert := range rules(t, schema) {
			if strings.Count(string(source), `{"`+alert+`"`) < 2 {
				t.Errorf("%s: %s isn't tried both ways", schema, alert)
			}
		}
	}
}
