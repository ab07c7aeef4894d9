package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// verified is what verify says in JSON.
type verified struct {
	Name         string      `json:"name"`
	Holder       string      `json:"holder"`
	Token        fence.Token `json:"token"`
	Current      bool        `json:"current"`
	NewestToken  fence.Token `json:"newest_token"`
	NewestHolder string      `json:"newest_holder,omitempty"`
}

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify SEQUENCER",
		Short: "Say by its exit code whether a sequencer is of the current term",
		Long: "Exit with 0 if the name of the sequencer is held by its holder under its token, and with 1 if it isn't. `leasehold run`\n" +
			"gives CMD its sequencer in LEASEHOLD_SEQUENCER. The answer may be outdated when it arrives; what must not be done twice has\n" +
			"to refuse old tokens itself.",
		Example: "  leasehold verify \"$LEASEHOLD_SEQUENCER\" || exit",
		Args:    want("SEQUENCER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := fence.ParseSequencer(args[0])
			if err != nil {
				return usage("SEQUENCER: %w", err)
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
				guard, err := fence.NewOnline(lease.Source(st), fence.OnlineOptions{})
				if err != nil {
					return err
				}
				err = guard.Check(cmd.Context(), s)
				if errors.Is(err, fence.ErrStale) {
					err = a.verifyShare(cmd.Context(), st, s, err)
				}
				return a.verdict(s, err)
			})
		},
	}
	a.flag(cmd.Flags(), "output")
	return cmd
}

// verifyShare returns nil if s is of a share that is held, and otherwise err. That of a semaphore is called NAME#SLOT.
func (a *app) verifyShare(ctx context.Context, st store.Store, s fence.Sequencer, err error) error {
	names := []string{s.Name}
	if i := strings.LastIndex(s.Name, "#"); i > 0 {
		names = append(names, s.Name[:i])
	}
	for _, name := range names {
		v := view{Name: name, State: stateFree}
		if failed := a.addShares(ctx, st, &v); failed != nil {
			return failed
		}
		stale := &fence.StaleError{Name: s.Name, Got: s.Token, Current: v.Token}
		for _, h := range v.Holders {
			own := name
			if h.Slot != nil {
				own += fmt.Sprintf("#%d", *h.Slot)
			}
			if own != s.Name || !h.held() {
				continue
			}
			if h.Token == s.Token && h.Holder == s.Holder {
				return nil
			}
			stale.Holder, stale.Current = h.Holder, h.Token
		}
		if v.Kind == kindSemaphore || v.Kind == kindShared {
			err = stale
		}
	}
	return err
}

func (a *app) verdict(s fence.Sequencer, err error) error {
	var stale *fence.StaleError
	if err != nil && !errors.As(err, &stale) {
		return err
	}
	v := verified{Name: s.Name, Holder: s.Holder, Token: s.Token, Current: err == nil, NewestToken: s.Token, NewestHolder: s.Holder}
	if stale != nil {
		v.NewestToken, v.NewestHolder = stale.Current, stale.Holder
	}
	if a.output() != outputTable {
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
