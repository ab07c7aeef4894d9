// Package plan computes and measures what helps to decide: how much a lease costs, and what it
// saves.
package plan

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// app is one call of the program.
type app struct{ *cli.App }

// Commands are the commands of this group.
func Commands(c *cli.App) []*cobra.Command {
	a := &app{c}
	return []*cobra.Command{a.costCommand(), a.planCommand(), a.benchCommand()}
}
