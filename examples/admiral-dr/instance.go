package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
)

// line is what an instance says on its standard output: a change of its state, or a write to what
// both of them guard.
type line struct {
	State  string      `json:"state,omitempty"`
	Reason string      `json:"reason,omitempty"`
	Token  fence.Token `json:"token,omitempty"`
	Holder string      `json:"holder,omitempty"`
	Write  bool        `json:"write,omitempty"`

	// Of a write: when the instance asked whether it may, and when it knew. All processes of a
	// machine read the clock alike.
	Asked   clock.Instant `json:"asked,omitempty"`
	Allowed clock.Instant `json:"allowed,omitempty"`
}

// runInstance is one instance: it finds out whether it may write, says so, and writes while it may.
func runInstance(ctx context.Context, path string, out io.Writer) error {
	cfg, err := admiral.LoadConfig(path)
	if err != nil {
		return err
	}
	name := admiral.DynamoDB
	if cfg.Store != "" {
		name = admiral.Leasehold
	}
	checker, err := admiral.Checkers().New(name, admiral.Params{Config: cfg, Table: openTable, Store: openFile})
	if err != nil {
		return err
	}
	state := admiral.NewState(nil)
	ended := make(chan error, 1)
	go func() { ended <- checker.Run(ctx, state) }()

	said := json.NewEncoder(out)
	before := admiral.Report{}
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		if r := state.Status().Report(); r.State != before.State || r.Reason != before.Reason {
			before = r
			if err := said.Encode(line{State: r.State, Reason: r.Reason, Token: r.Token}); err != nil {
				return err
			}
		}
		// The write: only under a term, with its token, and with a context that ends when the term
		// does.
		asked := now()
		if term, err := state.Guard(ctx); err == nil {
			allowed := now()
			writing, done := term.Bind(ctx)
			if writing.Err() == nil {
				err = said.Encode(line{Write: true, Token: term.Token(), Holder: term.Owner(), Asked: asked, Allowed: allowed})
			}
			done()
			if err != nil {
				return err
			}
		}
		_ = clock.Sleep(context.WithoutCancel(ctx), clock.System(), 20*time.Millisecond)
	}
}
