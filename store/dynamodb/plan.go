package dynamodb

import (
	"fmt"
	"slices"
	"strings"
)

// Plan says which table [Plan.Template] and [Plan.Create] make.
type Plan struct {
	Table string
	// Admiral makes the table of Admiral's disaster-recovery leases, for package dynamotables,
	// instead of one of Leasehold's own.
	Admiral bool
	// Replicas and Witness are the Regions of a global table in strong mode (MRSC): three replicas,
	// or two and a witness, which stores no rows. Without them the table is in one Region. The
	// first replica is the Region in which the table is made.
	Replicas []string
	Witness  string
	// Bare leaves the permissions out of the templates.
	Bare bool
}

// Strong reports whether the table is a global one.
func (p Plan) Strong() bool { return len(p.Replicas) > 0 || p.Witness != "" }

// Key is the name of the table's partition key.
func (p Plan) Key() string {
	if p.Admiral {
		return "leaseName"
	}
	return attrKey
}

// Actions are the permissions on the table that a program needs which takes leases. Those of
// Leasehold's own tables include what `leasehold list` and a sweep need.
func (p Plan) Actions() []string {
	if p.Admiral {
		return []string{"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"}
	}
	return []string{
		"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:Scan", "dynamodb:DescribeTable",
		"dynamodb:DescribeTimeToLive",
	}
}

// strongSets are the Regions that may share a global table in strong mode.
var strongSets = [][]string{
	{"us-east-1", "us-east-2", "us-west-2"},
	{"eu-central-1", "eu-west-1", "eu-west-2", "eu-west-3"},
	{"ap-northeast-1", "ap-northeast-2", "ap-northeast-3"},
}

// Check returns an error that names what no such table can have.
func (p Plan) Check() error {
	if err := CheckTable(p.Table); err != nil || !p.Strong() {
		return err
	}
	const regions = 3
	all := p.Replicas
	if p.Witness != "" {
		all = append(slices.Clip(all), p.Witness)
	}
	if len(all) != regions || len(p.Replicas) < regions-1 {
		return fmt.Errorf("a global table in strong mode has three replicas, or two and a witness, not the replicas %q and the witness %q", p.Replicas, p.Witness)
	}
	for i, r := range all {
		if slices.Contains(all[:i], r) {
			return fmt.Errorf("the Region %s is named twice: want three different ones", r)
		}
	}
	var sets []string
	for _, set := range strongSets {
		if !slices.ContainsFunc(all, func(r string) bool { return !slices.Contains(set, r) }) {
			return nil
		}
		sets = append(sets, strings.Join(set, ", "))
	}
	return fmt.Errorf("the Regions %s can't share a table in strong mode: want three out of %s", strings.Join(all, ", "), strings.Join(sets, "; or out of "))
}
