package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// DefaultTable is the default name of the table.
const DefaultTable = "leasehold"

// Creator is what [Create] uses of a *dynamodb.Client.
type Creator interface {
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// creationPoll is how often a table that is being made is looked at.
const creationPoll = 500 * time.Millisecond

// Create creates the table, with one string partition key, key, on-demand capacity, and deletion
// protection. It blocks until the table is ready or ctx is done. An existing table of that name
// stays as it is: created is then false, and it is an error if leases can't be kept in it.
func Create(ctx context.Context, client Creator, name string) (created bool, err error) {
	return Plan{Table: name}.Create(ctx, client)
}

// Create creates the planned table, as [Create] does. A global table is made by what
// [Plan.Template] returns instead: Create returns an error.
func (p Plan) Create(ctx context.Context, client Creator) (created bool, err error) {
	if err := p.Check(); err != nil {
		return false, err
	}
	if p.Strong() {
		return false, fmt.Errorf("table %s in the Regions %s: a global table is made by a template, such as that for the AWS CLI", p.Table, strings.Join(p.Replicas, ", "))
	}
	name := p.Table
	_, err = client.CreateTable(ctx, p.input())
	if inUse := new(types.ResourceInUseException); err != nil && !errors.As(err, &inUse) {
		return false, fmt.Errorf("table %s can't be made: check that this identity has dynamodb:CreateTable, and the endpoint, if one is set: %w", name, err)
	}
	created = err == nil
	for {
		out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return created, fmt.Errorf("table %s can't be looked at: check that this identity has dynamodb:DescribeTable: %w", name, err)
		}
		if out.Table.TableStatus != types.TableStatusCreating {
			for _, f := range []driver.Finding{table.ReviewStatus(out.Table), reviewKey(out.Table, p.Key())} {
				if f.Status == driver.StatusFail {
					return created, fmt.Errorf("table %s is there, but %s: %s", name, f.Detail, f.Advice)
				}
			}
			return created, nil
		}
		if err := clock.Sleep(ctx, clock.System(), creationPoll); err != nil {
			return created, fmt.Errorf("table %s is still being made: %w", name, err)
		}
	}
}

func (p Plan) input() *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:                 &p.Table,
		AttributeDefinitions:      []types.AttributeDefinition{{AttributeName: aws.String(p.Key()), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:                 []types.KeySchemaElement{{AttributeName: aws.String(p.Key()), KeyType: types.KeyTypeHash}},
		BillingMode:               types.BillingModePayPerRequest,
		DeletionProtectionEnabled: aws.Bool(true),
	}
}

func isTableName(name string) bool {
	const least, most = 3, 255 // bytes
	return len(name) >= least && len(name) <= most && strings.Trim(name, tableNameBytes) == ""
}

// tableNameBytes are all that a table's name may be made of.
const tableNameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// CheckTable returns an error when DynamoDB would not take name for a table.
func CheckTable(name string) error {
	if !isTableName(name) {
		return fmt.Errorf("table %q: want 3 to 255 letters, digits, underscores, dots and dashes", name)
	}
	return nil
}
