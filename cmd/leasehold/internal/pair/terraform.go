//go:build !lite

package pair

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/store/dynamodb"
)

// hcl writes blocks of Terraform.
type hcl struct {
	b     strings.Builder
	depth int
}

func (h *hcl) line(format string, args ...any) {
	if format != "" {
		h.b.WriteString(strings.Repeat("  ", h.depth))
	}
	fmt.Fprintf(&h.b, format+"\n", args...)
}

// block writes a block; its first line is preceded by an empty one.
func (h *hcl) block(head string, body func()) {
	h.line("%s {", head)
	h.depth++
	body()
	h.depth--
	h.line("}")
}

// pairs writes attributes, aligned as `terraform fmt` does.
func (h *hcl) pairs(kv ...string) {
	widest := 0
	for i := 0; i < len(kv); i += 2 {
		widest = max(widest, len(kv[i]))
	}
	for i := 0; i < len(kv); i += 2 {
		h.line("%-*s = %s", widest, kv[i], kv[i+1])
	}
}

// text is s as a string of Terraform's.
func text(s string) string { return strings.ReplaceAll(strconv.Quote(s), "${", "$${") }

func texts(all []string) string {
	var quoted []string
	for _, s := range all {
		quoted = append(quoted, text(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (p Pair) terraform([]Pod) (string, error) {
	table, err := p.table(dynamodb.Terraform)
	if err != nil {
		return "", err
	}
	home := p.regions()[0]
	h := &hcl{}
	h.line("# %s", p.region("The provider is one of"))
	h.block(`variable "topics"`, func() {
		h.pairs("description", text("ARNs of SNS topics that alarms are sent to"), "type", "list(string)", "default", "[]")
	})
	h.line("")
	h.b.WriteString(table)
	h.line("")
	h.block("locals", func() {
		h.line("tables = [")
		h.depth++
		h.line("aws_dynamodb_table.leasehold.arn,")
		for _, region := range p.regions()[1:] {
			h.line("replace(aws_dynamodb_table.leasehold.arn, %s, %s),", text(":"+home+":"), text(":"+region+":"))
		}
		h.depth--
		h.line("]")
	})
	for _, r := range p.Roles() {
		p.policy(h, r)
	}
	for _, a := range p.alarms() {
		p.tfAlarm(h, a)
	}
	return h.b.String(), nil
}

func (p Pair) policy(h *hcl, r Role) {
	h.line("\n# For %s.", r.Doc)
	h.block(`data "aws_iam_policy_document" "`+r.Name+`"`, func() {
		for i, s := range r.Statements {
			if i > 0 {
				h.line("")
			}
			h.block("statement", func() {
				h.pairs("actions", texts(s.Actions), "resources", "local.tables")
				if len(s.Keys) == 0 {
					return
				}
				h.line("")
				h.block("condition", func() {
					h.pairs("test", text("ForAllValues:StringLike"), "variable", text("dynamodb:LeadingKeys"), "values", texts(s.Keys))
				})
			})
		}
	})
	h.line("")
	h.block(`resource "aws_iam_policy" "`+r.Name+`"`, func() {
		h.pairs("name", text(p.policyName(r)), "policy", "data.aws_iam_policy_document."+r.Name+".json")
	})
}

func (p Pair) tfAlarm(h *hcl, a alarm) {
	h.line("")
	h.block(`resource "aws_cloudwatch_metric_alarm" "`+strings.ReplaceAll(a.name, "-", "_")+`"`, func() {
		number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
		kv := []string{
			"alarm_name", text(p.alarmName(a)), "alarm_description", text(a.doc), "comparison_operator", text(a.comparison()),
			"threshold", number(a.threshold), "evaluation_periods", strconv.Itoa(a.periods), "datapoints_to_alarm", strconv.Itoa(a.periods),
			"treat_missing_data", text(a.missing), "alarm_actions", "var.topics", "ok_actions", "var.topics",
		}
		if a.math == "" {
			kv = append(kv, a.metrics[0].tf("statistic")...)
		}
		h.pairs(kv...)
		if a.math == "" {
			return
		}
		h.line("")
		h.block("metric_query", func() {
			h.pairs("id", text("all"), "expression", text(a.math), "label", text(a.name), "return_data", "true")
		})
		for i, m := range a.metrics {
			h.line("")
			h.block("metric_query", func() {
				h.pairs("id", text(fmt.Sprintf("m%d", i)), "return_data", "false")
				h.line("")
				h.block("metric", func() { h.pairs(m.tf("stat")...) })
			})
		}
	})
}

// tf are the attributes of a metric.
func (m metric) tf(statistic string) []string {
	var dimensions []string
	for _, d := range m.dimensions {
		dimensions = append(dimensions, d[0]+" = "+text(d[1]))
	}
	return slices.Clip([]string{
		"namespace", text(m.namespace), "metric_name", text(m.name), "period", strconv.Itoa(m.period), statistic, text(m.stat),
		"dimensions", "{ " + strings.Join(dimensions, ", ") + " }",
	})
}
