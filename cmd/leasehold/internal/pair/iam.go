//go:build !lite

package pair

import (
	"encoding/json"
	"strings"
)

// Statement is what a role may do with rows of the table.
type Statement struct {
	Actions []string
	Keys    []string // patterns of the partition keys; none for the table as a whole
}

// Role is a policy for those who do one job.
type Role struct {
	Name       string // instance, operator, observer or prefix
	Doc        string // who needs it
	Statements []Statement
}

// describe is what everybody needs who opens the table: it is looked at first.
var describe = Statement{Actions: []string{"dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"}}

// Roles are the least permissions, by job. A test counts the requests of each.
func (p Pair) Roles() []Role {
	row := []string{"dynamodb:GetItem", "dynamodb:UpdateItem"}
	lease := []string{p.Lease, ".standby/" + p.Lease}
	probe := []string{"leasehold-doctor/probe", "leasehold-doctor/clock"}
	prefixes := []string{"se_ip_prefix/*"}
	if !p.Table.Admiral {
		row = []string{"dynamodb:GetItem", "dynamodb:PutItem"}
		probe = []string{".leasehold-doctor/*"}
	}
	keys := func(names ...string) []string {
		if !p.Table.Admiral {
			return names
		}
		all := names
		for _, name := range names { // a row beside each keeps its token; "?" is a tab
			all = append(all, "leasehold-token?"+name)
		}
		return all
	}
	operator := Role{"operator", "standby status, switchover, hold and resume; doctor", []Statement{{row, keys(append(lease, probe...)...)}, describe}}
	return []Role{
		{"instance", "each instance", []Statement{{row, keys(lease...)}, describe}},
		operator,
		{"observer", "standby status --wait 0", []Statement{{row[:1], keys(lease[0])}, describe}},
		{"prefix", "instances that claim --se_ip_prefix, besides the first", []Statement{{row, keys(prefixes...)}, {Actions: []string{"dynamodb:Scan"}}}},
	}
}

// object is a mapping of JSON or YAML.
type object map[string]any

// document is the policy on the resources, which are strings, or what a template makes of them.
func (r Role) document(resources any) object {
	var all []object
	for _, s := range r.Statements {
		one := object{"Effect": "Allow", "Action": s.Actions, "Resource": resources}
		if len(s.Keys) > 0 {
			one["Condition"] = object{"ForAllValues:StringLike": object{"dynamodb:LeadingKeys": s.Keys}}
		}
		all = append(all, one)
	}
	return object{"Version": "2012-10-17", "Statement": all}
}

// compact is v as JSON in one line.
func compact(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}
