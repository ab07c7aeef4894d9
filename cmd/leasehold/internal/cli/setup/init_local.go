//go:build local

package setup

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

func (a *app) initPostgresCommand() *cobra.Command {
	return cli.Lacking("postgres", "Make a PostgreSQL table for leases", cli.NotInLocal)
}
