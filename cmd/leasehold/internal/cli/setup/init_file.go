package setup

import (
	"cmp"
	"strconv"
	"strings"

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
			"use --store 'file:PATH?group=GROUP', which is refused while a user outside the group could put another file in its place.\n" +
			"That URL stands for PATH and --group here, too.",
		Example: "  groupadd leasehold && usermod -aG leasehold ada\n" +
			"  leasehold init file /var/lib/leasehold/leases.db --group leasehold\n" +
			"  export LEASEHOLD_STORE='file:/var/lib/leasehold/leases.db?group=leasehold'",
		Args: cli.Want("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			url, path, g, err := shared(args[0])
			switch {
			case err != nil:
			case g == nil && group == "":
				return cli.Usage("--group is missing: the group of users who share %s; for one user alone, a file needs no preparing", args[0])
			case g == nil:
				url, path, g, err = shared(args[0] + "?group=" + group + "&mode=" + mode)
			case cmd.Flags().Changed("group") || cmd.Flags().Changed("mode"):
				return cli.Usage("%s has the group already: leave out --group and --mode", args[0])
			}
			if err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			if err := file.Create(cmd.Context(), path, *g); err != nil {
				return err
			}
			a.Say("%s is there for group %s; now try: leasehold doctor --store '%s'", path, cmp.Or(group, strconv.Itoa(g.ID)), url)
			return nil
		},
	}
	cmd.Flags().StringVar(&group, "group", "", "the group, by name or number")
	cmd.Flags().StringVar(&mode, "mode", "0660", "of the files: 0660, or 0664 with which other users can read them")
	return cmd
}

// shared reads a path, or the URL of a file, and the group of its parameters, nil without them.
func shared(target string) (url open.URL, path string, g *file.Group, err error) {
	if url, err = open.Parse("file:" + strings.TrimPrefix(target, "file:")); err != nil {
		return url, "", nil, err
	}
	path, g, err = url.FileGroup()
	return url, path, g, err
}
