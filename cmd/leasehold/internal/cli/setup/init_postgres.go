//go:build !local

package setup

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/config"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/engines"
	"github.com/leasehold/leasehold/store/open"
	"github.com/leasehold/leasehold/store/postgres"
)

func (a *app) initPostgresCommand() *cobra.Command {
	var show bool
	var grant string
	cmd := &cobra.Command{
		Use:   "postgres",
		Short: "Make a PostgreSQL table for leases",
		Long: "Make the table that --store names, as a role that may make tables. A table that is there is left as it is. With --grant,\n" +
			"another role may use it from then on. With --print, write the SQL, and do nothing.",
		Example: "  leasehold init postgres --store postgres://admin@db/app --grant worker\n" +
			"  leasehold init postgres --print --store 'postgres://db/app?table=ops.leases' >leases.sql",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if show {
				return a.printPostgres(grant)
			}
			return a.makePostgres(cmd, grant)
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "write the SQL instead")
	cmd.Flags().StringVar(&grant, "grant", "", "a role that is to use the table")
	return cmd
}

func (a *app) printPostgres(grant string) error {
	table := postgres.DefaultTable
	if a.Values.Find("store").Source.Kind != config.Default {
		url, _, err := engines.URL(a.App)
		if err == nil {
			table, err = url.PostgresTable()
		}
		if err != nil {
			return cli.Usage("--store: %w", err)
		}
	}
	text, err := postgres.Schema(table)
	if err == nil && grant != "" {
		var grants string
		grants, err = postgres.Grants(table, grant)
		text += grants
	}
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	_, err = fmt.Fprint(a.Out, text)
	return err
}

func (a *app) makePostgres(cmd *cobra.Command, grant string) error {
	url, standard, err := engines.URL(a.App)
	if err == nil && standard {
		err = errors.New("no database: name it with --store postgres://HOST/DATABASE")
	}
	if err == nil {
		_, err = url.PostgresTable()
	}
	if err != nil {
		return cli.Usage("--store: %w", err)
	}
	target, err := url.Postgres(cmd.Context())
	if err != nil {
		return err
	}
	defer target.Close()
	if err := postgres.Create(cmd.Context(), target.Pool, target.Table); err != nil {
		return err
	}
	if grant != "" {
		sql, err := postgres.Grants(target.Table, grant)
		if err != nil {
			return cli.Usage("--grant: %w", err)
		}
		if _, err := target.Pool.Exec(cmd.Context(), sql); err != nil {
			return fmt.Errorf("the table is there, but %s has no rights on it: %w", grant, err)
		}
	}
	a.Say("table %s is there; now try: leasehold doctor --store '%s'", target.Table, open.Redact(url.String()))
	return nil
}
