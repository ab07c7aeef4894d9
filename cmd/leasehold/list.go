package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func (a *app) listCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List names and who holds them",
		Long: "List the names that begin with PREFIX, or all, and who holds them. Names that begin with a dot are Leasehold's own\n" +
			"(the records of sessions); -a shows them too.",
		Example:           "  leasehold list\n  leasehold list backup/ -o json | jq '.[] | select(.state == \"held\") | .holder'",
		Args:              want("[PREFIX]"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			if err := driver.CheckPrefix(prefix); err != nil {
				return badName("PREFIX", err)
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
				return a.list(cmd.Context(), st, prefix, all || lease.Reserved(prefix))
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also names that begin with a dot")
	a.flag(cmd.Flags(), "output")
	return cmd
}

// mostKept is of how many names a list is kept for the next look: a file is written for each that was renewed, and the folder's are bounded.
const mostKept = 100

// list writes what can be read; a record that can't be is reported after that.
func (a *app) list(ctx context.Context, st store.Store, prefix string, all bool) error {
	views, err := a.views(ctx, st, prefix, all)
	if len(views) <= mostKept {
		a.keepBook()
	}
	if err != nil && len(views) == 0 {
		return err
	}
	switch {
	case a.output() != outputTable:
		err = errors.Join(writeList(a.out, views, a.output() == outputLines), err)
	case len(views) == 0:
		a.say("no names%s", beginning(prefix))
	default:
		err = errors.Join(writeTable(a.out, listColumns(views, a.clk.Wall()), width(a.out), painter(a.out)), err)
	}
	return err
}

func beginning(prefix string) string {
	if prefix == "" {
		return " have been held in this store"
	}
	return fmt.Sprintf(" that begin with %q have been held in this store", prefix)
}

// views returns what there is under prefix, by name.
func (a *app) views(ctx context.Context, st store.Store, prefix string, all bool) ([]view, error) {
	var views []view
	var errs []error
	records, err := recordsUnder(ctx, st, prefix)
	if err != nil {
		errs = append(errs, err)
	}
	for _, r := range records {
		if !all && lease.Reserved(r.rec.Key) {
			continue
		}
		if r.bad != nil {
			views = append(views, view{Lease: api.Lease{Name: r.rec.Key, State: stateUnreadable, Problem: api.ProblemOf(r.bad)}})
			continue
		}
		look := a.look
		if r.more {
			look = a.full
		}
		v, err := look(ctx, st, r.rec)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(x, y view) int { return strings.Compare(x.Name, y.Name) })
	return views, errors.Join(errs...)
}

// named is the record of a name, and whether there is more about it: shares, or an election.
type named struct {
	rec  store.Record
	more bool
	bad  error // why the record can't be read; nil when it can
}

// recordsUnder returns the names under prefix, those too of which there is nothing but what is beside them. It returns what can be read,
// and the errors of what can't.
func recordsUnder(ctx context.Context, st store.Store, prefix string) (map[string]named, error) {
	found := map[string]named{}
	var errs []error
	prefixes := []string{prefix}
	if prefix != "" && !lease.Reserved(prefix) { // otherwise what is beside them comes with the rest
		prefixes = append(prefixes, lock.KeyPrefix+prefix, election.KeyPrefix+prefix)
	}
	for _, p := range prefixes {
		for rec, err := range st.List(ctx, p) {
			if err != nil {
				errs = append(errs, unlessInvalid(err))
				var corrupt *store.CorruptError
				if errors.As(err, &corrupt) && strings.HasPrefix(corrupt.Key, prefix) {
					found[corrupt.Key] = named{rec: store.Record{Key: corrupt.Key}, more: found[corrupt.Key].more, bad: err}
				}
				continue
			}
			if p == prefix {
				found[rec.Key] = named{rec: rec, more: found[rec.Key].more || rec.Kind.Shared()}
			}
			for _, beside := range []string{lock.KeyPrefix, election.KeyPrefix} {
				if name, ok := strings.CutPrefix(rec.Key, beside); ok && !lease.Reserved(prefix) {
					n := found[name]
					n.rec.Key, n.more = name, true
					found[name] = n
				}
			}
		}
	}
	return found, errors.Join(errs...)
}

func listColumns(views []view, now time.Time) []column {
	name, state, holder := column{title: "NAME", cut: true}, column{title: "STATE"}, column{title: "HOLDER", cut: true}
	token, since, expires := column{title: "TOKEN"}, column{title: "SINCE"}, column{title: "EXPIRES"}
	for _, v := range views {
		name.cells = append(name.cells, v.Name)
		state.cells = append(state.cells, v.shown())
		holder.cells = append(holder.cells, v.holders())
		token.cells = append(token.cells, v.Token.String())
		long, short := "-", "-"
		if v.since != nil {
			short = ago(*v.since, now)
			long = fmt.Sprintf("%s (%s)", at(*v.since, now), short)
		}
		since.cells, since.short = append(since.cells, long), append(since.short, short)
		in := "-"
		switch {
		case v.silent > 0 && v.State == stateExpired:
			in = "silent " + roughly(v.silent)
		case v.silent > 0:
			in = "in " + roughly(v.expiresIn) + ", silent " + roughly(v.silent)
		case v.ExpiresIn != nil:
			in = "in " + roughly(v.expiresIn)
		}
		expires.cells, expires.short = append(expires.cells, in), append(expires.short, strings.TrimPrefix(in, "in "))
	}
	// The holder gives way before the name.
	return []column{name, state, token, since, expires, holder}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// badName explains a name that no store would take.
func badName(what string, err error) error {
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return usage("%s %s: want %s", what, invalid.Value, invalid.Want)
	}
	return err
}

// nameArg checks a NAME that is only looked at.
func nameArg(name string) error {
	if err := driver.CheckKey(name); err != nil {
		return badName("NAME", err)
	}
	return nil
}

// heldName checks a NAME that is to be held, or whose hold is to be ended.
func heldName(name string) error {
	if lease.Reserved(name) {
		return usage("NAME %q: want one that does not begin with a dot: those are Leasehold's own", name)
	}
	return nameArg(name)
}

// completeTimeout bounds what a shell waits for when it completes a name.
const completeTimeout = time.Second

func (a *app) completeNames(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.configure(cmd) != nil || driver.CheckPrefix(prefix) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := clock.WithTimeout(cmd.Context(), a.clk, completeTimeout)
	defer cancel()
	var names []string
	_ = a.withStore(ctx, false, func(st store.Store) error { // a shell has no use for the error
		found, _ := recordsUnder(ctx, st, prefix)
		for name := range found {
			if !lease.Reserved(name) {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
