//go:build lite

package dr

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

func (a *app) standbyInitCommand() *cobra.Command {
	return cli.Lacking("init", "Print what an active and a passive instance need", cli.NotInLite)
}
