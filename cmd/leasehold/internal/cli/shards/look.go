package shards

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/shardview"
	"github.com/leasehold/leasehold/store"
)

func (a *app) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the spaces",
		Example: "  leasehold shard list\n  leasehold shard list -o jsonl | jq -r 'select(.unowned > 0) | .space'",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.list(cmd.Context(), st) })
		},
	}
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) list(ctx context.Context, st store.Store) error {
	all := []api.ShardSpace{}
	for s, err := range shardview.Spaces(ctx, st, func(string) bool { return true }) {
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	switch {
	case a.Output() != output.Table:
		return output.WriteList(a.Out, all, a.Output() == output.Lines)
	case len(all) == 0:
		a.Say("no spaces: the first `leasehold shard run SPACE --shards 0-63 -- CMD` makes one")
		return nil
	}
	name, kind, count := output.Column{Title: "SPACE", Cut: true}, output.Column{Title: "OF"}, output.Column{Title: "SLICES"}
	unowned, moving, assigner := output.Column{Title: "UNOWNED"}, output.Column{Title: "MOVING"}, output.Column{Title: "ASSIGNER", Cut: true}
	for _, s := range all {
		name.Cells = append(name.Cells, output.Plain(s.Space))
		of := "names"
		if s.Hashed {
			of = "hashes"
		}
		kind.Cells = append(kind.Cells, of)
		count.Cells = append(count.Cells, strconv.Itoa(s.Slices))
		unowned.Cells = append(unowned.Cells, strconv.Itoa(s.Unowned))
		moving.Cells = append(moving.Cells, strconv.Itoa(s.Moving))
		assigner.Cells = append(assigner.Cells, output.Plain(output.OrDash(s.Assigner)))
	}
	return output.WriteTable(a.Out, []output.Column{name, kind, count, unowned, moving, assigner}, output.Width(a.Out), nil)
}

func (a *app) lookupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lookup SPACE KEY",
		Short: "Say which worker owns a key, and under which token",
		Long: "Write the address of the worker that owns KEY, or its name where it gave no address. In a space of names KEY is the name of a slice;\n" +
			"in a hashed space it is any key. The exit code is 1 when nobody owns it. A lookup may be late: the worker itself, and the token where\n" +
			"it is written, say who owns it.",
		Example:           "  leasehold shard lookup cache user:4711\n  curl \"http://$(leasehold shard lookup cache user:4711)/user:4711\"",
		Args:              cli.Want("SPACE", "KEY"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.lookup(cmd.Context(), st, args[0], args[1]) })
		},
	}
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) lookup(ctx context.Context, st store.Store, space, key string) error {
	s, err := shardview.Lookup(ctx, st, space, key)
	if err != nil {
		return err
	}
	if a.Output() != output.Table {
		if err := output.WriteJSON(a.Out, s, a.Output() == output.Lines); err != nil {
			return err
		}
	}
	if s.Session == "" {
		a.Say("nobody owns %s of %s now", s.Slice, space)
		return cli.Exit(cli.ExitNo, nil)
	}
	if a.Output() != output.Table {
		return nil
	}
	where := s.Address
	if where == "" {
		where = s.Worker
	}
	_, err = fmt.Fprintln(a.Out, output.Plain(where))
	return err
}

func (a *app) historyCommand() *cobra.Command {
	var slice string
	cmd := &cobra.Command{
		Use:   "history SPACE",
		Short: "List the last moves of slices: from whom to whom, when and why",
		Long: "List the last changes of who owns what, the newest first: 16 for each record of the map, of which there is one for about 64 slices.\n" +
			"A slice was given when nobody had owned it, passed on or freed by its owner, and taken when the session of its owner was over. Times\n" +
			"are by the wall clock of who made the change.",
		Example:           "  leasehold shard history orders\n  leasehold shard history orders --slice 17 -o jsonl",
		Args:              cli.Want("SPACE"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.history(cmd.Context(), st, args[0], slice) })
		},
	}
	cmd.Flags().StringVar(&slice, "slice", "", "of this slice only")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) history(ctx context.Context, st store.Store, space, slice string) error {
	found, err := shardview.History(ctx, st, space)
	if err != nil {
		return err
	}
	all := []api.ShardChange{}
	for _, c := range found {
		if slice == "" || c.Slice == slice {
			all = append(all, c)
		}
	}
	switch {
	case a.Output() != output.Table:
		return output.WriteList(a.Out, all, a.Output() == output.Lines)
	case len(all) == 0:
		a.Say("nothing is known to have moved")
		return nil
	}
	at, id, what := output.Column{Title: "TIME"}, output.Column{Title: "SLICE"}, output.Column{Title: "WHAT"}
	from, to, token := output.Column{Title: "FROM", Cut: true}, output.Column{Title: "TO", Cut: true}, output.Column{Title: "TOKEN"}
	for _, c := range all {
		at.Cells = append(at.Cells, c.Time.Local().Format(time.DateTime))
		id.Cells = append(id.Cells, output.Plain(c.Slice))
		what.Cells = append(what.Cells, c.Why)
		from.Cells = append(from.Cells, output.Plain(output.OrDash(c.Before)))
		to.Cells = append(to.Cells, output.Plain(output.OrDash(c.Worker)))
		token.Cells = append(token.Cells, c.Token.String())
	}
	return output.WriteTable(a.Out, []output.Column{at, id, what, from, to, token}, output.Width(a.Out), nil)
}
