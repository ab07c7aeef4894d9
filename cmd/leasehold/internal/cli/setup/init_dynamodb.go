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
	cmd := &cobra.Command{
		Use:   "dynamodb",
		Short: "Make a DynamoDB table for leases",
		Long: "Make the table that --store names, on demand capacity and protected from deletion, and wait until it can be used. A table\n" +
			"that is there is left as it is. With --print, write what makes it with another tool, and do nothing.",
		Example: "  leasehold init dynamodb --store 'dynamodb://leases?region=eu-west-1'\n" +
			"  leasehold init dynamodb --store dynamodb://leases --print terraform >leases.tf",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("print") {
				return a.printDynamoDB(kind)
			}
			return a.makeDynamoDB(cmd)
		},
	}
	cmd.Flags().StringVar(&kind, "print", "", "write a template instead: "+strings.Join(dynamodb.Templates(), ", "))
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

func (a *app) printDynamoDB(kind string) error {
	if !slices.Contains(dynamodb.Templates(), kind) {
		return cli.Usage("--print %q: want %s", kind, strings.Join(dynamodb.Templates(), ", "))
	}
	table := dynamodb.DefaultTable
	if a.Values.Find("store").Source.Kind != config.Default {
		url, err := a.dynamoDBURL()
		if err != nil {
			return err
		}
		if table, err = url.DynamoDBTable(); err != nil {
			return cli.Usage("--store: %w", err)
		}
	}
	text, err := dynamodb.Template(kind, table)
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
	if _, err := url.DynamoDBTable(); err != nil {
		return cli.Usage("--store: %w", err)
	}
	target, err := url.DynamoDB(cmd.Context())
	if err != nil {
		return err
	}
	defer target.Close()
	created, err := dynamodb.Create(cmd.Context(), target.Client, target.Table)
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
