// Package topics has the short texts of `leasehold help TOPIC`, for readers without the pages.
package topics

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

//go:embed text/*.txt
var texts embed.FS

// Names are the topics, in alphabetical order.
func Names() (all []string) {
	entries, _ := texts.ReadDir("text") // it is embedded
	for _, e := range entries {
		all = append(all, strings.TrimSuffix(e.Name(), ".txt"))
	}
	return all
}

// Text returns what there is to read about a topic, or false.
func Text(name string) (string, bool) {
	b, err := texts.ReadFile("text/" + name + ".txt")
	return strings.Replace(string(b), "\nSTORES\n", stores(), 1), err == nil
}

// optional is a part of a URL that may be left out, without others in it.
var optional = regexp.MustCompile(`\[[^][]*\]`)

// stores lists those of this program, a line each: the shortest URL, and what it is.
func stores() string {
	var b strings.Builder
	for _, s := range cli.Stores() {
		form := s.Form
		for optional.MatchString(form) {
			form = optional.ReplaceAllString(form, "")
		}
		fmt.Fprintf(&b, "\n  %-28s  %s", form, s.Doc)
	}
	return b.String() + "\n"
}

// Help returns the command help, which explains a command of root's, or a topic.
func Help(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Explain a command or a topic",
		Long: "Explain a command, as COMMAND --help does, or a topic, without a network.\n" +
			"The topics are: " + strings.Join(Names(), ", ") + ".",
		Example: "  leasehold help run\n  leasehold help exit-codes",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := Names()
			for _, cmd := range root.Commands() {
				if cmd.IsAvailableCommand() {
					names = append(names, cmd.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		// It reads no settings.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			return help(cmd.OutOrStdout(), root, args)
		},
	}
}

func help(out io.Writer, root *cobra.Command, args []string) error {
	if len(args) == 0 {
		if err := root.Help(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "\nTopics, for `leasehold help TOPIC`:\n  %s\n", strings.Join(Names(), ", "))
		return err
	}
	if cmd, rest, err := root.Find(args); err == nil && cmd != root && len(rest) == 0 {
		cmd.InitDefaultHelpFlag()
		return cmd.Help()
	}
	text, ok := Text(args[0])
	if !ok || len(args) > 1 {
		var names []string
		for _, cmd := range root.Commands() {
			names = append(names, cmd.Name())
		}
		near := Near(args[0], append(names, Names()...))
		return cli.Usage("%q is no command and no topic: did you mean %s? `leasehold help` lists both", strings.Join(args, " "), strings.Join(near, ", "))
	}
	_, err := io.WriteString(out, text)
	return err
}

// Near returns the three names that are the most like what was typed.
func Near(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	far := func(name string) int {
		d := distance(typed, name)
		if strings.HasPrefix(name, typed) || strings.HasPrefix(typed, name) {
			d -= len(typed)
		}
		return d
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(far(a), far(b)) })
	return names[:min(3, len(names))]
}

// distance is how many letters have to be changed, put in or taken out.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
