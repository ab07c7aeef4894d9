package main

import (
	"slices"

	"github.com/spf13/cobra"

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
				return usage("%q is no command of config: write leasehold config show", args[0])
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
		Args:    want(),
		RunE: func(*cobra.Command, []string) error {
			var all []shownSetting
			for _, v := range a.values {
				all = append(all, shownSetting{v.Setting.Name, open.Redact(v.Text), string(v.Source.Kind), v.Source.Where})
			}
			if a.output() != outputTable {
				return writeList(a.out, all, a.output() == outputLines)
			}
			name, value, source := column{title: "SETTING"}, column{title: "VALUE"}, column{title: "FROM"}
			for _, v := range a.values {
				name.cells = append(name.cells, v.Setting.Name)
				value.cells = append(value.cells, orDash(open.Redact(v.Text)))
				source.cells = append(source.cells, v.Source.String())
			}
			return writeTable(a.out, []column{name, value, source}, 0, nil)
		},
	}
	for _, s := range settings() {
		if !slices.Contains(everywhere, s.Name) {
			a.flag(show.Flags(), s.Name)
		}
	}
	cmd.AddCommand(show)
	return cmd
}
