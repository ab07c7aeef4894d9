package setup

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  leasehold version -o json",
		Args:    cli.Want(),
		RunE: func(*cobra.Command, []string) error {
			v := cli.ReadBuild()
			if a.Output() != output.Table {
				return output.WriteJSON(a.Out, v, a.Output() == output.Lines)
			}
			line := cli.Name() + " " + v.Version
			if v.Revision != "" {
				line += fmt.Sprintf(" (%.12s, %s)", v.Revision, v.Built)
			}
			_, err := fmt.Fprintf(a.Out, "%s, %s, %s\nstores: %s\n", line, v.Go, v.Platform, strings.Join(v.Stores, ", "))
			return err
		},
	}
	a.Flag(cmd.Flags(), "output")
	return cmd
}
