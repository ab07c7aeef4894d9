package run

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

// sharing is how a name is held: as a whole, or a share of it.
type sharing struct {
	shared     bool
	limit      int // slots; 0 for none
	limitGiven bool
	Weight     int // of the slots, that one run takes
	fair       bool
}

func (s *sharing) add(f *pflag.FlagSet) {
	f.BoolVar(&s.shared, "shared", false, "run beside others with --shared, but not beside one without")
	f.IntVar(&s.limit, "slots", 0, "let so many run at a time")
	f.IntVar(&s.Weight, "weight", 1, "with --slots: how many of them CMD takes")
	f.BoolVar(&s.fair, "fair", false, "first come, first served; with --shared that is so anyway")
}

func (s sharing) check() error {
	switch {
	case s.shared && s.limitGiven:
		return cli.Usage("--shared and --slots exclude each other: --shared lets any number run beside each other, --slots that many")
	case s.limitGiven && (s.limit < 1 || s.limit > lock.MaxShares):
		return cli.Usage("--slots %d: want 1 to %d", s.limit, lock.MaxShares)
	case s.Weight != 1 && !s.limitGiven:
		return cli.Usage("--weight %d: it is how many of the slots CMD takes: say how many there are, with --slots", s.Weight)
	case s.limitGiven && (s.Weight < 1 || s.Weight > s.limit):
		return cli.Usage("--weight %d: want 1 to %d, the number of slots", s.Weight, s.limit)
	}
	return nil
}

// misfit explains that a name is in use as another kind, or with another number of slots.
func (j *Job) misfit(ctx context.Context, err error) error {
	name, s := j.Name, j.Opts.sharing
	if limit := new(lock.MismatchError); errors.As(err, &limit) {
		return cli.Usage("--slots %d: %s has %s, and all who use it have to say so: write --slots %d, or change it for all, which then follow: leasehold slots %s %d",
			s.limit, name, output.Slots(limit.Stored), limit.Stored, name, s.limit)
	}
	other := new(store.KindError)
	if !errors.As(err, &other) {
		return err
	}
	switch {
	case other.Kind == store.KindSemaphore:
		state, err := roster.Load(ctx, j.st, name)
		if err != nil {
			return err
		}
		return cli.Usage("%s has %s in use: add --slots %d, or use another name", name, output.Slots(state.Limit), state.Limit)
	case other.Kind == store.KindRW:
		return cli.Usage("--slots %d: %s is in use with --shared: leave --slots out, or use another name", s.limit, name)
	case other.Kind == store.KindPool:
		return cli.Usage("%s is a pool of identities (`leasehold id list %s`): use another name", name, name)
	case other.Kind == store.KindElection:
		return cli.Usage("%s is an election (`leasehold candidates %s`): use another name", name, name)
	}
	return cli.Usage("--slots %d: %s is held as a whole, by `leasehold run` without --slots: use another name", s.limit, name)
}

// Hold is what CMD runs under: a lease, or a share of a lock.
type Hold interface {
	supervise.Lease
	Left() time.Duration
	Token() fence.Token
	Sequencer() fence.Sequencer
	Release(ctx context.Context) error
}

// share is a share of a lock with a session of its own.
type share struct {
	*lock.Hold
	s *lease.Session
}

// Release gives the share back, and ends the session.
func (h *share) Release(ctx context.Context) error {
	return errors.Join(h.Hold.Release(ctx), hold.CloseSession(ctx, h.s))
}

// take takes the name in the way that was asked for, and waits for that unless it isn't to. Who
// wants a name as a whole takes its lease; while the name is shared, the write lock of those who
// do.
func (j *Job) take(ctx context.Context) (Hold, error) {
	way := j.Opts.way()
	for {
		h, err := j.takeBy(ctx, way)
		other := new(store.KindError)
		switch {
		case errors.As(err, &other) && other.Kind == store.KindRW && (way == asLease || way == asFair):
			way = asWriter
		case errors.Is(err, lease.ErrLost) && way != asLease && ctx.Err() == nil && !j.Opts.NoWait:
			j.Words.Say("waiting for %s again, at the end of the queue: the wait was cut short by an outage of the store", j.Name)
		case err != nil:
			return nil, j.misfit(ctx, err)
		default:
			return h, nil
		}
	}
}

// way is how a name is taken.
type way uint8

const (
	asLease way = iota
	asFair
	asReader
	asWriter
	asSlot
)

func (s sharing) way() way {
	switch {
	case s.limit > 0:
		return asSlot
	case s.shared:
		return asReader
	case s.fair:
		return asFair
	}
	return asLease
}

// whole reports whether the name is wanted as a whole, and not beside others.
func (s sharing) whole() bool { w := s.way(); return w != asReader && w != asSlot }

func (j *Job) takeBy(ctx context.Context, w way) (Hold, error) {
	if w == asLease {
		l, err := j.takeLease(ctx)
		if err != nil {
			return nil, err // not a nil *lease.Lease
		}
		return l, nil
	}
	return j.takeShare(ctx, w)
}

func (j *Job) takeLease(ctx context.Context) (*lease.Lease, error) {
	if j.Opts.NoWait {
		return j.m.TryAcquire(ctx, j.Name)
	}
	return j.m.Acquire(ctx, j.Name)
}

// takeShare takes a share of a lock.
func (j *Job) takeShare(ctx context.Context, w way) (Hold, error) {
	s, err := j.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	h, err := j.shareOf(ctx, s, w)
	if err == nil {
		return &share{h, s}, nil
	}
	closing, cancel := clock.WithTimeout(context.WithoutCancel(ctx), j.App.Clock, j.Timing.TTL/10)
	defer cancel()
	_ = hold.CloseSession(closing, s) // or it expires
	return nil, err
}

// OpenSession tries until the store answers, unless it isn't to wait.
func (j *Job) OpenSession(ctx context.Context) (*lease.Session, error) {
	for {
		s, err := j.m.OpenSession(ctx)
		if err == nil || j.Opts.NoWait {
			return s, err
		}
		j.Words.Retry(j.Name, err)
		if clock.Sleep(ctx, j.App.Clock, j.Timing.TTL/30) != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

type taking = func(context.Context) (*lock.Hold, error)

func (j *Job) shareOf(ctx context.Context, s *lease.Session, w way) (*lock.Hold, error) {
	take, try, err := j.Opts.ways(s, j.Name, w)
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	if j.Opts.NoWait {
		take = try
	}
	return take(ctx)
}

// ways returns how to take a share, with and without waiting.
func (s sharing) ways(session *lease.Session, name string, w way) (take, try taking, err error) {
	switch w {
	case asSlot:
		sem, err := lock.NewSemaphore(session, name, lock.SemaphoreOptions{Limit: s.limit, Fair: s.fair})
		return func(ctx context.Context) (*lock.Hold, error) { return sem.Acquire(ctx, s.Weight) },
			func(ctx context.Context) (*lock.Hold, error) { return sem.TryAcquire(ctx, s.Weight) }, err
	case asReader, asWriter:
		rw, err := lock.NewRWMutex(session, name)
		if err != nil {
			return nil, nil, err
		}
		rw = rw.BesideLeases()
		if w == asReader {
			return rw.RLock, rw.TryRLock, nil
		}
		return rw.Lock, rw.TryLock, nil
	}
	m, err := lock.NewMutex(session, name, lock.MutexOptions{Fair: true})
	return m.Lock, m.TryLock, err
}
