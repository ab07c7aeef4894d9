package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
)

// gate says whether the controller may send a write now.
type gate interface {
	// begin returns the token of the term, and a context for one write, which ends with the term.
	// Call done when the write is over.
	begin(ctx context.Context) (_ context.Context, token fence.Token, done func(), err error)
	// through puts the gate in front of an API server, too, where that is possible.
	through(next http.RoundTripper) http.RoundTripper
}

var errPassive = errors.New("this instance is passive")

// library: the state checker runs in this process. It is the strictest form: the context of a write
// ends with the term, the lease is not handed over before the write is over, and no request of any
// client gets past the transport.
type library struct{ state *admiral.State }

func (l library) begin(ctx context.Context) (context.Context, fence.Token, func(), error) {
	term, err := l.state.Guard(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	ctx, done := term.Bind(ctx)
	return ctx, term.Token(), done, nil
}

func (l library) through(next http.RoundTripper) http.RoundTripper {
	return admiral.RoundTripper(l.state, next)
}

// process: `leasehold standby` starts the controller when its term begins, and kills it before the
// term ends. The controller only passes the token on.
type process struct{ token fence.Token }

func newProcess() (process, error) {
	token, err := fence.ParseToken(os.Getenv("LEASEHOLD_TOKEN"))
	return process{token}, err
}

func (p process) begin(ctx context.Context) (context.Context, fence.Token, func(), error) {
	return ctx, p.token, func() {}, nil
}

func (process) through(next http.RoundTripper) http.RoundTripper { return next }

// notify: the controller runs all the time, and reads its role from a file before each write. It
// notes in a second file what it acts on, and the hook that `leasehold standby` calls waits for
// that (see hook): so the lease isn't handed over while a write of the old term is under way.
type notify struct {
	role, acts string // paths
	limit      func(context.Context) (context.Context, context.CancelFunc)
}

func newNotify(role string) notify {
	return notify{role, role + ".acts", func(ctx context.Context) (context.Context, context.CancelFunc) {
		return clock.WithTimeout(ctx, clock.System(), noticeEarly)
	}}
}

// noticeEarly is how long before the end of its validity a notified instance turns passive
// (--early), so no write may take longer.
const noticeEarly = 500 * milli

func (n notify) begin(ctx context.Context) (context.Context, fence.Token, func(), error) {
	if token, err := n.read(); err != nil || token == 0 {
		return nil, 0, nil, errors.Join(errPassive, err, n.act("passive"))
	}
	if err := n.act("active"); err != nil {
		return nil, 0, nil, err
	}
	token, err := n.read() // again: the hook may have seen "passive" before that
	if err != nil || token == 0 {
		return nil, 0, nil, errors.Join(errPassive, err, n.act("passive"))
	}
	ctx, cancel := n.limit(ctx)
	return ctx, token, cancel, nil
}

func (notify) through(next http.RoundTripper) http.RoundTripper { return next }

// read returns the token while this instance is active, and 0 while it is passive.
func (n notify) read() (fence.Token, error) {
	b, err := os.ReadFile(n.role)
	if err != nil {
		return 0, err
	}
	role, token, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	if role != "active" {
		return 0, nil
	}
	return fence.ParseToken(token)
}

// act notes what the controller acts on.
func (n notify) act(role string) error {
	if b, err := os.ReadFile(n.acts); err == nil && string(b) == role {
		return nil
	}
	next := n.acts + ".next"
	if err := os.WriteFile(next, []byte(role), 0o600); err != nil {
		return err
	}
	return os.Rename(next, n.acts)
}

// hook is called by `leasehold standby` with the role. When that is passive it returns once the
// controller acts on it: only then the lease is let go.
func hook(ctx context.Context, role string) error {
	path := os.Getenv("LEASEHOLD_ROLE_FILE") + ".acts"
	if role != "passive" {
		return nil
	}
	for {
		b, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || string(b) == "passive" {
			return nil // it has not written anything, or has stopped
		}
		if err := clock.Sleep(ctx, clock.System(), 5*milli); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
	}
}

// open lets everything through, under the last token that there was. The tests of the example show
// with it that a passive side which writes is found out.
type open struct {
	gate
	last *fence.Token
}

func (o open) begin(ctx context.Context) (context.Context, fence.Token, func(), error) {
	if inner, token, done, err := o.gate.begin(ctx); err == nil {
		*o.last = token
		return inner, token, done, nil
	}
	if *o.last == 0 {
		return nil, 0, nil, errPassive
	}
	return ctx, *o.last, func() {}, nil
}

func (open) through(next http.RoundTripper) http.RoundTripper { return next }
