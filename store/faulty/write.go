package faulty

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	// A late copy of the request must not see what the caller does to its record meanwhile.
	rec = rec.Clone()
	return s.write(ctx, Put, rec, func(ctx context.Context) (store.Record, error) { return s.inner.Put(ctx, rec) })
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, key, version string) error {
	rec := store.Record{Key: key, Version: version}
	_, err := s.write(ctx, Delete, rec, func(ctx context.Context) (store.Record, error) {
		return store.Record{}, s.inner.Delete(ctx, key, version)
	})
	return err
}

// answer is what the store says to a write.
type answer struct {
	rec store.Record
	err error
}

func (s *Store) write(ctx context.Context, kind Kind, rec store.Record, do func(context.Context) (store.Record, error)) (store.Record, error) {
	f, err := s.begin(ctx, kind, rec)
	if err != nil {
		return store.Record{}, err
	}
	if f.Err != nil || f.Drop {
		if err := s.sleep(ctx, f.Delay); err != nil {
			return store.Record{}, driver.Unknown(rec.Key, err)
		}
		if f.Err != nil {
			return store.Record{}, f.Err
		}
		return store.Record{}, driver.Unknown(rec.Key, s.hang(ctx, nil))
	}
	if f.Delay <= 0 && f.ReplyDelay <= 0 && !f.LoseReply && f.ApplyLate <= 0 && !f.ApplyTwice {
		return do(ctx)
	}
	answers := make(chan answer, 1)
	if !s.send(ctx, f, do, answers) {
		return store.Record{}, store.ErrClosed
	}
	if f.ApplyLate > 0 && !f.ApplyTwice {
		return store.Record{}, driver.Unknown(rec.Key, s.reply(ctx, f))
	}
	select {
	case a := <-answers:
		if err := s.reply(ctx, f); err != nil {
			return store.Record{}, driver.Unknown(rec.Key, err)
		}
		return a.rec, a.err
	case <-ctx.Done():
		return store.Record{}, driver.Unknown(rec.Key, context.Cause(ctx))
	case <-s.life.Done():
		return store.Record{}, driver.Unknown(rec.Key, store.ErrClosed)
	}
}

// send has the request delivered, by a goroutine that Close waits for: what was sent arrives,
// whether its caller still waits or not. The first answer goes to answers. It reports false when
// the wrapper was closed.
func (s *Store) send(ctx context.Context, f Fault, do func(context.Context) (store.Record, error), answers chan<- answer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return false
	}
	first, second := f.Delay+max(f.ApplyLate, 0), time.Duration(0)
	if f.ApplyTwice {
		first, second = f.Delay, f.ApplyLate
	}
	deliver := func(after time.Duration) answer {
		time.Sleep(after)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateLimit)
		defer cancel()
		rec, err := do(ctx)
		return answer{rec, err}
	}
	s.late.Go(func() {
		answers <- deliver(first)
		if f.ApplyTwice {
			deliver(second)
		}
	})
	return true
}
