package seeded

// Rule names one safety rule of the protocol. Each is taken out by a seeded bug of its name
// (internal/proof/mutate), in builds for tests only, so that the simulator and the model check can
// show that they notice.
type Rule string

// The rules.
const (
	// Validity counts from before the request, not from the reply.
	RuleSent Rule = "deadline-from-sent"
	// Of an attempt's several requests, from the first.
	RuleFirstSent Rule = "deadline-from-first"
	RuleMargin    Rule = "holder-margin"   // the holder leaves a margin of the TTL
	RuleWholeTTL  Rule = "taker-waits-ttl" // the taker waits the whole TTL
	// The taker counts from its own observation, not from a wall clock in the record.
	RuleSeen Rule = "observed-not-written"
	// A write of one's own is recognised when its reply was lost.
	RuleNonce   Rule = "own-nonce"
	RuleOwnTerm Rule = "own-older-term" // one's own older term is never adopted
	// One's own record is known by its nonce, not by the owner id.
	RuleClone      Rule = "nonce-not-owner"
	RuleKeepToken  Rule = "token-kept-on-release" // a free record keeps its token
	RuleRaiseToken Rule = "token-raised"          // every change of ownership raises the token
	RuleClockToken Rule = "token-over-wipe"       // a token is at least the time in milliseconds
	// An abandoned session is closed before a lease of it is taken.
	RuleFence Rule = "session-fenced-first"
	RuleOnce  Rule = "session-made-once" // a session's record is made, never taken
	// A renewal that meets another's version ends the hold.
	RuleConflict Rule = "conflict-is-loss"
	// A hold whose record is gone, or came back from a backup, is not renewed.
	RuleRestored   Rule = "restored-is-loss"
	RuleExactTerm  Rule = "release-exact-term"  // a release frees its own term only
	RuleLateAnswer Rule = "late-answer-ignored" // an answer after the deadline revives nothing
	// A claim that took longer than its validity isn't held.
	RuleLateClaim Rule = "late-claim-not-held"
	// A claim under a session that is over isn't held.
	RuleSessionHeld Rule = "session-checked"
	// A hand-off counts from a write of the successor's own.
	RuleConfirm Rule = "offer-confirmed"
	// What is handed over is taken under a token of its own.
	RuleOfferToken Rule = "offer-under-new-token"
	// A waiter looks at the session of what it waits for every third of a TTL.
	RuleSessionPoll Rule = "session-looked-at"
	// A mark is taken for one on one's own record only if it says so.
	RuleMarkChain Rule = "mark-names-its-version"
	RuleBroken    Rule = "broken-not-renewed" // a broken hold isn't renewed
	// Work has stopped before the name is freed (the driver's rule).
	RuleStopFirst Rule = "stop-before-release"
	// A session learns that a lease of it was broken (the driver's rule).
	RuleNotice Rule = "session-told-of-break"
	// A break that a session learns of before the claim's answer counts (the driver's).
	RuleEarlyNotice Rule = "notice-outlives-claim"
	// A notice takes no break off a session's record.
	RuleBreakStays Rule = "break-outlives-notice"
	// What a session keeps is let go for certain (the driver's rule).
	RuleSettle Rule = "session-lease-settled"
	RuleCapped Rule = "request-within-hold" // no request of a holder outlives its validity
	// Validity counts from the first copy of a request that is sent again beside.
	RuleFirstCopy Rule = "first-copy-counts"
	// What a second copy of a renewal meets is its success only under the nonce of both.
	RuleCopyNonce Rule = "copy-by-its-nonce"
	// The leases of a session hear of its end (the driver's rule).
	RuleSessionTold Rule = "session-loss-told"
	// The end of a term is told once (the driver's rule).
	RuleToldOnce Rule = "end-told-once"
	// A term that its program found over is not brought back by a late renewal (the driver's rule).
	RuleStaysOver Rule = "over-stays-over"
	// What a record says in the place of a term that a session keeps ends that.
	RuleLooked Rule = "outsider-ends-term"
	// A server tells a session of a break until the lease is let go.
	RuleToldAgain Rule = "notice-told-again"
	// Who follows judges what a session keeps by the session's age, not the record's.
	RuleFollowed Rule = "follower-judges-session"
	// Who follows looks up when the session's renewals have stopped for its TTL.
	RuleFollowDead Rule = "follower-wakes"
	// Who follows hears of the name as well as of the session.
	RuleFollowBoth Rule = "follower-hears-both"
	// What a wait for two keys found is told of the key that it is of (the driver's rule).
	RuleSecondKey Rule = "second-key-told"
	// A change that is pushed counts only after all that the handle has shown (the engine's rule).
	RulePushed Rule = "push-after-all-shown"
	// A guard remembers the highest token that it accepted (the guard's rule).
	RuleGuard Rule = "guard-remembers"
	// The refusal of one copy of a request isn't the request's (the engine's rule).
	RuleTwin Rule = "refused-copy-unknown"
	// What only the primary has settles nothing (the engine's rule).
	RuleReplica Rule = "settled-by-replica"
	// Every write names the version it replaces (the store's rule).
	RuleCAS Rule = "conditional-write"
)

