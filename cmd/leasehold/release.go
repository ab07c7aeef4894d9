package main

import (
	"errors"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func (a *app) releaseCommand() *cobra.Command {
	var text string
	cmd := &cobra.Command{
		Use:   "release NAME --token N",
		Short: "Free a name in its holder's stead, at once",
		Long: "Free NAME if it is held under token N. Whoever does that vouches that the holder's work has stopped: the next one\n" +
			"starts at once. To end a hold whose holder may be at work, use `leasehold break`.",
		Example:           "  leasehold release billing --token 1795257194000",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := heldName(name); err != nil {
				return err
			}
			token, err := tokenFlag(name, text)
			if err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
				if _, err := lease.Free(cmd.Context(), st, name, lease.Eviction{Token: token, By: whoAmI()}); err != nil {
					return evictionError(err)
				}
				a.say("%s is free", name)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&text, "token", "", "the token of the term to end, as `leasehold show NAME` prints it")
	return cmd
}

// evictionError gives the exit code of a release or break that was refused.
func evictionError(err error) error {
	if errors.Is(err, lease.ErrNotCurrent) {
		return &exitError{exitNo, err}
	}
	return err
}

// whoAmI is user@host, for people.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return name + "@" + host
}
