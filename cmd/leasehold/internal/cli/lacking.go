//go:build lite || local

package cli

import "github.com/spf13/cobra"

// Why a build can't do something, with the fix.
const (
	NotInLite  = "this is leasehold-lite, which can't do that: install the full program, leasehold"
	NotInLocal = "this program was built with the tag local, which leaves that out: build it without the tag"
)

// Lacking returns a command that this build can't carry out, and that says why.
func Lacking(use, short, why string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short + " (not in this build)", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Usage("%s: %s", cmd.CommandPath(), why)
		},
	}
}
