package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/step"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

func (a *app) releaseCommand() *cobra.Command {
	var text, file string
	cmd := &cobra.Command{
		Use:   "release (NAME --token N | --hold FILE)",
		Short: "Free a name: one's own by its file, or in its holder's stead",
		Long: "With --hold, release what `leasehold acquire` acquired, and remove FILE. A FILE that isn't there is no error: it was released before.\n" +
			"Exit codes then: 79 if the hold was lost before, 1 if FILE isn't that of the hold, 125 if the store doesn't answer or confirm.\n\n" +
			"Without it, free NAME if it is held under token N. The caller vouches that the holder's work has stopped: the next one\n" +
			"starts at once. To end a hold whose holder may be at work, use `leasehold break`.",
		Example:           "  leasehold release --hold deploy.hold\n  leasehold release billing --token 1795257194000",
		Args:              cli.Want("[NAME]"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if file != "" {
				return a.releaseHold(cmd.Context(), args, text, file)
			}
			if len(args) == 0 {
				return cli.Usage("NAME is missing: leasehold release NAME --token N, or leasehold release --hold FILE")
			}
			name := args[0]
			if err := cli.HeldName(name); err != nil {
				return err
			}
			token, err := cli.TokenFlag(name, text)
			if err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				t, err := a.target(cmd.Context(), st, name, token)
				if err == nil {
					_, err = drive.Free(cmd.Context(), st, a.Clock, t.key, drive.EndTerm{Token: t.token, By: cli.WhoAmI()})
				}
				if err != nil {
					return evictionError(err)
				}
				a.Say("%s is free", t.what())
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&text, "token", "", "the token of the term to end, as leasehold show NAME prints it")
	cmd.Flags().StringVar(&file, "hold", "", "the file that `acquire` made")
	return cmd
}

// releaseHold releases what acquire acquired.
func (a *app) releaseHold(ctx context.Context, args []string, token, file string) error {
	if token != "" {
		return cli.Usage("--hold and --token exclude each other: the file says which term is meant")
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	return step.Release(ctx, a.App, file, name)
}

// target is what an operator ends: that of a name, or of the session that keeps a share of it.
type target struct {
	view  view.View
	key   string
	token fence.Token
}

// what is what to call it.
func (t target) what() string {
	if t.key == t.view.Name {
		return t.view.Name
	}
	return "that share of " + t.view.Name
}

// target returns the term of a name, or a share of it, that is held under that token. The error
// matches [fence.ErrStale] when there is none.
func (a *app) target(ctx context.Context, st store.Store, name string, token fence.Token) (target, error) {
	rec, err := store.Load(ctx, st, name)
	if err != nil {
		return target{}, err
	}
	v, err := a.Look(ctx, st, rec)
	if err != nil || rec.Owner != "" && rec.Token == token {
		return target{v, name, token}, err
	}
	if err := a.AddShares(ctx, st, &v, rec); err != nil {
		return target{}, err
	}
	h := v.ShareUnder(token)
	switch {
	case h == nil && v.Holders != nil:
		return target{}, fmt.Errorf("%w: nobody holds a share of %s under token %d: `leasehold show %s` lists them", fence.ErrStale, name, token, name)
	case h == nil && rec.Token == 0:
		return target{}, cli.Exit(cli.ExitNo, fmt.Errorf("nobody has ever held %s: `leasehold list` shows what there is", name))
	case h == nil:
		return target{}, protocol.Stale(rec, token)
	}
	session, err := store.Load(ctx, st, h.Session)
	if err != nil {
		return target{}, err
	}
	v, err = a.Look(ctx, st, session)
	v.Name = name
	return target{v, h.Session, session.Token}, err
}

// evictionError gives the exit code of a release or break that was refused.
func evictionError(err error) error {
	if errors.Is(err, fence.ErrStale) {
		return cli.Exit(cli.ExitNo, err)
	}
	return err
}
