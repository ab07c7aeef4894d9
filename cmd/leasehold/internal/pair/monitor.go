//go:build !lite

package pair

import (
	_ "embed"
	"errors"
	"strconv"
	"strings"
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

func (p Pair) grafana([]Pod) (string, error) { return dashboard, nil }

// prometheus is no text/template: with that, the program would keep every exported method of all
// that it links.
func (p Pair) prometheus([]Pod) (string, error) {
	return strings.NewReplacer(
		"[[.Lease]]", p.Lease, "[[.Silent]]", seconds(p.TTL()+p.Wait), "[[.Outage]]", seconds(2*p.TTL()),
		"[[.Pods]]", strconv.Itoa(len(p.Pods)), "[[.TTL]]", p.TTL().Truncate(time.Second).String(),
	).Replace(rulesText), nil
}
