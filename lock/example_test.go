package lock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store/memory"
)

// open returns a session on a store of its own. What it holds ends with it.
func open(ctx context.Context) (s *lease.Session, done func()) {
	st := memory.New(memory.Options{}) // or any other engine
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		panic(err)
	}
	s, err = m.OpenSession(ctx)
	if err != nil {
		panic(err)
	}
	return s, func() {
		if err := errors.Join(s.Close(ctx), m.Close(), st.Close()); err != nil {
			panic(err)
		}
	}
}

func ExampleMutex() {
	ctx := context.Background()
	s, done := open(ctx)
	defer done()

	m, err := lock.NewMutex(s, "billing", lock.MutexOptions{Fair: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := m.Lock(ctx) // waits
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.TryLock(ctx) // it is not reentrant
	fmt.Println("held:", errors.Is(err, lease.ErrHeld))
	if err := h.Check(); err != nil { // nanoseconds: before every step that must not be done twice
		fmt.Println(err)
		return
	}
	fmt.Println("released:", h.Release(ctx))
	// Output:
	// held: true
	// released: <nil>
}

func ExampleRun() {
	ctx := context.Background()
	s, done := open(ctx)
	defer done()
	work := func(_ context.Context, token fence.Token) error {
		fmt.Println("a token to fence with:", token > 0)
		return nil
	}

	m, err := lock.NewMutex(s, "billing", lock.MutexOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lock.Run(ctx, m.Lock, func(ctx context.Context, h *lock.Hold) error {
		return work(ctx, h.Token())
	})
	fmt.Println("done:", err)
	// Output:
	// a token to fence with: true
	// done: <nil>
}

func ExampleSemaphore() {
	ctx := context.Background()
	s, done := open(ctx)
	defer done()

	sem, err := lock.NewSemaphore(s, "licences", lock.SemaphoreOptions{Limit: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	small, _ := sem.Acquire(ctx, 1)
	large, _ := sem.Acquire(ctx, 3)
	fmt.Println("slots", small.Slot(), "and", large.Slot())
	_, err = sem.TryAcquire(ctx, 2)
	var held *lock.HeldError
	fmt.Println("refused:", errors.As(err, &held), "free:", held.Free)

	other, _ := lock.NewSemaphore(s, "licences", lock.SemaphoreOptions{Limit: 6})
	_, err = other.TryAcquire(ctx, 1)
	fmt.Println(errors.Is(err, lock.ErrMismatch)) // all have to name the same limit
	// Output:
	// slots 0 and 1
	// refused: true free: 1
	// true
}

func ExampleRWMutex() {
	ctx := context.Background()
	s, done := open(ctx)
	defer done()

	rw, err := lock.NewRWMutex(s, "config")
	if err != nil {
		fmt.Println(err)
		return
	}
	one, _ := rw.RLock(ctx)
	two, _ := rw.RLock(ctx)
	_, err = rw.TryLock(ctx)
	fmt.Println("readers share:", one.Check(), two.Check(), "a writer waits:", errors.Is(err, lease.ErrHeld))
	// Output: readers share: <nil> <nil> a writer waits: true
}

func ExampleAcquireAll() {
	ctx := context.Background()
	s, done := open(ctx)
	defer done()

	set, err := lock.AcquireAll(ctx, s, "account/7", "account/3") // in one order, whoever asks
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("from", set.Lease("account/7").Check(), "to", set.Lease("account/3").Check())
	fmt.Println("released:", set.Release(ctx))
	// Output:
	// from <nil> to <nil>
	// released: <nil>
}
