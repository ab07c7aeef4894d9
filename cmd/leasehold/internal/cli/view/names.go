package view

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Named is the record of a name, and whether there is more about it: shares, or an election.
type Named struct {
	Rec  store.Record
	More bool
	Bad  error // why the record can't be read; nil when it can

	turns []turns.Turn // of a job, newest first
}

// Records returns the names under prefix, those too of which there is nothing but what is beside
// them. It returns what can be read, and the errors of what can't.
func Records(ctx context.Context, st store.Store, prefix string) (map[string]Named, error) {
	found := map[string]Named{}
	var errs []error
	prefixes := []string{prefix}
	// Otherwise what is beside them comes with the rest.
	if prefix != "" && !keyspace.Reserved(prefix) {
		prefixes = append(prefixes, roster.Prefix+prefix, kinds.Elections+prefix, turns.Prefix+prefix)
	}
	for _, p := range prefixes {
		for rec, err := range st.List(ctx, p) {
			if err != nil {
				errs = append(errs, unlessInvalid(err))
				var corrupt *store.CorruptError
				if errors.As(err, &corrupt) && strings.HasPrefix(corrupt.Key, prefix) {
					found[corrupt.Key] = Named{Rec: store.Record{Key: corrupt.Key}, More: found[corrupt.Key].More, Bad: err}
				}
				continue
			}
			if p == prefix {
				found[rec.Key] = Named{Rec: rec, More: found[rec.Key].More || rec.Kind.Shared(), turns: found[rec.Key].turns}
			}
			if name, ok := strings.CutPrefix(rec.Key, turns.Prefix); ok && !keyspace.Reserved(prefix) {
				n := found[name]
				n.Rec.Key = name
				if n.turns, err = turns.Read(rec); err != nil {
					errs = append(errs, err)
				}
				found[name] = n
			}
			for _, beside := range []string{roster.Prefix, kinds.Elections} {
				if name, ok := strings.CutPrefix(rec.Key, beside); ok && !keyspace.Reserved(prefix) {
					n := found[name]
					n.Rec.Key, n.More = name, true
					found[name] = n
				}
			}
		}
	}
	return found, errors.Join(errs...)
}

// CompleteNames offers a shell the names that there are.
func (a *Viewer) CompleteNames(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || driver.CheckPrefix(prefix) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Complete(cmd, func(ctx context.Context, st store.Store) (names []string) {
		found, _ := Records(ctx, st, prefix)
		for name := range found {
			if !keyspace.Reserved(name) {
				names = append(names, name)
			}
		}
		return names
	})
}

// unlessInvalid returns err unless a store has no room for what is asked about: then there is
// nothing.
func unlessInvalid(err error) error {
	if errors.Is(err, store.ErrInvalid) {
		return nil
	}
	return err
}
