//go:build !lite

package pair

import (
	_ "embed"
	"errors"
	"strings"
	"text/template"
	"time"
)

// errOnePod is about values of a chart, which are one instance's.
var errOnePod = errors.New("the chart's values are those of one instance: name it with --pod")

// The dashboard asks for the lease itself.
//
//go:embed templates/dashboard.json
var dashboard string

//go:embed templates/rules.yaml
var rulesText string

var rules = template.Must(template.New("rules").Delims("[[", "]]").Parse(rulesText))

func (p Pair) grafana([]Pod) (string, error) { return dashboard, nil }

func (p Pair) prometheus([]Pod) (string, error) {
	var b strings.Builder
	err := rules.Execute(&b, map[string]any{
		"Lease": p.Lease, "Silent": seconds(p.TTL() + p.Wait), "Outage": seconds(2 * p.TTL()), "Pods": len(p.Pods),
		"TTL": p.TTL().Truncate(time.Second),
	})
	return b.String(), err
}
