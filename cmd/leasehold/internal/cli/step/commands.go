// Package step holds names for scripts: one process acquires, others renew and release, by a file
// that proves the hold.
package step

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
	return []*cobra.Command{a.acquireCommand(), a.renewCommand(), a.lockCommand(), a.unlockCommand()}
}
