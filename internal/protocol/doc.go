// Package protocol decides. It holds every decision of the lease protocol as functions and one state machine, [Hold], that
// know no clock, no store and no goroutine: what is read and written, when, and what may be believed afterwards. The lease
// package carries the decisions out on real stores; the simulator and the model check drive the very same code through
// every fault they can think of.
//
// Three kinds of fact are never mixed: what a record says ([store.Record]), what this process has observed and when on its
// own clock ([Seen]), and what it may therefore do ([Hold]).
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
// A hold is valid from the moment its claim is known to have landed until Sent + TTL·(1−δ), where Sent was read off the
// holder's clock before the first request of the write that landed last. A taker waits the whole TTL, counted on its own
// clock from when it had first seen the version that is there. The write that made the version was sent before anyone saw
// it, so with clock rates within the bound for δ the holder has stopped before the taker starts.
//
// # Failure cases
//
//   - A write's outcome is unknown: the record is read. The attempt's own nonce in it, or in a conflict, means that it
//     landed, counted from its first send. The old version still there means that it has not landed yet: the same attempt,
//     with the same nonce, is sent again; at most one of the two can land. Any other version means that it never will.
//   - A claim is given up while its outcome is unknown: the record is freed as it was to be taken, so that the claim can't
//     land any more; or the conflict shows that it has, and then that is freed. What a session keeps has to be let go for
//     certain, since it doesn't expire as long as the session lives: it is tried until the session is over.
//   - A term of one's own from before (a release whose outcome is unknown, a claim that was given up): it is known by its
//     nonces, taken again at once under a new token, and never adopted, since its release may be on its way.
//   - One that goes behind others (Patience) leaves a free name to them for a while. What is abandoned it frees first, at the version
//     that it found dead, since nothing else tells them: then all see it free, and none of them has to have seen it die.
//   - A term that a server renews in its holder's stead ([Named]) is known by its owner and its token, since several servers may do
//     that in turn. A version of it that is older than one that was seen came back with a restored store, and is not renewed.
//   - The same owner with a nonce that this process did not write is another holder: a clone of this process, perhaps.
package protocol
