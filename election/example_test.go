package election_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// Stand for election. While this process leads, the term's token goes with each write to what the leader is responsible for.
func Example() {
	st := memory.New(memory.Options{}) // or any other engine
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{TTL: 15 * time.Second, Name: "east-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	ctx, cancel := context.WithCancel(context.Background())
	var schedule fence.Mark // of the guarded resource, which remembers the highest token
	err = election.Run(ctx, m, "scheduler", election.Callbacks{
		OnStartedLeading: func(ctx context.Context, term election.Term) {
			for task := range 3 {
				if ctx.Err() != nil { // stop: the cause says why
					return
				}
				mark, err := schedule.Admit(term.Name, term.Leader, term.Token)
				if err != nil { // another one leads
					return
				}
				schedule = mark
				fmt.Println("task", task)
			}
			cancel() // the program ends; without it, returning is resigning
		},
		OnStoppedLeading: func() { fmt.Println("stopped") }, // the name is released after this
	}, election.Options{})
	fmt.Println(err)
	// Output:
	// task 0
	// task 1
	// task 2
	// stopped
	// context canceled
}

// A leader that drains for a named successor: the name is handed over in one write, when OnStartedLeading has returned.
func ExampleTerm_HandOver() {
	st := memory.New(memory.Options{})
	defer st.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	stand := func(name string, lead func(context.Context, election.Term)) {
		m, err := lease.NewManager(st, lease.Options{Name: name})
		if err != nil {
			fmt.Println(err)
			return
		}
		err = election.Run(ctx, m, "scheduler", election.Callbacks{OnStartedLeading: lead}, election.Options{Name: name})
		ended <- errors.Join(err, m.Close())
	}
	go stand("east", func(ctx context.Context, term election.Term) {
		go stand("west", func(_ context.Context, next election.Term) {
			fmt.Println("west leads, under a higher token:", next.Token > term.Token)
			cancel()
		})
		for term.HandOver(ctx, "west") != nil { // it is no candidate yet
			_ = clock.Sleep(ctx, clock.System(), 10*time.Millisecond)
		}
		<-ctx.Done() // drain
		fmt.Println("east stops:", errors.Is(context.Cause(ctx), election.ErrOrdered))
	})
	for range 2 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			fmt.Println(err)
		}
	}
	// Output:
	// east stops: true
	// west leads, under a higher token: true
}

// An operator's calls need the store and nothing else.
func ExampleSetPause() {
	st := memory.New(memory.Options{})
	defer st.Close()
	ctx := context.Background()
	if err := election.SetPause(ctx, st, "scheduler", election.Pause{By: "ada@ops", Reason: "the database is being moved", Since: time.Now()}); err != nil {
		fmt.Println(err)
		return
	}
	state, err := election.ReadState(ctx, st, "scheduler")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("paused by %s: %s; leader %q\n", state.Pause.By, state.Pause.Reason, state.Leader.Owner)
	fmt.Println(election.Resume(ctx, st, "scheduler", ""))
	// Output:
	// paused by ada@ops: the database is being moved; leader ""
	// <nil>
}

// Watch tells who leads, and how old that is.
func ExampleWatch() {
	st := memory.New(memory.Options{})
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{Name: "east"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	ctx := context.Background()
	l, err := m.Acquire(ctx, "scheduler")
	if err != nil {
		fmt.Println(err)
		return
	}
	for leader, err := range election.Watch(ctx, st, "scheduler", election.WatchOptions{}) {
		switch {
		case err != nil:
			fmt.Println("as of", leader.Age, "ago:", leader.Owner, err)
		case leader.Owner == "":
			fmt.Println("nobody leads")
			return
		default:
			fmt.Println("led under its token:", leader.Token == l.Token(), "and that is new:", leader.Age < time.Minute)
			if err := l.Release(ctx); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// led under its token: true and that is new: true
	// nobody leads
}
