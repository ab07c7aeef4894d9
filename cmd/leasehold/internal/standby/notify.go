package standby

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
)

// The roles, as files, hooks and metrics name them.
const (
	roleActive  = "active"
	rolePassive = "passive"
)

// Notify tells a program, which runs all the time, what its role is. Those that are set are used,
// in this order.
type Notify struct {
	// Its first line is the role, the second one the token while active.
	File   string
	Signal func(active bool) // nil for none
	// Path of an executable that is called with the role as its argument.
	Hook string
	Env  func(*admiral.Term) []string // of the hook
	// How long a hook may take; it has to fit what the checker's Early leaves.
	Limit time.Duration
	Say   func(format string, args ...any)
}

// Start says that this instance is passive, as it is before it has ever been active. No signal is
// sent: the program may not be ready for one yet.
func (n *Notify) Start(ctx context.Context) error {
	if err := n.file(rolePassive, nil); err != nil {
		return err
	}
	return n.hook(ctx, rolePassive, nil)
}

// Work is what the checker runs while this instance is active: it tells the program, waits for the
// end of the term, and tells it again. The lease is released only after that. A hook that fails to
// make the program active is an error, by which the lease goes to another instance; one that fails
// to make it passive is said.
func (n *Notify) Work(term admiral.Term) error {
	err := n.tell(term.Context(), true, term)
	if err == nil {
		<-term.Context().Done()
	}
	if term.Context().Err() != nil { // which may be why the hook failed
		err = nil
	}
	n.passive(term)
	return err
}

func (n *Notify) passive(term admiral.Term) {
	if err := n.tell(context.Background(), false, term); err != nil {
		n.Say("telling that this instance is passive: %v", err)
	}
}

// tell goes on after a failure when it is to make the program passive.
func (n *Notify) tell(ctx context.Context, active bool, term admiral.Term) error {
	role, token := rolePassive, &term
	if active {
		role = roleActive
	} else {
		token = nil
	}
	err := n.file(role, token)
	if err != nil && active {
		return err
	}
	if n.Signal != nil {
		n.Signal(active)
	}
	return errors.Join(err, n.hook(ctx, role, &term))
}

// file replaces the file as a whole, so that nobody reads half of it.
func (n *Notify) file(role string, term *admiral.Term) error {
	if n.File == "" {
		return nil
	}
	text := role + "\n"
	if term != nil {
		text += term.Token().String() + "\n"
	}
	f, err := os.CreateTemp(filepath.Dir(n.File), "."+filepath.Base(n.File)+".*")
	if err != nil {
		return fmt.Errorf("write the role: %w", err)
	}
	const forAll = 0o644
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(forAll), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), n.File)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write the role: %w", err)
	}
	return nil
}

func (n *Notify) hook(ctx context.Context, role string, term *admiral.Term) error {
	if n.Hook == "" {
		return nil
	}
	ctx, cancel := clock.WithTimeout(ctx, clock.System(), n.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.Hook, role)
	cmd.Env = append(n.Env(term), EnvRole+"="+role)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr // data of this program go to standard output
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && context.Cause(ctx) == context.DeadlineExceeded: //nolint:errorlint // the cause itself
		return fmt.Errorf("the hook %s %s has not ended within %v", n.Hook, role, n.Limit)
	}
	return fmt.Errorf("the hook %s %s: %w", n.Hook, role, err)
}

// EnvRole and EnvRoleFile are in the environment of hooks and of a program that is told its role.
const (
	EnvRole     = "LEASEHOLD_ROLE"
	EnvRoleFile = "LEASEHOLD_ROLE_FILE"
)
