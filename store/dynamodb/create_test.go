package dynamodb

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestCreate(t *testing.T) {
	name, srv := testTable(t) // created
	client := testClient(t, srv.URL)
	if created, err := Create(t.Context(), client, name); err != nil || created {
		t.Errorf("of a table that is there: created: %v, %v", created, err)
	}
	other := "other-" + strings.ToLower(newVersion())
	in := Plan{Table: other}.input()
	in.DeletionProtectionEnabled = nil
	in.KeySchema[0].AttributeName, in.AttributeDefinitions[0].AttributeName = aws.String("id"), aws.String("id")
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if created, err := Create(t.Context(), client, other); created || err == nil || !strings.Contains(err.Error(), "id S HASH") {
		t.Errorf("of a table with another key: created: %v, %v", created, err)
	}
	if _, err := Create(t.Context(), client, "no such name"); err == nil || !strings.Contains(err.Error(), "3 to 255") {
		t.Errorf("%v", err)
	}
}

// The command of the AWS CLI, carried out as the CLI would, makes the table that Create makes.
func TestTemplateOfTheCLI(t *testing.T) {
	srv := servers.DynamoDB(t, servers.Shared())
	client := testClient(t, srv.URL)
	name := "cli-" + strings.ToLower(newVersion())
	text, err := Template(CLI, name)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(strings.ReplaceAll(text, "\\\n", " "), "\n")
	if want := "aws dynamodb wait table-exists --table-name " + name; strings.TrimSpace(rest) != want {
		t.Errorf("the second command is %q, want %q", rest, want)
	}
	in := parseCLI(t, strings.Fields(first))
	if want := (Plan{Table: name}).input(); !reflect.DeepEqual(in, want) {
		t.Errorf("the CLI makes %+v, want %+v", in, want)
	}
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	testOpen(t, client, name, Options{})
}

// parseCLI reads the arguments of aws dynamodb create-table as the CLI does.
func parseCLI(t *testing.T, args []string) *dynamodb.CreateTableInput {
	if len(args) < 3 || args[0] != "aws" || args[1] != "dynamodb" || args[2] != "create-table" {
		t.Fatalf("%q", args)
	}
	fields := func(text string) map[string]string {
		m := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			k, v, _ := strings.Cut(part, "=")
			m[k] = v
		}
		return m
	}
	in := &dynamodb.CreateTableInput{}
	for args = args[3:]; len(args) > 0; args = args[1:] {
		flag := args[0]
		if flag == "--deletion-protection-enabled" {
			in.DeletionProtectionEnabled = aws.Bool(true)
			continue
		}
		args = args[1:]
		switch value := args[0]; flag {
		case "--table-name":
			in.TableName = &value
		case "--billing-mode":
			in.BillingMode = types.BillingMode(value)
		case "--key-schema":
			f := fields(value)
			in.KeySchema = append(in.KeySchema, types.KeySchemaElement{AttributeName: aws.String(f["AttributeName"]), KeyType: types.KeyType(f["KeyType"])})
		case "--attribute-definitions":
			f := fields(value)
			in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(f["AttributeName"]), AttributeType: types.ScalarAttributeType(f["AttributeType"])})
		default:
			t.Fatalf("unknown flag %s", flag)
		}
	}
	return in
}

// Every template says the same table and the permissions that the package's doc lists.
func TestTemplates(t *testing.T) {
	for _, kind := range Templates() {
		text, err := Template(kind, "team-leases")
		if err != nil || !strings.Contains(text, "team-leases") || strings.Contains(text, "TABLE") {
			t.Errorf("%s: %v\n%s", kind, err, text)
		}
		if kind == CLI {
			continue
		}
		for _, want := range []string{"PAY_PER_REQUEST", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem", "dynamodb:Scan", "dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s isn't in it", kind, want)
			}
		}
	}
	for _, bad := range [][2]string{{"pulumi", "leases"}, {CLI, "a b"}, {CLI, "ab"}, {CLI, `x" && rm`}} {
		if text, err := Template(bad[0], bad[1]); err == nil {
			t.Errorf("%q: %s", bad, text)
		}
	}
}
