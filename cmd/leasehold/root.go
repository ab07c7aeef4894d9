package main

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/dr"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/elect"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/gate"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/id"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/look"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/operate"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/plan"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/run"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/serve"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/setup"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/shards"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/step"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/topics"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
)

// setUp is the group of what is there before and beside all else.
const setUp = "setup"

// rooms are the groups of commands, as the help lists them.
var rooms = []struct {
	id, title string
	commands  []func(*cli.App) []*cobra.Command
}{
	{"hold", "Hold", []func(*cli.App) []*cobra.Command{runCommands, step.Commands, elect.Commands, dr.Commands, shards.Commands, id.Commands}},
	{"look", "Look", []func(*cli.App) []*cobra.Command{look.Commands}},
	{"operate", "Operate", []func(*cli.App) []*cobra.Command{operate.Commands}},
	{"serve", "Run a service", []func(*cli.App) []*cobra.Command{serve.Commands, gate.Commands}},
	{setUp, "Set up", []func(*cli.App) []*cobra.Command{setup.Commands, plan.Commands}},
}

// runCommands are those of package run, which doesn't know what completes names: package early says
// why.
func runCommands(a *cli.App) []*cobra.Command { return run.Commands(a, view.New(a).CompleteNames) }

// root returns the command that all others are below. args are those of the program.
func root(a *cli.App, args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Says who owns what, and proves it",
		Long: "Leasehold runs commands under leases, so that two copies of a program never run at once, and shows who holds what.\n" +
			"Every hold has a token that rises with each change of ownership; what is guarded can refuse an older one.",
		Example: "  leasehold run billing -- ./billing-job --full   # one at a time; a second one waits\n" +
			"  leasehold list                                  # who holds what",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch version, _ := cmd.Flags().GetBool("version"); {
			case version && len(args) > 0:
				return cli.Usage("--version %s: want nothing else with it", args[0])
			case version:
				return showVersion(cmd)
			case len(args) == 0:
				return cmd.Help()
			}
			return unknownCommand(cmd, args)
		},
		PersistentPreRunE: a.Begin,
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, args, err) })
	root.Flags().Bool("version", false, "show the version of this program, as the command version does")
	for _, name := range cli.Everywhere {
		a.Flag(root.PersistentFlags(), name)
	}
	for _, r := range rooms {
		root.AddGroup(&cobra.Group{ID: r.id, Title: r.title + ":"})
		for _, commands := range r.commands {
			for _, cmd := range commands(a) {
				cmd.GroupID = r.id
				root.AddCommand(cmd)
			}
		}
	}
	judged(root)
	root.SetHelpCommand(topics.Help(root))
	root.SetHelpCommandGroupID(setUp)
	root.SetCompletionCommandGroupID(setUp)
	return root
}

// showVersion runs the command of that name.
func showVersion(root *cobra.Command) error {
	version, _, err := root.Find([]string{"version"})
	if err != nil {
		return err
	}
	return version.RunE(version, nil)
}
