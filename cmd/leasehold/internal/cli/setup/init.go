package setup

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

func (a *app) initCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Prepare a store, or print what prepares it",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var known []string
			for _, sub := range cmd.Commands() {
				known = append(known, sub.Name())
			}
			return cli.Usage("%q needs no preparing, or isn't known: init knows %s", args[0], strings.Join(known, ", "))
		},
	}
	cmd.AddCommand(a.initFileCommand(), a.initDynamoDBCommand(), a.initKubernetesCommand(), a.initPostgresCommand(), a.initSystemdCommand())
	return cmd
}
