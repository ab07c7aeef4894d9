package setup

import (
	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/open"
)

func (a *app) initFileCommand() *cobra.Command {
	var group, mode string
	cmd := &cobra.Command{
		Use:   "file PATH --group GROUP",
		Short: "Make a file that several users of this machine share",
		Long: "Make the store PATH for all members of GROUP: its folder, of mode 2770, and the database and the files beside it, of mode\n" +
			"0660, whatever the umasks are. A store that is there already is given to the group; programs that use it go on.\n\n" +
			"The folder has to be for this store alone. Run this as root, or as a member of GROUP who owns the folder. Programs then\n" +
			"use --store 'file:PATH?group=GROUP', which is refused while a user outside the group could put another file in its place.",
		Example: "  groupadd leasehold && usermod -aG leasehold ada\n" +
			"  leasehold init file /var/lib/leasehold/leases.db --group leasehold\n" +
			"  export LEASEHOLD_STORE='file:/var/lib/leasehold/leases.db?group=leasehold'",
		Args: cli.Want("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if group == "" {
				return cli.Usage("--group is missing: the group of users who share %s; for one user alone, a file needs no preparing", args[0])
			}
			url, err := open.Parse("file:" + args[0] + "?group=" + group + "&mode=" + mode)
			if err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			path, g, err := url.FileGroup()
			if err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			if err := file.Create(cmd.Context(), path, *g); err != nil {
				return err
			}
			a.Say("%s is there for group %s; now try: leasehold doctor --store '%s'", path, group, url)
			return nil
		},
	}
	cmd.Flags().StringVar(&group, "group", "", "the group, by name or number")
	cmd.Flags().StringVar(&mode, "mode", "0660", "of the files: 0660, or 0664 with which other users can read them")
	return cmd
}
