//go:build lite && !man

package setup

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

func (a *app) manCommand() *cobra.Command {
	return cli.Lacking("man", "Write the manual pages into a folder", cli.NotInLite)
}
