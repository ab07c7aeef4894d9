package dynamodb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

// The kinds of [Template].
const (
	CloudFormation = "cloudformation"
	Terraform      = "terraform"
	CLI            = "cli"
)

var templates = map[string]*template.Template{
	CloudFormation: parsed(CloudFormation, `AWSTemplateFormatVersion: "2010-09-09"
Description: A DynamoDB table for leases of Leasehold
Resources:
  LeaseholdTable:
    Type: AWS::DynamoDB::{{if .Strong}}GlobalTable{{else}}Table{{end}}
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      TableName: {{.Table}}
      BillingMode: PAY_PER_REQUEST
{{- if .Strong}}
      MultiRegionConsistency: STRONG
      Replicas:
{{- range .Replicas}}
        - Region: {{.}}
          DeletionProtectionEnabled: true
{{- end}}
{{- with .Witness}}
      GlobalTableWitnesses:
        - Region: {{.}}
{{- end}}
{{- else}}
      DeletionProtectionEnabled: true
{{- end}}
      AttributeDefinitions:
        - AttributeName: {{.Key}}
          AttributeType: S
      KeySchema:
        - AttributeName: {{.Key}}
          KeyType: HASH
{{- if not .Bare}}
  LeaseholdPolicy:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      Description: What a program that takes leases may do
      PolicyDocument:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Action:
{{- range .Actions}}
              - {{.}}
{{- end}}
{{- if .Strong}}
            Resource:
{{- range .Replicas}}
              - !Sub arn:${AWS::Partition}:dynamodb:{{.}}:${AWS::AccountId}:table/{{$.Table}}
{{- end}}
{{- else}}
            Resource: !GetAtt LeaseholdTable.Arn
{{- end}}
{{- end}}
Outputs:
  Table:
    Value: !Ref LeaseholdTable
{{- if not .Bare}}
  Policy:
    Value: !Ref LeaseholdPolicy
{{- end}}
`),
	Terraform: parsed(Terraform, `{{with .Home}}# Apply it with a provider of {{.}}, version 6.22 or later.
{{end}}resource "aws_dynamodb_table" "leasehold" {
  name                        = "{{.Table}}"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "{{.Key}}"
  deletion_protection_enabled = true

  attribute {
    name = "{{.Key}}"
    type = "S"
  }
{{- range .Others}}

  replica {
    region_name                 = "{{.}}"
    consistency_mode            = "STRONG"
    deletion_protection_enabled = true
  }
{{- end}}
{{- with .Witness}}

  global_table_witness {
    region_name = "{{.}}"
  }
{{- end}}

  lifecycle {
    prevent_destroy = true
  }
}
{{- if not .Bare}}

data "aws_iam_policy_document" "leasehold" {
  statement {
    actions = [
{{- range .Actions}}
      "{{.}}",
{{- end}}
    ]
{{- if .Strong}}
    resources = [
      aws_dynamodb_table.leasehold.arn,
{{- range .Others}}
      replace(aws_dynamodb_table.leasehold.arn, ":{{$.Home}}:", ":{{.}}:"),
{{- end}}
    ]
{{- else}}
    resources = [aws_dynamodb_table.leasehold.arn]
{{- end}}
  }
}
{{- end}}
`),
	CLI: parsed(CLI, `aws dynamodb create-table{{.In}} \
  --table-name {{.Table}} \
  --attribute-definitions AttributeName={{.Key}},AttributeType=S \
  --key-schema AttributeName={{.Key}},KeyType=HASH \
  --billing-mode PAY_PER_REQUEST \
  --deletion-protection-enabled
aws dynamodb wait table-exists{{.In}} --table-name {{.Table}}
{{- if .Strong}}
aws dynamodb update-table{{.In}} \
  --table-name {{.Table}} \
  --replica-updates '[{{range $i, $r := .Others}}{{if $i}},{{end}}{"Create":{"RegionName":"{{$r}}"}}{{end}}]' \
{{- with .Witness}}
  --global-table-witness-updates '[{"Create":{"RegionName":"{{.}}"}}]' \
{{- end}}
  --multi-region-consistency STRONG
{{- end}}
`),
}

func parsed(name, text string) *template.Template {
	return template.Must(template.New(name).Parse(text))
}

// Templates returns the kinds of [Template].
func Templates() []string { return slices.Sorted(maps.Keys(templates)) }

// Template returns a text that creates the table of that name by other means: a CloudFormation
// template, a Terraform configuration or a command of the AWS CLI. See [Plan.Template] for other
// tables than one of Leasehold's own in one Region.
func Template(kind, name string) (string, error) { return Plan{Table: name}.Template(kind) }

// Template returns a text that creates the planned table by other means: a CloudFormation template,
// a Terraform configuration or commands of the AWS CLI.
func (p Plan) Template(kind string) (string, error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	t, ok := templates[kind]
	if !ok {
		return "", fmt.Errorf("template %q: want one of %s", kind, strings.Join(Templates(), ", "))
	}
	data := struct {
		Plan
		Home, In string
		Others   []string
	}{Plan: p}
	if p.Strong() {
		data.Home, data.Others = p.Replicas[0], p.Replicas[1:]
		data.In = " --region " + data.Home
	}
	var b strings.Builder
	err := t.Execute(&b, data)
	return b.String(), err
}