// Rules lists every rule.
var Rules = []Rule{
	RuleSent, RuleFirstSent, RuleMargin, RuleWholeTTL, RuleSeen, RuleNonce, RuleOwnTerm, RuleClone, RuleKeepToken,
	RuleRaiseToken, RuleClockToken, RuleFence, RuleOnce, RuleConflict, RuleRestored, RuleExactTerm, RuleLateAnswer, RuleLateClaim, RuleSessionHeld,
	RuleConfirm, RuleOfferToken, RuleSessionPoll, RuleMarkChain, RuleBroken, RuleStopFirst, RuleNotice, RuleEarlyNotice, RuleBreakStays, RuleSettle,
	RuleCapped, RuleFirstCopy, RuleCopyNonce, RuleSessionTold, RuleToldOnce, RuleStaysOver, RuleLooked, RuleToldAgain,
	RuleFollowed, RuleFollowDead, RuleFollowBoth, RuleSecondKey, RulePushed, RuleGuard, RuleTwin, RuleReplica, RuleCAS,
}

// The rules by which package lock grants shares. They are taken out like the others;
// internal/proof/sim/locks notices.
const (
	// The weights of all holders never add up to more than the limit.
	RuleShareLimit  Rule = "shares-within-limit"
	RuleShareWriter Rule = "writer-excludes-readers" // a writer has to wait for the readers
	// A share is taken only from a session that is over.
	RuleShareOver Rule = "share-of-a-dead-session"
	// Nobody is refused for the sake of a session that is over.
	RuleShareGone Rule = "dead-share-taken"
)

// ShareRules lists them.
var ShareRules = []Rule{RuleShareLimit, RuleShareWriter, RuleShareOver, RuleShareGone}

// The rules by which package shard says who owns a slice. They are taken out like the others;
// internal/proof/sim/shards notices.
const (
	// A slice is taken only from a session that was closed.
	RuleShardClosed Rule = "shard-closed-first"
	// The assigner proposes, and takes only from a session that it knows to be closed.
	RuleShardTaken Rule = "shard-taken-when-closed"
	// An owner is a session, not the worker that had it.
	RuleShardSession Rule = "shard-owner-is-session"
	// An owner acts only on a chunk that no failover takes back.
	RuleShardConfirm Rule = "shard-confirmed"
	// What is pushed and may be taken back starts nothing and ends nothing.
	RuleShardPush Rule = "shard-push-agrees"
	// Else a push counts as a read only where a read may not be taken back, and neither the push.
	RuleShardPushDurable Rule = "shard-push-durable"
	// And only when it is newer than all that the owner has acted on.
	RuleShardPushNewer Rule = "shard-push-newer"
	// A slice goes on only when its owner has stopped it.
	RuleShardDrained Rule = "shard-drained-first"
	// What may have been passed on stays stopped, whether an answer came or not.
	RuleShardStays Rule = "shard-stays-stopped"
	RuleShardValid Rule = "shard-while-valid"  // an owner acts only while its session is valid
	RuleShardMove  Rule = "shard-move-raises"  // a change of owner raises the token
	RuleShardSplit Rule = "shard-split-raises" // both parts of a split have higher tokens
	RuleShardMerge Rule = "shard-merge-raises" // what was merged has a higher token than both
)

// ShardRules lists them.
var ShardRules = []Rule{
	RuleShardClosed, RuleShardConfirm, RuleShardDrained, RuleShardStays, RuleShardValid, RuleShardMove, RuleShardSplit, RuleShardMerge,
}

// ShardModelRules lists those that the model check of package shard notices. The others are of
// clocks, and of how the assigner looks at sessions.
var ShardModelRules = []Rule{
	RuleShardTaken, RuleShardSession, RuleShardConfirm, RuleShardPush, RuleShardPushDurable, RuleShardPushNewer, RuleShardDrained, RuleShardStays,
	RuleShardMove, RuleShardSplit, RuleShardMerge,
}
