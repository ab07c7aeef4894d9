package main

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

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

// badName explains a name that no store would take.
func badName(what string, err error) error {
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return usage("%s %s: want %s", what, invalid.Value, invalid.Want)
	}
	return err
}

// nameArg checks a NAME that is only looked at.
func nameArg(name string) error {
	if err := store.CheckKey(name); err != nil {
		return badName("NAME", err)
	}
	return nil
}

// heldName checks a NAME that is to be held, or whose hold is to be ended.
func heldName(name string) error {
	if lease.Reserved(name) {
		return usage("NAME %q: want one that does not begin with a dot: those are Leasehold's own", name)
	}
	return nameArg(name)
}

// completeTimeout bounds what a shell waits for when it completes a name.
const completeTimeout = time.Second
