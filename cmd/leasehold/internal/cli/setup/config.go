package setup

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/store/open"
)

// shownSetting is a setting in JSON.
type shownSetting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, env, file or default
	Where  string `json:"where,omitempty"`
}

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("%q is no command of config: write leasehold config show", args[0])
			}
			return cmd.Help()
		},
	}
	show := &cobra.Command{
		Use:   "show",
		Short: "Show each setting, its value, and where that was said",
		Long: "Show each setting, its value, and where that was said. A flag beats the environment, which beats the configuration\n" +
			"file, which beats the default. The file is $LEASEHOLD_CONFIG, or leasehold/config.yaml in $XDG_CONFIG_HOME (~/.config).",
		Example: "  LEASEHOLD_TTL=30s leasehold config show",
		Args:    cli.Want(),
		RunE: func(*cobra.Command, []string) error {
			var all []shownSetting
			for _, v := range a.Values {
				all = append(all, shownSetting{v.Setting.Name, open.Redact(v.Text), string(v.Source.Kind), v.Source.Where})
			}
			if a.Output() != output.Table {
				return output.WriteList(a.Out, all, a.Output() == output.Lines)
			}
			name, value, source := output.Column{Title: "SETTING"}, output.Column{Title: "VALUE"}, output.Column{Title: "FROM"}
			for _, v := range a.Values {
				name.Cells = append(name.Cells, v.Setting.Name)
				value.Cells = append(value.Cells, output.OrDash(open.Redact(v.Text)))
				source.Cells = append(source.Cells, v.Source.String())
			}
			return output.WriteTable(a.Out, []output.Column{name, value, source}, 0, nil)
		},
	}
	for _, s := range cli.Settings() {
		if !slices.Contains(cli.Everywhere, s.Name) {
			a.Flag(show.Flags(), s.Name)
		}
	}
	cmd.AddCommand(show)
	return cmd
}
