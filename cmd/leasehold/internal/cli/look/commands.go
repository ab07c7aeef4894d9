// Package look shows who holds what, and changes nothing.
package look

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
	return []*cobra.Command{a.listCommand(), a.showCommand(), a.watchCommand(), a.historyCommand(), a.checkCommand(), a.verifyCommand(), a.observeCommand(), a.candidatesCommand()}
}
