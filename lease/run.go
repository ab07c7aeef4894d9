package lease

import (
	"context"
	"errors"
)

// Run holds a name while f runs. It acquires the name as Acquire does, which may block, calls f,
// waits for f to return, and releases the lease. The context of f is done when ctx is, or when the
// lease ends. In the second case its cause is a *[LostError], and f has to stop at once. Run
// returns f's error, joined with the *[LostError] if the lease was lost.
func (m *Manager) Run(ctx context.Context, name string, f func(context.Context, *Lease) error, opts ...AcquireOption) error {
	l, err := m.Acquire(ctx, name, opts...)
	if err != nil {
		return err
	}
	return l.run(ctx, f)
}

func (l *Lease) run(ctx context.Context, f func(context.Context, *Lease) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	held := l.Context()
	unlink := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	defer func() { // also when f panics
		unlink()
		var lost error
		if cause := l.Check(); errors.Is(cause, ErrLost) {
			lost = cause
		}
		cancel(nil)
		err = errors.Join(err, lost, l.Release(ctx))
	}()
	return f(ctx, l)
}
