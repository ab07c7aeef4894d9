package main

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
)

// setupCommands are the commands of this group.
func setupCommands(c *cli.App) []*cobra.Command {
	a := &app{Viewer: view.New(c)}
	return []*cobra.Command{a.initCommand(), a.doctorCommand(), a.configCommand(), a.versionCommand(), a.manCommand()}
}
