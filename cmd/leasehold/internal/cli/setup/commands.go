// Package setup prepares a store and a machine, and says what is set.
package setup

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// app is one call of the program.
type app struct{ *cli.App }

// Commands are the commands of this group.
func Commands(c *cli.App) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{a.initCommand(), a.doctorCommand(), a.configCommand(), a.versionCommand(), a.manCommand()}
}
