package server_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/server"
)

// metric is the name of a series of this server's.
var metric = regexp.MustCompile(`\bleasehold_[a-z_]+`)

// The rules and the dashboard in contrib/ are about metrics that a server has.
func TestContribIsAboutRealMetrics(t *testing.T) {
	s := newSite(t, server.Options{Journal: &diary{}, Version: "v1"})
	a := s.acquired(t, "a", "")
	s.ask(t, "PUT", "/v1/leases/a", "", nil, "Leasehold-Sequencer", a.Sequencer, "Leasehold-Secret", a.Secret)
	s.ask(t, "GET", "/v1/leases", "", nil)
	text := s.scrape(t)
	has := map[string]bool{"leasehold_store_errors_total": true} // which has no series before the first
	for line := range strings.Lines(text) {
		if name := metric.FindString(line); name != "" && !strings.HasPrefix(line, "#") {
			has[name] = true
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	read(t, "../contrib/prometheus/leasehold-server.rules.yaml", yaml.Unmarshal, &rules)
	var board struct {
		UID    string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	read(t, "../contrib/grafana/leasehold-server.json", json.Unmarshal, &board)
	exprs := map[string]string{}
	for _, r := range rules.Groups[0].Rules {
		exprs[r.Alert] = r.Expr
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: want a summary and a description", r.Alert)
		}
	}
	for _, p := range board.Panels {
		for _, of := range p.Targets {
			exprs[p.Title] += of.Expr + "\n"
		}
	}
	if len(exprs) < 20 {
		t.Errorf("%d expressions, want rules and panels", len(exprs))
	}
	for what, expr := range exprs {
		names := metric.FindAllString(expr, -1)
		if names == nil && !strings.Contains(expr, "up{") {
			t.Errorf("%s: no metric in %s", what, expr)
		}
		for _, name := range slices.Compact(names) {
			if !has[name] {
				t.Errorf("%s: the server has no %s", what, name)
			}
		}
	}
}

func read(t *testing.T, path string, unmarshal func([]byte, any) error, v any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = unmarshal(text, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
