package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify SEQUENCER",
		Short: "Say by its exit code whether a sequencer is of the current term",
		Long: "Exit with 0 if the name of the sequencer is held by its holder under its token, and with 1 if it isn't. `leasehold run`\n" +
			"gives CMD its sequencer in LEASEHOLD_SEQUENCER. With --keys it has to be signed by one of them, as `run --keys` does; an\n" +
			"unsigned one, or one that somebody else has signed, is refused with 1. The answer may be outdated when it arrives; what\n" +
			"must not be done twice has to refuse old tokens itself.",
		Example: "  leasehold verify \"$LEASEHOLD_SEQUENCER\" || exit",
		Args:    want("SEQUENCER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.readSequencer(args[0])
			if errors.Is(err, fence.ErrForged) {
				return a.forged(err)
			}
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
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
	a.flag(cmd.Flags(), "output")
	a.flag(cmd.Flags(), "keys")
	return cmd
}

// silent returns a *fence.StaleError if the term of a sequencer, which nobody has followed, is one of a holder that has shown no sign of
// life for its TTL.
func (a *app) silent(ctx context.Context, st store.Store, s fence.Sequencer) (dead, err error) {
	v, err := a.standing(ctx, st, s)
	if err != nil {
		return nil, err
	}
	a.keepBook()
	expired := v.State == stateExpired && v.Token == s.Token
	if h := v.shareUnder(s.Token); h != nil {
		expired = h.State == api.ShareExpired
	}
	if !expired {
		return nil, nil
	}
	return &fence.StaleError{Name: s.Name, Got: s.Token, Current: s.Token}, nil
}

// standing returns how the name of a sequencer stands.
func (a *app) standing(ctx context.Context, st store.Store, s fence.Sequencer) (view, error) {
	rec, err := store.Load(ctx, st, s.Name)
	if i := strings.LastIndexByte(s.Name, '#'); err == nil && rec.Version == "" && i > 0 { // a slot's
		rec, err = store.Load(ctx, st, s.Name[:i])
	}
	if err != nil {
		return view{}, err
	}
	v, err := a.look(ctx, st, rec)
	if err == nil && v.Token != s.Token {
		err = a.addShares(ctx, st, &v, rec)
	}
	return v, err
}

// readSequencer reads a sequencer, which has to be signed by one of the keys if there are any.
func (a *app) readSequencer(text string) (s fence.Sequencer, err error) {
	keys, err := a.keys()
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
		return s, usage("SEQUENCER: %w: --keys FILE", err)
	case err != nil:
		return s, usage("SEQUENCER: %w", err)
	}
	return s, nil
}

// forged says that a sequencer is not signed as it should be.
func (a *app) forged(err error) error {
	if a.output() != outputTable {
		if err := writeJSON(a.out, api.Verification{Reason: oneLine(err)}, a.output() == outputLines); err != nil {
			return err
		}
	}
	a.say("%v", err)
	return &exitError{code: exitNo}
}

func (a *app) verdict(ctx context.Context, st store.Store, s fence.Sequencer, err error) error {
	var stale *fence.StaleError
	if err != nil && !errors.As(err, &stale) {
		return err
	}
	if a.output() != outputTable {
		v := api.Verification{Name: s.Name, Holder: s.Holder, Token: s.Token, Current: stale == nil}
		if stale != nil {
			now, err := a.standing(ctx, st, s)
			if err != nil {
				return err
			}
			v.Now, v.Reason = &now.Lease, oneLine(stale)
		}
		if err := writeJSON(a.out, v, a.output() == outputLines); err != nil {
			return err
		}
	}
	if stale == nil {
		return nil
	}
	a.say("%v", stale)
	return &exitError{code: exitNo}
}
