package run

import "github.com/spf13/cobra"

// withLockCommand is run, by the name that a critical section has elsewhere.
func (a *app) withLockCommand() *cobra.Command {
	cmd := a.runCommand()
	cmd.Use = "with-lock NAME [flags] -- CMD [ARG...]"
	cmd.Short = "Run a critical section while holding a name: the same as run"
	cmd.Long = "This is `leasehold run`, under the name that a critical section has in configuration management.\n\n" + cmd.Long
	cmd.Example = "  leasehold with-lock deploy -w 5s -- ./deploy.sh  # wait for 5 s at most\n" +
		"  leasehold with-lock deploy -n -- ./deploy.sh     # exit with 75 if somebody else is at it"
	return cmd
}
