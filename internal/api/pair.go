package api

import (
	"time"

	"github.com/leasehold/leasehold/fence"
)

// PairState is how the instances of `leasehold standby` stand together.
type PairState string

// The states of a pair.
const (
	PairActive PairState = "active"
	// An instance holds the lease, and warms up.
	PairWarming  PairState = "not active yet"
	PairFree     PairState = "free"
	PairHeld     PairState = "held passive" // by an operator
	PairResuming PairState = "resuming"     // a hold is over, and the TTL has to pass
	// The active instance is gone, and no other has taken over yet.
	PairExpired PairState = "expired"
	PairBroken  PairState = "broken"      // by an operator; the active instance hasn't let go yet
	PairHanded  PairState = "handed over" // to an instance that hasn't confirmed it yet
)

// What instances say that they do.
const (
	InstanceActive  = "active"
	InstancePassive = "passive"
	InstanceWarming = "warming up"
)

// Pair is the instances of `leasehold standby` that share a lease, and which of them is active.
type Pair struct {
	Lease string    `json:"lease"` // the name of the lease
	State PairState `json:"state"` // how the pair stands
	// The podIdentifier of the instance that holds the lease, where it says so.
	Pod    string `json:"pod,omitempty"`
	Region string `json:"region,omitempty"` // where that instance runs
	Owner  string `json:"owner,omitempty"`  // the id under which it holds the lease
	// The fencing token of the term, or of the last one.
	Token fence.Token `json:"token"`
	// When the term began, or the last one ended, by the wall clock of who wrote that.
	Since *time.Time `json:"since,omitempty"`
	// An operator's word: who holds the pair passive, and why.
	Note string `json:"note,omitempty"`
	// How long a term lasts past its last renewal; absent where nobody says so.
	TTL *Seconds `json:"ttl,omitempty"`
	// Settled says of a pair that is held passive whether certainly no instance is active.
	Settled bool `json:"settled,omitempty"`
	// Instances are those that answered when they were asked last.
	Instances []Instance `json:"instances,omitempty"`
	// When the server asked the instances last; absent while it has not.
	Asked *time.Time `json:"asked,omitempty" on:"http"`
	// Changes are those of who is active, the latest first: the last 8.
	Changes []PairChange `json:"changes,omitempty"`
}

// Instance is one that has answered.
type Instance struct {
	Pod    string `json:"pod"`              // its podIdentifier
	Region string `json:"region,omitempty"` // where it runs
	Owner  string `json:"owner"`            // its id as a holder
	// What it does: active, passive or warming up.
	Status string `json:"status"`
	// What a passive instance waits for.
	Waits string `json:"waits_for,omitempty"`
	// How far its wall clock and the store's are apart at least; absent where the store doesn't
	// tell its own.
	ClockApart *float64 `json:"clock_apart_seconds,omitempty"`
	// The TTL of its lease; earlier versions don't say.
	TTL float64 `json:"ttl_seconds,omitempty"`
	// Its waitTimeInSeconds; earlier versions don't say.
	WaitTime float64 `json:"wait_time_seconds,omitempty"`
}

// PairChange is a change of who is active.
type PairChange struct {
	// When the new term began, by its holder's wall clock; absent of an instance of Admiral itself,
	// which doesn't say.
	At *time.Time `json:"at,omitempty"`
	// Which pod was active before: empty for none, and SKIP-LEASE-POD for an operator's hold.
	From string `json:"from"`
	To   string `json:"to"`            // which pod is active since, or SKIP-LEASE-POD
	Why  string `json:"why,omitempty"` // why the term before ended
	// For how long nobody was active, by the wall clocks of both.
	Gap *Seconds `json:"gap_seconds,omitempty"`
	// The bound of that, where the term before expired: nobody knows when its holder ended.
	GapAtMost *Seconds `json:"gap_at_most_seconds,omitempty"`
}

// Pairs is the answer of GET /v1/pairs.
type Pairs struct {
	Pairs []Pair `json:"pairs"` // those that the caller may read, by name
}

// SwitchoverRequest is the body of POST /v1/pairs/{name}/switchover.
type SwitchoverRequest struct {
	To string `json:"to"` // the podIdentifier of the instance that is to be active
	// The term to end: the switchover is refused if another one has begun. Without it, any.
	Token fence.Token `json:"token,omitempty"`
	// How long the instances have: 30 s by default.
	Wait *Seconds `json:"wait,omitempty"`
}

// HoldRequest is the body of POST /v1/pairs/{name}/hold.
type HoldRequest struct {
	Reason string `json:"reason"` // why nobody may be active, for people
	// The term to end: the hold is refused if another one has begun. Without it, any.
	Token fence.Token `json:"token,omitempty"`
	// How long to wait until the instance that was active has certainly stopped, which takes the
	// TTL: the answer doesn't wait by default.
	Wait *Seconds `json:"wait,omitempty"`
}
