//go:build !lite

package pair

import (
	"fmt"
	"strings"
	"time"
)

// Namespace is where the CloudWatch agent is told to put what it scrapes from instances.
const Namespace = "Leasehold"

// alarm is one of CloudWatch.
type alarm struct {
	name, doc string
	metrics   []metric
	math      string // over the metrics; "" for the one there is
	below     bool   // the threshold is the least that is well; it is the least that isn't without
	threshold float64
	periods   int
	missing   string // what no data means
}

// metric is one that an alarm looks at.
type metric struct {
	namespace, name string
	dimensions      [][2]string
	stat            string
	period          int // seconds
}

// The words of CloudWatch.
const (
	breaching, notBreaching = "breaching", "notBreaching"
	minute                  = 60
)

// alarms are those about this pair.
func (p Pair) alarms() []alarm {
	silent := int((p.TTL() + p.Wait + time.Minute - 1) / time.Minute)
	own := func(name, stat string, period int) (all []metric) {
		for _, pod := range p.Pods {
			all = append(all, metric{Namespace, "leasehold_standby_" + name, [][2]string{{"lease", p.Lease}, {"pod", pod.Name}}, stat, period})
		}
		return all
	}
	requests := func(name, operation, stat string) []metric {
		return []metric{{"AWS/DynamoDB", name, [][2]string{{"TableName", p.Table.Table}, {"Operation", operation}}, stat, minute}}
	}
	const two, skew, forgotten, hour = 2, 2, 4, 3600
	active := append(own("active", "Maximum", minute), own("held", "Maximum", minute)...)
	all := []alarm{
		{"nobody-active", "No instance says that it is active, and no operator holds all passive; or none is seen.", active, p.sum(len(active)), true, 1, silent + 1, breaching},
		{"two-active", "Two instances say that they are active, for minutes.", own("active", "Minimum", minute), p.sum(len(p.Pods)), false, two, 2, notBreaching},
		{"jeopardy", "Renewals of the active instance fail. It becomes passive when its term ends.", own("jeopardy", "Maximum", minute), p.greatest(), false, 1, 1, notBreaching},
		{"clock-skew", "An instance's clock and the table's are 2 s or more apart. Instances of Admiral itself compare clocks.", own("clock_apart_seconds", "Minimum", minute), p.greatest(), false, skew, 5, notBreaching},
		{"hold-forgotten", "An operator has held every instance passive for 4 hours: leasehold standby resume ends it.", own("held", "Minimum", hour), p.greatest(), false, 1, forgotten, notBreaching},
	}
	write := p.Roles()[0].Statements[0].Actions[1]
	for _, action := range []string{"dynamodb:GetItem", write} {
		operation := strings.TrimPrefix(action, "dynamodb:")
		all = append(all, alarm{
			"throttled-" + strings.ToLower(operation), "DynamoDB refuses requests for the table's capacity.",
			requests("ThrottledRequests", operation, "Sum"), "", false, 1, 1, notBreaching,
		})
	}
	if !p.Table.Strong() { // an alarm sees one Region's requests
		all = append(all, alarm{
			"nobody-renews", "Nobody has written to the table: no instance is active, or an operator holds all of them. It needs no agent.",
			requests("SuccessfulRequestLatency", strings.TrimPrefix(write, "dynamodb:"), "SampleCount"), "", true, 1, silent + 1, breaching,
		})
	}
	return all
}

// sum is that of so many metrics, where one that isn't seen is 0.
func (p Pair) sum(count int) string {
	var parts []string
	for i := range count {
		parts = append(parts, fmt.Sprintf("FILL(m%d,0)", i))
	}
	return strings.Join(parts, "+")
}

// greatest is the metrics' maximum.
func (p Pair) greatest() string {
	var parts []string
	for i := range p.Pods {
		parts = append(parts, fmt.Sprintf("m%d", i))
	}
	return "MAX([" + strings.Join(parts, ",") + "])"
}

func (a alarm) comparison() string {
	if a.below {
		return "LessThanThreshold"
	}
	return "GreaterThanOrEqualToThreshold"
}

// input is the alarm as CloudWatch's API and CloudFormation take it.
func (p Pair) input(a alarm) object {
	in := object{
		"AlarmName": p.alarmName(a), "AlarmDescription": a.doc, "Threshold": a.threshold, "ComparisonOperator": a.comparison(),
		"EvaluationPeriods": a.periods, "DatapointsToAlarm": a.periods, "TreatMissingData": a.missing,
	}
	if a.math == "" {
		for k, v := range a.metrics[0].stats("Statistic") {
			in[k] = v
		}
		return in
	}
	list := []object{{"Id": "all", "Expression": a.math, "Label": a.name, "ReturnData": true}}
	for i, m := range a.metrics {
		stat := m.stats("Stat")
		one := object{"Namespace": stat["Namespace"], "MetricName": stat["MetricName"], "Dimensions": stat["Dimensions"]}
		list = append(list, object{
			"Id": fmt.Sprintf("m%d", i), "ReturnData": false,
			"MetricStat": object{"Metric": one, "Stat": stat["Stat"], "Period": stat["Period"]},
		})
	}
	in["Metrics"] = list
	return in
}

func (p Pair) alarmName(a alarm) string { return "leasehold-" + p.Lease + "-" + a.name }

func (m metric) stats(statistic string) object {
	var dimensions []object
	for _, d := range m.dimensions {
		dimensions = append(dimensions, object{"Name": d[0], "Value": d[1]})
	}
	return object{"Namespace": m.namespace, "MetricName": m.name, "Dimensions": dimensions, "Period": m.period, statistic: m.stat}
}

// camel makes a name for a resource of CloudFormation.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
