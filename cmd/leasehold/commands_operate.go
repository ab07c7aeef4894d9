package main

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
)

// operateCommands are the commands of this group.
func operateCommands(c *cli.App) []*cobra.Command {
	a := &app{Viewer: view.New(c)}
	return []*cobra.Command{a.releaseCommand(), a.breakCommand(), a.slotsCommand(), a.forgetCommand(), a.sweepCommand(), a.handoffCommand(), a.pauseCommand(), a.unpauseCommand()}
}
