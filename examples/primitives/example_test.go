package primitives_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/examples/primitives"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// The clocks of these examples are fakes that jump, so that nobody has to wait.
var ctx = context.Background()

func Example_compareAndSwap() {
	st := memory.New(memory.Options{})
	a, _ := store.Load(ctx, st, "counter") // two read the same version
	b := a
	a.Data, b.Data = []byte("a's"), []byte("b's")

	_, err := st.Put(ctx, a)
	fmt.Println("a writes:", err)
	_, err = st.Put(ctx, b) // demands the version that b has read
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		fmt.Printf("b doesn't: what is there is %s\n", conflict.Current.Data)
	}

	err = store.Update(ctx, st, "counter", func(rec *store.Record) (write bool, err error) {
		rec.Data = append(rec.Data, " and b's"...)
		return true, nil
	})
	rec, _ := st.Get(ctx, "counter")
	fmt.Printf("b updates: %v: %s\n", err, rec.Data)
	// Output:
	// a writes: <nil>
	// b doesn't: what is there is a's
	// b updates: <nil>: a's and b's
}

func Example_simpleLock() {
	st := memory.New(memory.Options{})
	token, err := primitives.SimpleLock(ctx, st, "job", "a")
	fmt.Println("a:", token, err)
	_, err = primitives.SimpleLock(ctx, st, "job", "b")
	fmt.Println("b:", err)
	err = primitives.SimpleUnlock(ctx, st, "job", "a", token)
	fmt.Println("a gives it back:", err)
	token, err = primitives.SimpleLock(ctx, st, "job", "b")
	fmt.Println("b:", token, err)
	err = primitives.SimpleUnlock(ctx, st, "job", "a", 1)
	fmt.Println("a gives it back again:", err)
	// Output:
	// a: 1 <nil>
	// b: job: lock is held by a
	// a gives it back: <nil>
	// b: 2 <nil>
	// a gives it back again: job: lock is not held by a
}

func Example_renewableLock() {
	st := memory.New(memory.Options{})
	clocks := []*clocktest.Clock{clocktest.New(0), clocktest.New(1e15)} // of two machines: what they show can't be compared
	const ttl = 15 * time.Second
	a := &primitives.RenewableLock{Store: st, Clock: clocks[0], Name: "job", Me: "a", TTL: ttl}
	b := &primitives.RenewableLock{Store: st, Clock: clocks[1], Name: "job", Me: "b", TTL: ttl}
	pass := func(d time.Duration) {
		for _, c := range clocks {
			c.Jump(d)
		}
	}
	held := func(err error) bool { return errors.Is(err, primitives.ErrHeld) }

	fmt.Println("a:", a.TryLock(ctx), "b has to wait:", held(b.TryLock(ctx)))
	pass(5 * time.Second)
	fmt.Println("a renews:", a.Renew(ctx))
	pass(11 * time.Second) // 16 s since b has first looked, but the record has changed
	fmt.Println("b has to wait:", held(b.TryLock(ctx)))
	pass(2 * time.Second)
	fmt.Println("a is valid:", a.Valid()) // it was not renewed for 13 s: it stops before b may start
	pass(14 * time.Second)
	fmt.Println("b:", b.TryLock(ctx), "token", b.Token())
	fmt.Println("a renews:", a.Renew(ctx))
	// Output:
	// a: <nil> b has to wait: true
	// a renews: <nil>
	// b has to wait: true
	// a is valid: false
	// b: <nil> token 2
	// a renews: job: lock is not held by a
}

func Example_handleLockLost() {
	st := faulty.Wrap(memory.New(memory.Options{}), nil) // a store that can be cut off
	clk := clocktest.New(0)
	m, err := lease.NewManager(st, lease.Options{TTL: 15 * time.Second, Clock: clk, OnEvent: func(e lease.Event) {
		if e.State == lease.StateJeopardy {
			clk.Jump(15 * time.Second) // and nothing gets better
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	l, err := m.Acquire(ctx, "job")
	if err != nil {
		fmt.Println(err)
		return
	}
	st.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errors.New("connection refused")} })
	l.Events()                // from here on, none is missed
	clk.Jump(5 * time.Second) // a renewal is due
	primitives.HandleLockLost(l, os.Stdout)
	fmt.Println("its context is done:", l.Context().Err() != nil)
	// Output:
	// held: go on
	// jeopardy: begin nothing that can't be undone
	// lost by store outage: stop, and forget what was read under the lease
	// its context is done: true
}

func Example_watchdog() {
	st := memory.New(memory.Options{})
	clk := clocktest.New(0)
	m, err := lease.NewManager(st, lease.Options{TTL: 15 * time.Second, Clock: clk})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	l, err := m.Acquire(ctx, "job")
	if err != nil {
		fmt.Println(err)
		return
	}
	bitten := make(chan error)
	lease.Watchdog(l, func(err error) { bitten <- err }) // nil instead of a function: the process ends

	clk.Jump(time.Hour) // the machine was suspended
	var lost *lease.LostError
	fmt.Println("bitten:", errors.As(<-bitten, &lost), lost.Cause)
	// Output: bitten: true expired
}

func Example_fencing() {
	st := memory.New(memory.Options{})
	var mark fence.Mark // of the resource: the highest token that it has accepted
	write := func(holder string, token fence.Token, what string) {
		next, err := mark.Admit("job", holder, token)
		if err != nil {
			fmt.Println(what, "is refused:", errors.Is(err, fence.ErrStale))
			return
		}
		mark = next
		fmt.Println(what, "is done")
	}

	first, _ := primitives.SimpleLock(ctx, st, "job", "a")
	write("a", first, "a's first write")
	// Here a sends its second write, and is stopped while that is on its way. Somebody takes the lock away from it.
	_ = primitives.SimpleUnlock(ctx, st, "job", "a", first)
	second, _ := primitives.SimpleLock(ctx, st, "job", "b")
	write("b", second, "b's write")
	write("a", first, "a's second write")
	// Output:
	// a's first write is done
	// b's write is done
	// a's second write is refused: true
}
