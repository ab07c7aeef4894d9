package elect

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/podlabel"
	"github.com/leasehold/leasehold/election"
)

// unlabelWithin is how long a command isn't told to end yet while the label is taken off. It is
// part of what the leader has to stop, and never of what is left of the validity.
func (e *elector) unlabelWithin() time.Duration {
	if e.opts.label == "" {
		return 0
	}
	return min(e.timing.TTL/20, time.Second)
}

// checkLabel reads --pod-label, and what says which pod this is.
func (e *elector) checkLabel() (err error) {
	if e.opts.label == "" {
		return nil
	}
	if e.podLabel, err = podlabel.Parse(e.opts.label, e.name); err != nil {
		return cli.Usage("--pod-label %w", err)
	}
	return nil
}

// label starts to keep the label of the pod, if there is to be one, until the function that it
// returns is called.
func (e *elector) label() (end func(), err error) {
	if e.opts.label == "" {
		return func() {}, nil
	}
	say := func(text string) { e.words.Warn("%s: %s", e.name, text) }
	if e.keeper, err = podlabel.New(e.podLabel, e.a.Clock, e.timing.TTL/3, say); err != nil {
		return nil, fmt.Errorf("--pod-label %s: %w", e.opts.label, err)
	}
	return e.keeper.Close, nil
}

// route shows others the way to this leader until ctx is done: by --listen, and by the label.
// Nobody is shown the way any more when asked is closed, or the API server has not answered in
// time. The function that it returns does the same, when the work has ended by itself.
func (e *elector) route(ctx context.Context, term election.Term) (asked <-chan struct{}, end func()) {
	e.sight.lead(ctx, term)
	if e.keeper == nil {
		return ctx.Done(), e.sight.leave
	}
	e.keeper.Lead(podlabel.Term{Token: term.Token, Check: func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return term.Check()
	}})
	leave := func() {
		e.sight.leave()
		limited, cancel := clock.WithTimeout(context.WithoutCancel(ctx), e.a.Clock, e.unlabelWithin())
		defer cancel()
		e.keeper.Leave(limited)
	}
	off, over := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-over:
		}
		leave()
		close(off)
	}()
	return off, func() {
		close(over)
		<-done
	}
}
