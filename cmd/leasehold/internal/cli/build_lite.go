//go:build lite

package cli

import "github.com/spf13/cobra"

// Lite is whether this program was built with the tag lite. Then it links none of the large
// clients.
const Lite = true

// Lacking returns a command that this build can't carry out, and that says what to install.
func Lacking(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short + " (not in leasehold-lite)", Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Usage("%s: this is leasehold-lite, which can't do that: install the full program, leasehold", cmd.CommandPath())
		},
	}
}
