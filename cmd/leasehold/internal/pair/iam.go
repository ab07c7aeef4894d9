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
	if !p.Table.Admiral {
		return p.nativeRoles()
	}
	read, write, scan := "dynamodb:GetItem", "dynamodb:UpdateItem", Statement{Actions: []string{"dynamodb:Scan"}}
	both := []string{read, write}
	// A row beside each keeps its token; "?" is a tab.
	kept := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, name, "leasehold-token?"+name)
		}
		return all
	}
	lease := kept(p.Lease, ".standby/"+p.Lease)
	return []Role{
		{"instance", "each instance", []Statement{{both, lease}, {[]string{read}, kept(".lock/" + p.Lease)}, describe}},
		{"operator", "standby status, switchover, hold and resume", []Statement{{both, lease}, describe}},
		{"doctor", "doctor", []Statement{{both, kept("leasehold-doctor/probe")}, {[]string{read}, []string{"leasehold-doctor/clock"}}, describe}},
		{"observer", "standby status --wait 0", []Statement{{[]string{read}, kept(p.Lease)}, describe}},
		{"prefix", "instances that claim --se_ip_prefix, besides the first", []Statement{{both, kept("se_ip_prefix/*")}, scan}},
	}
}

// nativeRoles are those on a table of Leasehold's own.
func (p Pair) nativeRoles() []Role {
	read, write, scan := "dynamodb:GetItem", "dynamodb:PutItem", Statement{Actions: []string{"dynamodb:Scan"}}
	both := []string{read, write}
	lease := []string{p.Lease, ".standby/" + p.Lease}
	return []Role{
		{"instance", "each instance", []Statement{{both, lease}, {[]string{read}, []string{".lock/" + p.Lease}}, describe}},
		{"operator", "standby status, switchover, hold and resume", []Statement{{both, lease}, describe}},
		{"doctor", "doctor", []Statement{{append(both, "dynamodb:DeleteItem"), []string{".doctor/*"}}, scan, describe}},
		{"observer", "standby status --wait 0", []Statement{{[]string{read}, lease[:1]}, describe}},
		{"prefix", "instances that claim --se_ip_prefix, besides the first", []Statement{{both, []string{"se_ip_prefix/*"}}, scan}},
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
