package admiral

import (
	"context"
	"errors"
)

// Mirror runs c, as [StateChecker].Run does, and calls set with the state at first and at each
// change, in order: for a program that keeps its role in variables of its own, as Admiral does. The
// last call, before Mirror returns, has ReadOnly set.
//
// Between the end of a term and the call of set lies a moment, longer where the process was
// stopped. So ask [State.Guard], or [State.Status], before each write, and use what set stored for
// display.
func Mirror(ctx context.Context, c StateChecker, s *State, set func(Status)) error {
	st := s.Status()
	set(st)
	following, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var err error
			if st, err = s.Changed(following, st.Seq); err != nil {
				return
			}
			set(st)
		}
	}()
	err := c.Run(ctx, s)
	stop(errStopped)
	<-ended
	set(s.Status())
	return err
}

var errStopped = errors.New(reasonStopped)
