//go:build !lite

package setup

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
	"github.com/leasehold/leasehold/store/dynamodb"
	"github.com/leasehold/leasehold/store/open"
)

func (a *app) initDynamoDBCommand() *cobra.Command {
	var kind string
	var plan dynamodb.Plan
	cmd := &cobra.Command{
		Use:   "dynamodb",
		Short: "Make a DynamoDB table for leases",
		Long: "Make the table that --store names, on demand capacity and protected from deletion, and wait until it can be used. A table\n" +
			"that is there is left as it is. With schema=admiral it is the table of Admiral's disaster recovery.\n\n" +
			"With --print, write what makes it with another tool, and do nothing. With --replicas it is a global table in strong mode\n" +
			"(MRSC): three Regions, or two and --witness, which stores no rows.",
		Example: "  leasehold init dynamodb --store 'dynamodb://leases?region=eu-west-1'\n" +
			"  leasehold init dynamodb --store 'dynamodb://admiral-lease?schema=admiral&wait=15s&threshold=3&region=us-east-2'\n" +
			"  leasehold init dynamodb --store dynamodb://leases --print terraform >leases.tf\n" +
			"  leasehold init dynamodb --store dynamodb://leases --print cli --replicas us-east-2,us-west-2 --witness us-east-1",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("print") {
				return a.printDynamoDB(kind, plan)
			}
			if plan.Strong() {
				return cli.Usage("--replicas and --witness need --print: a global table is made by one of %s", strings.Join(dynamodb.Templates(), ", "))
			}
			return a.makeDynamoDB(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kind, "print", "", "write a template instead: "+strings.Join(dynamodb.Templates(), ", "))
	f.StringSliceVar(&plan.Replicas, "replicas", nil, "with --print: the Regions of a global table in strong mode")
	f.StringVar(&plan.Witness, "witness", "", "with --print: a Region that is a witness of the table, in place of the third replica")
	return cmd
}

// dynamoDBURL returns the store that is set, which has to be a table.
func (a *app) dynamoDBURL() (open.URL, error) {
	url, standard, err := engines.URL(a.App)
	if err == nil && standard {
		err = errors.New("no table: name it with --store 'dynamodb://TABLE?region=REGION'")
	}
	return url, err
}

func (a *app) printDynamoDB(kind string, plan dynamodb.Plan) error {
	if !slices.Contains(dynamodb.Templates(), kind) {
		return cli.Usage("--print %q: want %s", kind, strings.Join(dynamodb.Templates(), ", "))
	}
	plan.Table = dynamodb.DefaultTable
	if a.Values.Find("store").Source.Kind != config.Default {
		url, err := a.dynamoDBURL()
		if err != nil {
			return err
		}
		named, err := url.DynamoDBPlan()
		if err != nil {
			return cli.Usage("--store: %w", err)
		}
		plan.Table, plan.Admiral = named.Table, named.Admiral
	}
	if err := plan.Check(); err != nil {
		return cli.Usage("--replicas and --witness: %w", err)
	}
	text, err := plan.Template(kind)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

func (a *app) makeDynamoDB(cmd *cobra.Command) error {
	url, err := a.dynamoDBURL()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	plan, err := url.DynamoDBPlan()
	if err != nil {
		return cli.Usage("--store: %w", err)
	}
	target, err := url.DynamoDB(cmd.Context())
	if err != nil {
		return err
	}
	defer target.Close()
	created, err := plan.Create(cmd.Context(), target.Client)
	if err != nil {
		return err
	}
	if created {
		a.Say("table %s is made; now try: leasehold doctor --store '%s'", target.Table, open.Redact(url.String()))
	} else {
		a.Say("table %s is there already, and fits", target.Table)
	}
	return nil
}
