// Package election elects one leader among candidates, for as long as it lives, and again after it.
//
//	err := election.Run(ctx, manager, "scheduler", election.Callbacks{
//		OnStartedLeading: func(ctx context.Context, term election.Term) { schedule(ctx, term.Token) },
//		OnStoppedLeading: func() { … },
//		OnNewLeader:      func(l election.Leader) { … },
//	}, election.Options{})
//
// The names are those of client-go, but not the flaws: a leader's context ends before its validity does, the name is released only
// when OnStartedLeading has returned, a loss is no end of the process (the candidate campaigns again), and each term has a
// fencing token, which what the leader writes to has to check.
//
// # How it is kept
//
// The leader holds the lease of the name, kept by a session. Every candidate has a session. Beside the lease there is one record,
// ".election/NAME", whose data list the candidates and what an operator wants: a pause, or a step down. It changes only when one
// of those does.
//
//	            ┌─ eligible, and not paused ──► wait for the lease ──┐
//	candidate ──┤                                                    ▼
//	            └─ else: wait for that to change         lead: OnStartedLeading(ctx, term)
//	                 ▲                                               │ it returns, or its context ends: the
//	                 │                                               │ validity is about to; a pause; an
//	                 │                                               │ order; not eligible any more
//	                 └── release, or hand over ◄── OnStoppedLeading ◄┘ (after it has returned, never before)
//
// # When it doesn't stop
//
// A leader whose validity runs out, since it can't renew, is told so StopMargin before the end: its context is cancelled, and
// OnStopping is called. If OnStartedLeading has not returned two thirds of the margin later, OnStopTimeout is called: the last moment to
// end the process. A leader that was told to stop for another reason and doesn't return goes on leading for as long as it can
// renew, and OnStopTimeout is called after StopWithin.
package election
