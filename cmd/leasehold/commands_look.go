package main

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
)

// lookCommands are the commands of this group.
func lookCommands(c *cli.App) []*cobra.Command {
	a := &app{Viewer: view.New(c)}
	return []*cobra.Command{a.listCommand(), a.showCommand(), a.watchCommand(), a.historyCommand(), a.checkCommand(), a.verifyCommand(), a.observeCommand(), a.candidatesCommand()}
}
