package cli

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// TokenFlag reads --token.
func TokenFlag(name, text string) (fence.Token, error) {
	if text == "" {
		return 0, Usage("--token is missing: `leasehold show %s` prints the current one", name)
	}
	token, err := fence.ParseToken(text)
	if err != nil {
		return 0, Usage("--token: %w", err)
	}
	return token, nil
}

// BadName explains a name that no store would take.
func BadName(what string, err error) error {
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return Usage("%s %s: want %s", what, invalid.Value, invalid.Want)
	}
	return err
}

// NameArg checks a NAME that is only looked at.
func NameArg(name string) error {
	if err := driver.CheckKey(name); err != nil {
		return BadName("NAME", err)
	}
	return nil
}

// HeldName checks a NAME that is to be held, or whose hold is to be ended.
func HeldName(name string) error {
	if keyspace.Reserved(name) {
		return Usage("NAME %q: want one that does not begin with a dot: those are Leasehold's own", name)
	}
	return NameArg(name)
}

// completeTimeout bounds what a shell waits for when it completes a name.
const completeTimeout = time.Second

// Complete offers a shell what f finds in the store. A shell has no use for an error.
func (a *App) Complete(cmd *cobra.Command, f func(context.Context, store.Store) []string) ([]string, cobra.ShellCompDirective) {
	if a.Configure(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.hinted = true // nothing is said on the line that is typed
	ctx, cancel := clock.WithTimeout(cmd.Context(), a.Clock, completeTimeout)
	defer cancel()
	var names []string
	_ = a.WithStore(ctx, false, func(st store.Store) error {
		names = f(ctx, st)
		return nil
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// HostOf returns the host of an address to listen on, "" for all; flag is where it was given.
func HostOf(flag, addr string) (string, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", Usage("--%s %s: want HOST:PORT, or :PORT for all addresses", flag, addr)
	}
	return host, nil
}

// PoolArg checks a POOL.
func PoolArg(pool string) error {
	if err := driver.CheckKey(pool); err != nil {
		return BadName("POOL", err)
	}
	return nil
}

// LayoutArg returns the layout that a text names or describes.
func LayoutArg(text string) (flake.Layout, error) {
	l, err := flake.ParseLayout(text)
	if err != nil {
		return flake.Layout{}, Exit(ExitUsage, err)
	}
	return l, nil
}
