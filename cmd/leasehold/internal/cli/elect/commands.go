// Package elect stands for election, and runs a program while it leads.
package elect

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
)

// app is one call of the program.
type app struct{ *view.Viewer }

// Commands are the commands of this group.
func Commands(c *cli.App) []*cobra.Command {
	a := &app{view.New(c)}
	return []*cobra.Command{a.electCommand()}
}
