package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  leasehold version -o json",
		Args:    want(),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if a.output() != output.Table {
				return output.WriteJSON(a.out, v, a.output() == output.Lines)
			}
			line := "leasehold " + v.Version
			if v.Revision != "" {
				line += fmt.Sprintf(" (%.12s, %s)", v.Revision, v.Built)
			}
			_, err := fmt.Fprintf(a.out, "%s, %s, %s\nstores: %s\n", line, v.Go, v.Platform, strings.Join(v.Stores, ", "))
			return err
		},
	}
	a.flag(cmd.Flags(), "output")
	return cmd
}
