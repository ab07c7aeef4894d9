// Package protocol decides. It holds every decision of the lease protocol as functions and one
// state machine, [Hold], that know no clock, no store and no goroutine. They decide what is read
// and written, when, and what may be believed afterwards. The lease package carries the decisions
// out on real stores. The simulator and the model check drive the very same code through every
// fault they can produce.
//
// The package never mixes three kinds of fact:
//
//   - what a record says ([store.Record]);
//   - what this process has observed, and when on its own clock ([Seen]);
//   - what this process may therefore do ([Hold]).
//
// # States
//
//	           Next: read, judge, claim                     renewals fail: Jeopardy
//	        ┌──────────┐   claim landed, time left  ┌──────────────────┐
//	───────▶│ Waiting  ├───────────────────────────▶│       Held       │◀─┐ a renewal landed
//	        └────┬─────┘                            └─┬──────────┬─────┘──┘
//	        Stop │                validity ended,     │          │ Stop
//	             │                taken, broken       ▼          │
//	             │                             ┌────────────┐    │
//	             │                             │    Lost    │    │
//	             │                             └──────┬─────┘    │
//	             ▼                                    │ Stop     ▼
//	        ┌─────────────────────────────────────────┴──────────────┐
//	        │ Leaving: the term is freed or handed over, if it is ours │
//	        └───────────────────────────┬────────────────────────────┘
//	                                    ▼
//	                                  Ended
//
// # The trust rule
//
// A hold is valid from the moment its claim is known to have landed until Sent + TTL·(1−δ). The
// holder read Sent off its clock before the first request of the write that landed last. A taker
// waits the whole TTL, counted on its own clock from when it first saw the version that is there.
// The write that made the version was sent before anyone saw it. So with clock rates within the
// bound for δ, the holder has stopped before the taker starts.
//
// # Failure cases
//
//   - A write's outcome is unknown: the attempt reads the record. The attempt's own nonce in it, or
//     in a conflict, means that the write landed, counted from its first send. The old version
//     still there means that the write has not landed yet. The attempt then sends the same write
//     again, with the same nonce; at most one of the two can land. Any other version means that the
//     write never will land.
//   - A claim is given up while its outcome is unknown. The attempt frees the record as it was to
//     be taken, so that the claim can't land any more. If a conflict shows that the claim has
//     landed, the attempt frees that. What a session keeps has to be freed for certain, since it
//     doesn't expire as long as the session lives. The attempt retries until the session is over.
//   - A term of the holder's own from before: a release whose outcome is unknown, or a claim that
//     was given up. The holder knows the term by its nonces, and takes the name again at once under
//     a new token. It never adopts the term, since the term's release may be on its way.
//   - An attempt that lets others go first (Patience) leaves a free name to them for a while. It
//     frees an abandoned name first, at the version that it found dead, since nothing else tells
//     the others. Then all of them see the name free, and none of them has to have seen its holder
//     die.
//   - A server renews a term in its holder's stead ([Named]). The server knows the term by its
//     owner and its token, since several servers may renew it in turn. A version of the term that
//     is older than one that was seen came back with a restored store, and is not renewed.
//   - The same owner with a nonce that this process did not write is another holder: a clone of
//     this process, perhaps.
package protocol
