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

var templates = map[string]string{
	CloudFormation: `AWSTemplateFormatVersion: "2010-09-09"
Description: A DynamoDB table for leases of Leasehold
Resources:
  LeaseholdTable:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    UpdateReplacePolicy: Retain
    Properties:
      TableName: TABLE
      BillingMode: PAY_PER_REQUEST
      DeletionProtectionEnabled: true
      AttributeDefinitions:
        - AttributeName: key
          AttributeType: S
      KeySchema:
        - AttributeName: key
          KeyType: HASH
  LeaseholdPolicy:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      Description: What a program that takes leases may do
      PolicyDocument:
        Version: "2012-10-17"
        Statement:
          - Effect: Allow
            Action:
              - dynamodb:GetItem
              - dynamodb:PutItem
              - dynamodb:DeleteItem
              - dynamodb:Scan
              - dynamodb:DescribeTable
              - dynamodb:DescribeTimeToLive
            Resource: !GetAtt LeaseholdTable.Arn
Outputs:
  Table:
    Value: !Ref LeaseholdTable
  Policy:
    Value: !Ref LeaseholdPolicy
`,
	Terraform: `resource "aws_dynamodb_table" "leasehold" {
  name                        = "TABLE"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "key"
  deletion_protection_enabled = true

  attribute {
    name = "key"
    type = "S"
  }

  lifecycle {
    prevent_destroy = true
  }
}

data "aws_iam_policy_document" "leasehold" {
  statement {
    actions = [
      "dynamodb:GetItem",
      "dynamodb:PutItem",
      "dynamodb:DeleteItem",
      "dynamodb:Scan",
      "dynamodb:DescribeTable",
      "dynamodb:DescribeTimeToLive",
    ]
    resources = [aws_dynamodb_table.leasehold.arn]
  }
}
`,
	CLI: `aws dynamodb create-table \
  --table-name TABLE \
  --attribute-definitions AttributeName=key,AttributeType=S \
  --key-schema AttributeName=key,KeyType=HASH \
  --billing-mode PAY_PER_REQUEST \
  --deletion-protection-enabled
aws dynamodb wait table-exists --table-name TABLE
`,
}

// Templates returns the kinds of [Template].
func Templates() []string { return slices.Sorted(maps.Keys(templates)) }

// Template returns a text that creates the table of that name by other means: a CloudFormation
// template, a Terraform configuration or a command of the AWS CLI.
func Template(kind, name string) (string, error) {
	if err := CheckTable(name); err != nil {
		return "", err
	}
	text, ok := templates[kind]
	if !ok {
		return "", fmt.Errorf("template %q: want one of %s", kind, strings.Join(Templates(), ", "))
	}
	return strings.ReplaceAll(text, "TABLE", name), nil
}
