package seeded

// Rule names one safety rule of the protocol. Each is taken out by a seeded bug of its name
// (internal/proof/mutate), in builds for tests only, so that the simulator and the model check can
// show that they notice.
type Rule string

// The rules.
const (
	RuleSent        Rule = "deadline-from-sent"      // validity counts from before the request, not from the reply
	RuleFirstSent   Rule = "deadline-from-first"     // of an attempt's several requests, from the first
	RuleMargin      Rule = "holder-margin"           // the holder leaves a margin of the TTL
	RuleWholeTTL    Rule = "taker-waits-ttl"         // the taker waits the whole TTL
	RuleSeen        Rule = "observed-not-written"    // the taker counts from its own observation, not from a wall clock in the record
	RuleNonce       Rule = "own-nonce"               // a write of one's own is recognised when its reply was lost
	RuleOwnTerm     Rule = "own-older-term"          // one's own older term is never adopted
	RuleClone       Rule = "nonce-not-owner"         // one's own record is known by its nonce, not by the owner id
	RuleKeepToken   Rule = "token-kept-on-release"   // a free record keeps its token
	RuleRaiseToken  Rule = "token-raised"            // every change of ownership raises the token
	RuleClockToken  Rule = "token-over-wipe"         // a token is at least the time in milliseconds
	RuleFence       Rule = "session-fenced-first"    // an abandoned session is closed before a lease of it is taken
	RuleOnce        Rule = "session-made-once"       // a session's record is made, never taken
	RuleConflict    Rule = "conflict-is-loss"        // a renewal that meets another's version ends the hold
	RuleRestored    Rule = "restored-is-loss"        // a hold whose record is gone, or came back from a backup, is not renewed
	RuleExactTerm   Rule = "release-exact-term"      // a release frees its own term only
	RuleLateAnswer  Rule = "late-answer-ignored"     // an answer after the deadline revives nothing
	RuleLateClaim   Rule = "late-claim-not-held"     // a claim that took longer than its validity isn't held
	RuleSessionHeld Rule = "session-checked"         // a claim under a session that is over isn't held
	RuleConfirm     Rule = "offer-confirmed"         // a hand-off counts from a write of the successor's own
	RuleOfferToken  Rule = "offer-under-new-token"   // what is handed over is taken under a token of its own
	RuleSessionPoll Rule = "session-looked-at"       // a waiter looks at the session of what it waits for every third of a TTL
	RuleMarkChain   Rule = "mark-names-its-version"  // a mark is taken for one on one's own record only if it says so
	RuleBroken      Rule = "broken-not-renewed"      // a broken hold isn't renewed
	RuleStopFirst   Rule = "stop-before-release"     // work has stopped before the name is freed (the driver's rule)
	RuleNotice      Rule = "session-told-of-break"   // a session learns that a lease of it was broken (the driver's rule)
	RuleEarlyNotice Rule = "notice-outlives-claim"   // a break that a session learns of before the claim's answer counts (the driver's)
	RuleBreakStays  Rule = "break-outlives-notice"   // a notice takes no break off a session's record
	RuleSettle      Rule = "session-lease-settled"   // what a session keeps is let go for certain (the driver's rule)
	RuleCapped      Rule = "request-within-hold"     // no request of a holder outlives its validity
	RuleFirstCopy   Rule = "first-copy-counts"       // validity counts from the first copy of a request that is sent again beside
	RuleCopyNonce   Rule = "copy-by-its-nonce"       // what a second copy of a renewal meets is its success only under the nonce of both
	RuleSessionTold Rule = "session-loss-told"       // the leases of a session hear of its end (the driver's rule)
	RuleToldOnce    Rule = "end-told-once"           // the end of a term is told once (the driver's rule)
	RuleStaysOver   Rule = "over-stays-over"         // a term that its program found over is not brought back by a late renewal (the driver's rule)
	RuleLooked      Rule = "outsider-ends-term"      // what a record says in the place of a term that a session keeps ends that
	RuleToldAgain   Rule = "notice-told-again"       // a server tells a session of a break until the lease is let go
	RuleFollowed    Rule = "follower-judges-session" // who follows judges what a session keeps by the session's age, not the record's
	RuleFollowDead  Rule = "follower-wakes"          // who follows looks up when the session's renewals have stopped for its TTL
	RuleFollowBoth  Rule = "follower-hears-both"     // who follows hears of the name as well as of the session
	RuleSecondKey   Rule = "second-key-told"         // what a wait for two keys found is told of the key that it is of (the driver's rule)
	RulePushed      Rule = "push-after-all-shown"    // a change that is pushed counts only after all that the handle has shown (the engine's rule)
	RuleGuard       Rule = "guard-remembers"         // a guard remembers the highest token that it accepted (the guard's rule)
	RuleTwin        Rule = "refused-copy-unknown"    // the refusal of one copy of a request isn't the request's (the engine's rule)
	RuleReplica     Rule = "settled-by-replica"      // what only the primary has settles nothing (the engine's rule)
	RuleCAS         Rule = "conditional-write"       // every write names the version it replaces (the store's rule)
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
	RuleShareLimit  Rule = "shares-within-limit"     // the weights of all holders never add up to more than the limit
	RuleShareWriter Rule = "writer-excludes-readers" // a writer has to wait for the readers
	RuleShareOver   Rule = "share-of-a-dead-session" // a share is taken only from a session that is over
	RuleShareGone   Rule = "dead-share-taken"        // nobody is refused for the sake of a session that is over
)

// ShareRules lists them.
var ShareRules = []Rule{RuleShareLimit, RuleShareWriter, RuleShareOver, RuleShareGone}

// The rules by which package shard says who owns a slice. They are taken out like the others;
// internal/proof/sim/shards notices.
const (
	RuleShardClosed  Rule = "shard-closed-first"  // a slice is taken only from a session that was closed
	RuleShardConfirm Rule = "shard-confirmed"     // an owner acts only on a chunk that no failover takes back
	RuleShardDrained Rule = "shard-drained-first" // a slice goes on only when its owner has stopped it
	RuleShardStopped Rule = "shard-stays-stopped" // a slice that may have been passed on is not served again under its token
	RuleShardValid   Rule = "shard-while-valid"   // an owner acts only while its session is valid
	RuleShardMove    Rule = "shard-move-raises"   // a change of owner raises the token
	RuleShardSplit   Rule = "shard-split-raises"  // both parts of a split have higher tokens
	RuleShardMerge   Rule = "shard-merge-raises"  // what was merged has a higher token than both
)

// ShardRules lists them.
var ShardRules = []Rule{
	RuleShardClosed, RuleShardConfirm, RuleShardDrained, RuleShardStopped, RuleShardValid, RuleShardMove, RuleShardSplit, RuleShardMerge,
}
