// Package run runs a program while it holds a name.
package run

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// app is one call of the program.
type app struct {
	*cli.App
	complete cobra.CompletionFunc // of NAME
}

// Commands are the commands of this group. complete completes the name of a lease; it may be nil.
func Commands(c *cli.App, complete cobra.CompletionFunc) []*cobra.Command {
	a := &app{c, complete}
	return []*cobra.Command{a.runCommand(), a.withLockCommand()}
}

// isNumber reports whether a text is a whole number, such as nobody would call a lease.
func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// runArgs explains what is missing between NAME and CMD.
func runArgs(cmd *cobra.Command, args []string) error {
	dash, path := cmd.ArgsLenAtDash(), cmd.CommandPath()
	switch {
	case len(args) == 0:
		return cli.Usage("NAME and CMD are missing: %s NAME -- CMD", path)
	case dash < 0 && len(args) == 1:
		return cli.Usage("CMD is missing: %s %s -- CMD", path, args[0])
	case dash < 0:
		return cli.Usage("a double dash is missing before CMD: %s %s -- %s", path, args[0], strings.Join(args[1:], " "))
	case dash == 0:
		return cli.Usage("NAME is missing before the double dash: %s NAME -- %s", path, strings.Join(args, " "))
	case dash > 1 && cmd.Flags().Changed("tick") && len(strings.Fields(cmd.Flag("tick").Value.String())) < 5 && !strings.HasPrefix(cmd.Flag("tick").Value.String(), "@"):
		return cli.Usage("--tick %s: it is one part of an expression: put all five in quotes, as in --tick '0 3 * * *'", cmd.Flag("tick").Value)
	case dash > 1 && cmd.Flags().Changed("no-wait") && isNumber(args[0]):
		return cli.Usage("-n %s: -n doesn't wait, and takes no value: to let %s hold the name at a time write --slots %s", args[0], args[0], args[0])
	case dash > 1:
		return cli.Usage("%q is one argument too many before the double dash: %s NAME -- CMD", args[1], path)
	case len(args) == 1:
		return cli.Usage("CMD is missing after the double dash: %s %s -- CMD", path, args[0])
	}
	return nil
}
