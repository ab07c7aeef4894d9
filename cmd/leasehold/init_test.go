package main

import (
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// A table is made, found again, examined and used, on DynamoDB Local.
func TestInitDynamoDB(t *testing.T) {
	srv := servers.DynamoDB(t)
	scriptsIn(t, "init/dynamodb", srv.Env)
}

// What --print writes for CloudFormation is YAML of the table that Create makes.
func TestCloudFormationParses(t *testing.T) {
	text, err := dynamodb.Template(dynamodb.CloudFormation, "team-leases")
	if err != nil {
		t.Fatal(err)
	}
	var template struct {
		Resources map[string]struct {
			Type       string         `yaml:"Type"`
			Properties map[string]any `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal([]byte(text), &template); err != nil {
		t.Fatal(err)
	}
	table := template.Resources["LeaseholdTable"]
	want := map[string]any{
		"TableName": "team-leases", "BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": true,
		"AttributeDefinitions": []any{map[string]any{"AttributeName": "key", "AttributeType": "S"}},
		"KeySchema":            []any{map[string]any{"AttributeName": "key", "KeyType": "HASH"}},
	}
	if table.Type != "AWS::DynamoDB::Table" || !reflect.DeepEqual(table.Properties, want) {
		t.Errorf("%+v, want %+v", table, want)
	}
	if policy := template.Resources["LeaseholdPolicy"]; policy.Type != "AWS::IAM::ManagedPolicy" {
		t.Errorf("%+v", policy)
	}
}
