package main

import (
	"errors"

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
				return a.verdict(s, guard.Check(cmd.Context(), s))
			})
		},
	}
	a.flag(cmd.Flags(), "output")
	return cmd
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
