//go:build !lite

package pair

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/store/dynamodb"
)

// The name of a policy, and what a Region's table is called in all of AWS.
func (p Pair) policyName(r Role) string { return "leasehold-" + p.Lease + "-" + r.Name }

// regions are those in which instances use the table.
func (p Pair) regions() []string {
	if p.Table.Strong() {
		return p.Table.Replicas
	}
	return []string{p.Region}
}

// table is the table's template of that kind, without permissions.
func (p Pair) table(kind string) (string, error) {
	plan := p.Table
	plan.Bare = true
	return plan.Template(kind)
}

func (p Pair) cloudFormation([]Pod) (string, error) {
	text, err := p.table(dynamodb.CloudFormation)
	if err != nil {
		return "", err
	}
	var tables []any
	for _, region := range p.regions() {
		tables = append(tables, object{"Fn::Sub": "arn:${AWS::Partition}:dynamodb:" + region + ":${AWS::AccountId}:table/" + p.Table.Table})
	}
	head := object{
		"Parameters": object{"Topic": object{"Type": "String", "Default": "", "Description": "ARN of an SNS topic that alarms are sent to; empty for none"}},
		"Conditions": object{"Notify": object{"Fn::Not": []any{object{"Fn::Equals": []any{object{"Ref": "Topic"}, ""}}}}},
	}
	before, err := indented(head, "")
	if err != nil {
		return "", err
	}
	resources := object{}
	for _, r := range p.Roles() {
		resources["Policy"+camel(r.Name)] = object{
			"Type": "AWS::IAM::ManagedPolicy",
			"Properties": object{
				"ManagedPolicyName": p.policyName(r), "Description": "For " + r.Doc, "PolicyDocument": r.document(tables),
			},
		}
	}
	notify := object{"Fn::If": []any{"Notify", []any{object{"Ref": "Topic"}}, object{"Ref": "AWS::NoValue"}}}
	for _, a := range p.alarms() {
		in := p.input(a)
		in["AlarmActions"], in["OKActions"] = notify, notify
		resources["Alarm"+camel(a.name)] = object{"Type": "AWS::CloudWatch::Alarm", "Properties": in}
	}
	more, err := indented(resources, "  ")
	if err != nil {
		return "", err
	}
	text = strings.Replace(text, "Resources:\n", before+"Resources:\n", 1)
	text = strings.Replace(text, "Outputs:\n", more+"Outputs:\n", 1)
	return "# " + p.region("The stack is for") + "\n" + text, nil
}

// region says where the table's Region is.
func (p Pair) region(what string) string { return what + " the Region " + p.regions()[0] + "." }

// indented is v as YAML.
func indented(v any, by string) (string, error) {
	const width = 2
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(width)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(by + line)
	}
	return out.String(), nil
}

func (p Pair) cli([]Pod) (string, error) {
	plan := p.Table
	text, err := plan.Template(dynamodb.CLI)
	if err != nil {
		return "", err
	}
	home := p.regions()[0]
	var b strings.Builder
	fmt.Fprintf(&b, "set -eu\nexport AWS_REGION=%s\naccount=$(aws sts get-caller-identity --query Account --output text)\n\n%s\n", home, text)
	var tables []string
	for _, region := range p.regions() {
		tables = append(tables, "arn:aws:dynamodb:"+region+":ACCOUNT:table/"+p.Table.Table)
	}
	for _, r := range p.Roles() {
		doc, err := compact(r.document(tables))
		if err != nil {
			return "", err
		}
		doc = strings.ReplaceAll(doc, ":ACCOUNT:", `:'"$account"':`)
		fmt.Fprintf(&b, "# For %s.\naws iam create-policy --policy-name %s \\\n  --policy-document '%s'\n", r.Doc, p.policyName(r), doc)
	}
	b.WriteString("\n# Add --alarm-actions and the ARN of an SNS topic to be told.\n")
	for _, a := range p.alarms() {
		in, err := compact(p.input(a))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "aws cloudwatch put-metric-alarm --cli-input-json '%s'\n", strings.ReplaceAll(in, "'", `'\''`))
	}
	return b.String(), nil
}
