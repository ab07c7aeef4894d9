// Package hold is what the commands share that hold a name while they run a program, or serve: what
// they say meanwhile, what the program finds in its environment, and what its end means.
package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

// CantLead explains that a name is in use as what nobody leads; any other error it returns.
func CantLead(name string, err error) error {
	other := new(store.KindError)
	switch {
	case !errors.As(err, &other):
		return err
	case other.Kind == store.KindPool:
		return cli.Usage("%s is a pool of identities (`leasehold id list %s`), and can't be led: use another name", name, name)
	case other.Kind.Shared():
		return cli.Usage("%s is in use with --shared or --slots, and can't be led: use another name", name)
	}
	return cli.Usage("%s is held by %s as a lease, and can't be led: use another name", name, other.Holder)
}

// The environment of CMD.
const (
	EnvName   = "LEASEHOLD_NAME"
	EnvToken  = "LEASEHOLD_TOKEN"
	EnvHolder = "LEASEHOLD_HOLDER"
	EnvStore  = "LEASEHOLD_STORE"
	EnvSlot   = "LEASEHOLD_SLOT"
	EnvAbove  = "LEASEHOLD_ABOVE" // the holders that started the one of EnvHolder
)

// maxAbove bounds how many holders above are told to CMD, the nearest first.
const maxAbove = 16

// Above returns the holders under which this program was started, the nearest first. They wait for
// its end.
func Above() (all []string) {
	if own := os.Getenv(EnvHolder); own != "" {
		all = append(all, own)
	}
	for part := range strings.FieldsSeq(os.Getenv(EnvAbove)) {
		if holder, err := url.QueryUnescape(part); err == nil {
			all = append(all, holder)
		}
	}
	return all[:min(len(all), maxAbove)]
}

// InTheWay reports whether a name can't become free before this program ends: a holder that started
// this program has it. Who wants the whole name waits for all of its holders, who wants a share for
// one of them.
func InTheWay(h *lease.HeldError, whole bool) bool {
	above := Above()
	holders := []string{h.Holder}
	if shares := new(lock.HeldError); errors.As(h, &shares) {
		holders = shares.Holders
	}
	isAbove := func(holder string) bool { return slices.Contains(above, holder) }
	if whole {
		return slices.ContainsFunc(holders, isAbove)
	}
	return len(holders) > 0 && !slices.ContainsFunc(holders, func(holder string) bool { return !isAbove(holder) })
}

// AboveHint is what to do about a holder that is [InTheWay].
const AboveHint = "the very command that started this one, which waits for it to end: use another name here"

// Find returns the path of CMD, before anything is acquired for it.
func Find(cmd string) (string, error) {
	path, err := exec.LookPath(cmd)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", StartError(cmd, err)
	}
	return path, cli.NeedProc()
}

// HolderInfo is what people see of a hold under which command runs, with the pairs of --info.
func HolderInfo(command string, pairs []string) (map[string]string, error) {
	all := map[string]string{"command": command, "user": cli.WhoAmI()}
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, cli.Usage("--info %q: want KEY=VALUE", pair)
		}
		all[k] = v
	}
	return all, nil
}

// StartError gives the exit code of a command that could not be started.
func StartError(cmd string, err error) error {
	var why syscall.Errno
	switch {
	case (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)) && strings.ContainsAny(cmd, " \t;|&<>$"):
		return cli.Exit(cli.ExitMissing, fmt.Errorf("CMD %q: there is no such program: leave the quotes out, as in: -- %s; or have a shell read it: -- sh -c '%s'", cmd, cmd, strings.ReplaceAll(cmd, "'", `'\\''`)))
	case errors.Is(err, exec.ErrNotFound) && isFile(cmd):
		return cli.Exit(cli.ExitMissing, fmt.Errorf("%s: there is no such command in $PATH: for the file of that name here write ./%s", cmd, cmd))
	case errors.Is(err, exec.ErrNotFound) && os.Getenv("PATH") == "":
		return cli.Exit(cli.ExitMissing, fmt.Errorf("%s: PATH is empty, so no command is found by its name: write the whole path, as /usr/bin/%s, or set PATH", cmd, cmd))
	case errors.Is(err, exec.ErrNotFound):
		return cli.Exit(cli.ExitMissing, fmt.Errorf("%s: there is no such command in $PATH", cmd))
	case errors.Is(err, fs.ErrNotExist):
		return cli.Exit(cli.ExitMissing, fmt.Errorf("%s: not found (it, or the interpreter in its first line)", cmd))
	case errors.As(err, &why) && why == syscall.ENOEXEC:
		return cli.Exit(cli.ExitCannot, fmt.Errorf("%s: not an executable for this machine; a script needs a first line like #!/bin/sh", cmd))
	case errors.Is(err, fs.ErrPermission):
		return cli.Exit(cli.ExitCannot, fmt.Errorf("%s: not executable by this user: chmod +x, perhaps", cmd))
	}
	return cli.Exit(cli.ExitCannot, fmt.Errorf("%s: can't be executed: %w", cmd, err))
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// CloseSession ends a session, and deletes its record if that is confirmed: its key is never used
// again.
func CloseSession(ctx context.Context, s *lease.Session) error {
	if err := s.Close(ctx); err != nil {
		return err
	}
	ForgetSession(ctx, s.Manager(), s.Key())
	return nil
}

// ForgetSession deletes the record of a session, if it is closed. One that is left is of no use,
// and does no harm.
func ForgetSession(ctx context.Context, m *lease.Manager, key string) {
	ctx, cancel := clock.WithTimeout(ctx, m.Clock(), m.TTL()/10)
	defer cancel()
	if rec, err := store.Load(ctx, m.Store(), key); err == nil && rec.Owner == "" && rec.Version != "" {
		_ = m.Store().Delete(ctx, rec.Key, rec.Version)
	}
}

// ShareHeld says who holds a lock, and who waits before.
func ShareHeld(e *lock.HeldError) string {
	who := "nobody"
	if n := len(e.Holders); n > 3 {
		who = fmt.Sprintf("%s and %d others", strings.Join(e.Holders[:3], ", "), n-3)
	} else if n > 0 {
		who = strings.Join(e.Holders, ", ")
	}
	if e.Waiting == 0 {
		return "held by " + who
	}
	return fmt.Sprintf("held by %s; %d waiting before", who, e.Waiting)
}

// EndError is the error with the exit code of a CMD that ended by itself.
func EndError(s supervise.Status) error { return cli.Exit(Code(s), nil) }

// Code is the exit code that says how CMD has ended.
func Code(s supervise.Status) int {
	if sig, ok := s.Signal.(syscall.Signal); ok {
		return cli.ExitSignal + int(sig)
	}
	return s.Code
}

// Environment is this program's, without the variables of own and drop, and with own.
func Environment(own []string, drop ...string) []string {
	for _, pair := range own {
		name, _, _ := strings.Cut(pair, "=")
		drop = append(drop, name)
	}
	above := Above()
	for i, holder := range above {
		above[i] = url.QueryEscape(holder)
	}
	if len(above) > 0 {
		own, drop = append(slices.Clone(own), EnvAbove+"="+strings.Join(above, " ")), append(drop, EnvAbove)
	}
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !slices.Contains(drop, name) {
			env = append(env, pair)
		}
	}
	return append(env, own...)
}
