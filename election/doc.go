// Package election elects one leader among candidates, as long as it lives, and another one after
// it.
//
//	err := election.Run(ctx, manager, "scheduler", election.Callbacks{
//		OnStartedLeading: func(ctx context.Context, term election.Term) { schedule(ctx, term.Token) },
//		OnStoppedLeading: func() { … },
//		OnNewLeader:      func(l election.Leader) { … },
//	}, election.Options{})
//
// The names are those of client-go. The behaviour differs in four ways:
//
//   - A leader's context ends before its validity does.
//   - The name is released only when OnStartedLeading has returned.
//   - A loss doesn't end the process: the candidate campaigns again.
//   - Each term has a fencing token. What the leader writes to has to check it.
//
// # How it works
//
// The leader holds the lease of the name, and a session keeps that lease. Every candidate has a
// session. One more record, ".election/NAME", lists the candidates and what an operator wants: a
// pause, or a step down. It changes only when one of those does.
//
//	            ┌─ eligible, and not paused ──► wait for the lease ──┐
//	candidate ──┤                                                    ▼
//	            └─ else: wait for that to change         lead: OnStartedLeading(ctx, term)
//	                 ▲                                               │ it returns, or its context ends: the
//	                 │                                               │ validity is about to; a pause; an
//	                 │                                               │ order; not eligible any more
//	                 └── release, or hand over ◄── OnStoppedLeading ◄┘ (after it has returned, never before)
//
// # A leader that doesn't stop
//
// A leader that can't renew runs out of validity. StopMargin before the end, its context is
// cancelled and OnStopping is called. If OnStartedLeading has not returned two thirds of the margin
// later, OnStuck is called. That is the last moment to end the process.
//
// A leader may have to stop for another reason. If it doesn't return then, it continues to lead as
// long as it can renew, and OnStuck is called after StopWithin.
package election
