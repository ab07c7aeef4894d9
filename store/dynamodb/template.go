package dynamodb

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The kinds of [Template].
const (
	CloudFormation = "cloudformation"
	Terraform      = "terraform"
	CLI            = "cli"
)

// templates write a table's text. They are no text/template: a program that links that package, and
// so can call any method by its name, keeps every exported method of all that it links. That is a
// third of a large program.
var templates = map[string]func(*draft){
	CloudFormation: (*draft).cloudFormation,
	Terraform:      (*draft).terraform,
	CLI:            (*draft).cli,
}

// draft is the text of a planned table that is being written.
type draft struct {
	Plan
	strings.Builder
	names *strings.Replacer
}

func newDraft(p Plan) *draft {
	home, in := "", ""
	if p.Strong() {
		home = p.Replicas[0]
		in = " --region " + home
	}
	return &draft{Plan: p, names: strings.NewReplacer("{TABLE}", p.Table, "{KEY}", p.Key(), "{WITNESS}", p.Witness, "{HOME}", home, "{IN}", in)}
}

// others are the Regions of the replicas that are added to the first one.
func (d *draft) others() []string {
	if !d.Strong() {
		return nil
	}
	return d.Replicas[1:]
}

// add writes text, with names in place of what is in braces.
func (d *draft) add(text string) { _, _ = d.names.WriteString(d, text) }

// addIf writes text on a condition.
func (d *draft) addIf(condition bool, text string) {
	if condition {
		d.add(text)
	}
}

// addEach writes text for each item, which is {} in it.
func (d *draft) addEach(items []string, text string) {
	for _, item := range items {
		d.add(strings.ReplaceAll(text, "{}", item))
	}
}

func (d *draft) cloudFormation() {
	kind := "Table"
	if d.Strong() {
		kind = "GlobalTable"
	}
	d.add(`AWSTemplateFormatVersion: "2010-09-09"
Description: A DynamoDB table for leases of Leasehold
Resources:
  LeaseholdTable:
    Type: AWS::DynamoDB::` + kind + `
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      TableName: {TABLE}
      BillingMode: PAY_PER_REQUEST
`)
	if d.Strong() {
		d.add(`      MultiRegionConsistency: STRONG
      Replicas:
`)
		d.addEach(d.Replicas, `        - Region: {}
          DeletionProtectionEnabled: true
`)
		d.addIf(d.Witness != "", `      GlobalTableWitnesses:
        - Region: {WITNESS}
`)
	} else {
		d.add(`      DeletionProtectionEnabled: true
`)
	}
	d.add(`      AttributeDefinitions:
        - AttributeName: {KEY}
          AttributeType: S
      KeySchema:
        - AttributeName: {KEY}
          KeyType: HASH
`)
	if !d.Bare {
		d.managedPolicy()
	}
	d.add(`Outputs:
  Table:
    Value: !Ref LeaseholdTable
`)
	d.addIf(!d.Bare, `  Policy:
    Value: !Ref LeaseholdPolicy
`)
}

func (d *draft) managedPolicy() {
	d.add(`  LeaseholdPolicy:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      Description: What a program that takes leases may do
      PolicyDocument:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Action:
`)
	d.addEach(d.Actions(), `              - {}
`)
	if !d.Strong() {
		d.add(`            Resource: !GetAtt LeaseholdTable.Arn
`)
		return
	}
	d.add(`            Resource:
`)
	d.addEach(d.Replicas, `              - !Sub arn:${AWS::Partition}:dynamodb:{}:${AWS::AccountId}:table/{TABLE}
`)
}

func (d *draft) terraform() {
	d.addIf(d.Strong(), `# Apply it with a provider of {HOME}, version 6.22 or later.
`)
	d.add(`resource "aws_dynamodb_table" "leasehold" {
  name                        = "{TABLE}"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "{KEY}"
  deletion_protection_enabled = true

  attribute {
    name = "{KEY}"
    type = "S"
  }
`)
	d.addEach(d.others(), `
  replica {
    region_name                 = "{}"
    consistency_mode            = "STRONG"
    deletion_protection_enabled = true
  }
`)
	d.addIf(d.Witness != "", `
  global_table_witness {
    region_name = "{WITNESS}"
  }
`)
	d.add(`
  lifecycle {
    prevent_destroy = true
  }
}
`)
	if !d.Bare {
		d.policyDocument()
	}
}

func (d *draft) policyDocument() {
	d.add(`
data "aws_iam_policy_document" "leasehold" {
  statement {
    actions = [
`)
	d.addEach(d.Actions(), `      "{}",
`)
	d.add(`    ]
`)
	if d.Strong() {
		d.add(`    resources = [
      aws_dynamodb_table.leasehold.arn,
`)
		d.addEach(d.others(), `      replace(aws_dynamodb_table.leasehold.arn, ":{HOME}:", ":{}:"),
`)
		d.add(`    ]
`)
	} else {
		d.add(`    resources = [aws_dynamodb_table.leasehold.arn]
`)
	}
	d.add(`  }
}
`)
}

func (d *draft) cli() {
	d.add(`aws dynamodb create-table{IN} \
  --table-name {TABLE} \
  --attribute-definitions AttributeName={KEY},AttributeType=S \
  --key-schema AttributeName={KEY},KeyType=HASH \
  --billing-mode PAY_PER_REQUEST \
  --deletion-protection-enabled
aws dynamodb wait table-exists{IN} --table-name {TABLE}
`)
	if !d.Strong() {
		return
	}
	var creates []string
	for _, region := range d.others() {
		creates = append(creates, `{"Create":{"RegionName":"`+region+`"}}`)
	}
	d.add(`aws dynamodb update-table{IN} \
  --table-name {TABLE} \
  --replica-updates '[` + strings.Join(creates, ",") + `]' \
`)
	d.addIf(d.Witness != "", `  --global-table-witness-updates '[{"Create":{"RegionName":"{WITNESS}"}}]' \
`)
	d.add(`  --multi-region-consistency STRONG
`)
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
	write, ok := templates[kind]
	if !ok {
		return "", fmt.Errorf("template %q: want one of %s", kind, strings.Join(Templates(), ", "))
	}
	d := newDraft(p)
	write(d)
	return d.String(), nil
}
