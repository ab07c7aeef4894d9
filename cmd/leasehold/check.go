package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

func (a *app) checkCommand() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "check NAME --token N",
		Short: "Say by its exit code whether a token is that of the current term",
		Long: "Exit with 0 if NAME is held under token N, and with 1 if it isn't: another term has begun, or the hold was released,\n" +
			"broken, or has expired. Inside `leasehold run` the token need not be given. The answer may be outdated when it arrives;\n" +
			"what must not be done twice has to refuse old tokens itself.",
		Example:           "  leasehold check billing --token \"$LEASEHOLD_TOKEN\" || exit",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := nameArg(name); err != nil {
				return err
			}
			if text == "" && os.Getenv(envName) == name {
				text = os.Getenv(envToken)
			}
			token, err := tokenFlag(name, text)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
				st = store.Confirmed(st) // a script acts on the answer
				rec, err := store.Load(cmd.Context(), st, name)
				if err != nil {
					return err
				}
				v, err := a.look(cmd.Context(), st, rec)
				if err == nil && !v.under(token) {
					err = a.addShares(cmd.Context(), st, &v, rec)
				}
				if err != nil {
					return err
				}
				a.keepBook()
				return a.check(v, token)
			})
		},
	}
	cmd.Flags().StringVar(&text, "token", "", "the token to check")
	a.flag(cmd.Flags(), "output")
	return cmd
}

// under reports whether it, or a share of it, is held under that token.
func (v view) under(token fence.Token) bool {
	return v.State == stateHeld && v.Holders == nil && v.Token == token || held(v.shareUnder(token))
}

// shareUnder returns the share with that token, or nil.
func (v view) shareUnder(token fence.Token) *shareView {
	for i, h := range v.Holders {
		if h.Token == token {
			return &v.Holders[i]
		}
	}
	return nil
}

// held reports whether there is a share, and it is held.
func held(s *shareView) bool { return s != nil && s.State == api.ShareHeld }

func (a *app) check(v view, token fence.Token) error {
	d := api.Verification{Name: v.Name, Token: token, Current: v.under(token)}
	switch {
	case d.Current:
		d.Holder = v.Holder
		if h := v.shareUnder(token); h != nil {
			d.Holder = h.Holder
		}
	case v.Token == 0:
		d.Reason = "nobody has ever held it"
	case v.Token == token:
		d.Reason = "that term is over or ending: " + string(v.State)
	default:
		d.Reason = fmt.Sprintf("the newest is %d", v.Token)
	}
	if !d.Current {
		d.Now = &v.Lease
	}
	if a.output() != outputTable {
		if err := writeJSON(a.out, d, a.output() == outputLines); err != nil {
			return err
		}
	}
	if d.Current {
		return nil
	}
	a.say("%s: %d is not the current token: %s", v.Name, token, d.Reason)
	return &exitError{code: exitNo}
}

// tokenFlag reads --token.
func tokenFlag(name, text string) (fence.Token, error) {
	if text == "" {
		return 0, usage("--token is missing: `leasehold show %s` prints the current one", name)
	}
	token, err := fence.ParseToken(text)
	if err != nil {
		return 0, usage("--token: %w", err)
	}
	return token, nil
}
