package cli

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
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
	if err := store.CheckKey(name); err != nil {
		return BadName("NAME", err)
	}
	return nil
}

// HeldName checks a NAME that is to be held, or whose hold is to be ended.
func HeldName(name string) error {
	if lease.Reserved(name) {
		return Usage("NAME %q: want one that does not begin with a dot: those are Leasehold's own", name)
	}
	return NameArg(name)
}

// CompleteTimeout bounds what a shell waits for when it completes a name.
const CompleteTimeout = time.Second

// PoolArg checks a POOL.
func PoolArg(pool string) error {
	if err := store.CheckKey(pool); err != nil {
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
