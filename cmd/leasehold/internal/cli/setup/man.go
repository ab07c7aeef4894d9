//go:build !lite || man

package setup

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// manCommand is for packagers of the program. The tag man brings it into the light build that
// writes the pages of the light package.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Example: "  leasehold man /usr/local/share/man/man1",
		Args:    cli.Want("DIR"),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same input makes the same pages
			header := &doc.GenManHeader{Title: "LEASEHOLD", Section: "1", Source: "Leasehold"}
			if os.Getenv("SOURCE_DATE_EPOCH") == "" { // otherwise the pages have that date
				now := a.Clock.Wall()
				header.Date = &now
			}
			return doc.GenManTree(root, header, args[0])
		},
	}
}
