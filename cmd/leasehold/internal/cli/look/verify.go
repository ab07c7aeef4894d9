package look

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify SEQUENCER",
		Short: "Exit with 0 if a sequencer (name, token and holder in one text) is genuine and current",
		Long: "Exit with 0 if the name of the sequencer is held by its holder under its token, and with 1 if it isn't. `leasehold run`\n" +
			"gives CMD its sequencer in LEASEHOLD_SEQUENCER. With --keys it has to be signed by one of them, as `run --keys` does; an\n" +
			"unsigned one, or one that somebody else has signed, is refused with 1. The answer may be outdated when it arrives; what\n" +
			"must not be done twice has to refuse old tokens itself.",
		Example: "  leasehold verify \"$LEASEHOLD_SEQUENCER\" || exit",
		Args:    cli.Want("SEQUENCER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.readSequencer(args[0])
			if errors.Is(err, fence.ErrForged) {
				return a.forged(err)
			}
			if err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				guard, err := fence.NewOnline(lock.Source(st), fence.OnlineOptions{})
				if err != nil {
					return err
				}
				if err := guard.Check(cmd.Context(), s); err != nil {
					return a.verdict(cmd.Context(), st, s, err)
				}
				dead, err := a.silent(cmd.Context(), st, s)
				if err != nil {
					return err
				}
				return a.verdict(cmd.Context(), st, s, dead)
			})
		},
	}
	a.Flag(cmd.Flags(), "output")
	a.Flag(cmd.Flags(), "keys")
	return cmd
}

// silent returns a *fence.StaleError if the term of a sequencer, which nobody has followed, is one
// of a holder that has shown no sign of life for its TTL.
func (a *app) silent(ctx context.Context, st store.Store, s fence.Sequencer) (dead, err error) {
	v, err := a.standing(ctx, st, s)
	if err != nil {
		return nil, err
	}
	a.KeepBook()
	expired := v.State == view.StateExpired && v.Token == s.Token
	if h := v.ShareUnder(s.Token); h != nil {
		expired = h.State == api.ShareExpired
	}
	if !expired {
		return nil, nil
	}
	return &fence.StaleError{Name: s.Name, Got: s.Token, Current: s.Token}, nil
}

// standing returns how the name of a sequencer stands.
func (a *app) standing(ctx context.Context, st store.Store, s fence.Sequencer) (view.View, error) {
	rec, err := store.Load(ctx, st, s.Name)
	// A slot's.
	if i := strings.LastIndexByte(s.Name, '#'); err == nil && rec.Version == "" && i > 0 {
		rec, err = store.Load(ctx, st, s.Name[:i])
	}
	if err != nil {
		return view.View{}, err
	}
	v, err := a.Look(ctx, st, rec)
	if err == nil && v.Token != s.Token {
		err = a.AddShares(ctx, st, &v, rec)
	}
	return v, err
}

// readSequencer reads a sequencer, which has to be signed by one of the keys if there are any.
func (a *app) readSequencer(text string) (s fence.Sequencer, err error) {
	keys, err := a.Keys()
	if err != nil {
		return s, err
	}
	if keys != nil {
		s, err = keys.Verify(text)
	} else {
		s, err = fence.ParseSequencer(text)
	}
	switch {
	case errors.Is(err, fence.ErrForged):
		return s, err
	case err != nil && keys == nil && strings.Count(text, ";") > 3:
		return s, cli.Usage("SEQUENCER: %w: --keys FILE", err)
	case err != nil:
		return s, cli.Usage("SEQUENCER: %w", err)
	}
	return s, nil
}

// forged says that a sequencer is not signed as it should be.
func (a *app) forged(err error) error {
	if a.Output() != output.Table {
		if err := output.WriteJSON(a.Out, api.Verification{Reason: cli.OneLine(err)}, a.Output() == output.Lines); err != nil {
			return err
		}
	}
	a.Say("%v", err)
	return cli.Exit(cli.ExitNo, nil)
}

func (a *app) verdict(ctx context.Context, st store.Store, s fence.Sequencer, err error) error {
	var stale *fence.StaleError
	if err != nil && !errors.As(err, &stale) {
		return err
	}
	if a.Output() != output.Table {
		v := api.Verification{Name: s.Name, Holder: s.Holder, Token: s.Token, Current: stale == nil}
		if stale != nil {
			now, err := a.standing(ctx, st, s)
			if err != nil {
				return err
			}
			v.Now, v.Reason = &now.Lease, cli.OneLine(stale)
		}
		if err := output.WriteJSON(a.Out, v, a.Output() == output.Lines); err != nil {
			return err
		}
	}
	if stale == nil {
		return nil
	}
	a.Say("%v", stale)
	return cli.Exit(cli.ExitNo, nil)
}
