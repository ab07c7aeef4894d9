package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Retry bounds how a call that gets no answer is sent again. A field that is 0 has its default.
type Retry struct {
	For time.Duration // how long a call is tried, beyond what it waits for: 10 s by default
	// How long one try may take beyond what the server waits for, before another connection is
	// tried: 3 s by default.
	Try time.Duration
	// MinPause is the pause after the first try, 20 ms by default. Each one that follows is twice
	// as long, up to MaxPause, 1 s by default.
	MinPause, MaxPause time.Duration
}

// withDefaults returns r with its defaults filled in. The error names a field that can't be used.
func (r Retry) withDefaults() (Retry, error) {
	for _, f := range []struct {
		name     string
		set      *time.Duration
		fallback time.Duration
	}{
		{"For", &r.For, 10 * time.Second}, {"Try", &r.Try, 3 * time.Second},
		{"MinPause", &r.MinPause, 20 * time.Millisecond}, {"MaxPause", &r.MaxPause, max(time.Second, r.MinPause)},
	} {
		if *f.set < 0 {
			return r, fmt.Errorf("client: Retry.%s %v: want 0 for the default of %v, or more", f.name, *f.set, f.fallback)
		}
		if *f.set == 0 {
			*f.set = f.fallback
		}
	}
	if r.MaxPause < r.MinPause {
		return r, fmt.Errorf("client: Retry.MaxPause %v: want at least MinPause, %v", r.MaxPause, r.MinPause)
	}
	return r, nil
}

// effort is a call that can be sent again until it is answered.
type effort struct {
	what  string        // it is about: a name
	wait  time.Duration // that the server is asked for
	write bool          // what isn't answered may have been done
	// settled, if set, reports whether an error, after a try that may have been carried out, says
	// that it was.
	settled func(error) bool
}

// insist calls try until it gets an answer: for as long as it waits, and [Retry.For] more. ctx ends
// it early. try is told how much of the wait is left.
func (c *conn) insist(ctx context.Context, e effort, try func(ctx context.Context, wait time.Duration) error) error {
	begun := c.clk.Now()
	limited, cancel := clock.WithTimeout(ctx, c.clk, e.wait+c.retry.For)
	defer cancel()
	lost := false // a try may have been carried out
	for pause := c.retry.MinPause; ; pause = min(2*pause, c.retry.MaxPause) {
		wait := max(e.wait-c.clk.Now().Sub(begun), 0)
		one, done := clock.WithTimeout(limited, c.clk, wait+c.retry.Try)
		err := try(one, wait)
		done()
		switch {
		case err == nil, lost && e.settled != nil && e.settled(err):
			return nil
		case unanswered(err):
			lost = true
		case lost && errors.Is(err, api.ErrReplaced):
			// By an earlier try of this very call, which the server has read only now.
		case !passing(err):
			return err
		}
		if c.ctx.Err() != nil || stray(err) || clock.Sleep(limited, c.clk, pause) != nil {
			return e.unanswered(ctx, lost, err)
		}
	}
}

// unanswered is the error of a call that is given up.
func (e effort) unanswered(ctx context.Context, lost bool, err error) error {
	if ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = errors.Join(context.Cause(ctx), err)
	}
	if lost && e.write {
		return driver.Unknown(e.what, err)
	}
	return fmt.Errorf("%s: %w", e.what, err)
}

// unanswered reports whether a request may have been carried out, without an answer that says so.
func unanswered(err error) bool {
	var s sent
	return errors.As(err, &s) || errors.Is(err, store.ErrUnknownOutcome)
}

// stray reports whether something answered that is no lock server, and would answer the same again.
func stray(err error) bool {
	var s sent
	return errors.As(err, &s) && s.stray
}

// passing reports whether an error may be over at the next try: the server couldn't be reached, or
// can't answer for now.
func passing(err error) bool {
	switch api.ProblemOf(err).Code {
	case api.CodeUnavailable, api.CodeAuthUnavailable, api.CodeClosing, api.CodeTooMany, api.CodeTooSlow:
		// What the network says is the first.
		return !errors.Is(err, store.ErrClosed)
	}
	return false
}

// answered sends a request, and again if need be, and reads the answer into v. body may be nil.
func (c *conn) answered(ctx context.Context, e effort, q request, body func(wait time.Duration) any, v any) error {
	return c.insist(ctx, e, func(ctx context.Context, wait time.Duration) error {
		if body != nil {
			text, err := json.Marshal(body(wait))
			if err != nil {
				return err
			}
			q.body = text
		}
		_, err := c.ask(ctx, q, v)
		return err
	})
}

// read gets something.
func (c *conn) read(ctx context.Context, what, path string, query url.Values, v any) error {
	return c.answered(ctx, effort{what: what}, request{method: http.MethodGet, path: path, query: query}, nil, v)
}
