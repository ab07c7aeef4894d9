package api

import (
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// State is how a name, or a share of one, stands.
type State string

// The states of a lease.
const (
	StateFree State = "free"
	StateHeld State = "held"
	// The holder has shown no sign of life for a whole TTL, or is known to be gone: anyone may take
	// the name.
	StateExpired State = "expired"
	StateBroken  State = "broken"      // by an operator; the holder hasn't let go yet
	StateHanded  State = "handed over" // to a holder that hasn't taken it yet
	StateBad     State = "unreadable"  // the record can't be read: nobody can hold the name
	StatePool    State = "declared"    // a pool of identities: nobody can hold its name
)

// ShareState is how a share of a name stands.
type ShareState string

// The states of a share.
const (
	ShareHeld    ShareState = "held"
	ShareExpired ShareState = "expired"
	ShareBroken  ShareState = "broken"
	ShareWaiting ShareState = "waiting"
)

// Lease is a name, and who holds it.
type Lease struct {
	Name  string `json:"name"`  // the name
	State State  `json:"state"` // how the name stands
	// Holder is the id under which the name is held; of an expired hold, who held it. It is absent
	// when nobody holds the name.
	Holder string      `json:"holder,omitempty"`
	Token  fence.Token `json:"token"`         // the fencing token of the term, or of the last one
	TTL    *Seconds    `json:"ttl,omitempty"` // how long the hold lasts past its last renewal
	// Session is the id of the session that keeps the lease. It is absent when the lease is renewed
	// by itself.
	Session string `json:"session,omitempty"`
	// When the term began, by the wall clock of who granted it.
	Acquired *time.Time `json:"acquired,omitempty"`
	// ExpiresIn is how long the hold lasts at most, unless it is renewed. Of a lease that a session
	// keeps it is what is left of the session, which lists don't say over HTTP.
	ExpiresIn *Seconds `json:"expires_in,omitempty"`
	// Silent is for how long at least the holder has shown no sign of life. It is absent up to half
	// of the TTL.
	Silent *Seconds          `json:"silent_for,omitempty"`
	Info   map[string]string `json:"info,omitempty"` // what the holder says of itself, for people
	// Who broke the hold or handed it over, and why.
	Note string `json:"note,omitempty"`
	// How many wait: over HTTP at this server, from the command in the store.
	Waiters int        `json:"waiters"`
	Kind    store.Kind `json:"kind,omitempty"`  // what the name is; absent for a lease
	Limit   int        `json:"limit,omitempty"` // how many slots a semaphore has

	// Who shares the name; some may have died within the last TTL.
	Holders []Share `json:"holders,omitempty"`
	// Who waits for a share or for a turn, in the order in which they are served.
	Waiting []Share `json:"waiting,omitempty" on:"command"`
	// The pause of the name's election that ends last.
	Paused *Pause `json:"paused,omitempty"`
	// All pauses, if there are several; of one name only, not in lists.
	Pauses []Pause `json:"pauses,omitempty"`
	// Candidates are those who stand for election, in the order in which they came; over HTTP of
	// one name only, not in lists.
	Candidates []Candidate `json:"candidates,omitempty"`
	// The terms that are over, newest first: the last 8.
	Past []Term `json:"past,omitempty" on:"command"`
	// Turn is the last turn of a job (run --once-per, run --tick) in which its command was begun.
	Turn *Turn `json:"turn,omitempty"`
	// CompletedTurn is the last turn of a job in which its command has ended; absent when that is
	// turn, or none is kept.
	CompletedTurn *Turn `json:"completed_turn,omitempty"`
	// Why the record, or that of the name's election, can't be read.
	Problem *Problem `json:"problem,omitempty"`
}

// Mode is how a share of a read/write lock is held.
type Mode string

// The modes.
const (
	ModeRead  Mode = "read"
	ModeWrite Mode = "write"
)

// Share is a hold of a name that several share, or a wait for one.
type Share struct {
	Holder string `json:"holder"` // the id of the holder, or of the waiter
	// How the share stands; HTTP doesn't look at the session, and says held or waiting.
	State ShareState `json:"state"`
	Mode  Mode       `json:"mode,omitempty"` // how a share of a read/write lock is held
	Slot  *int       `json:"slot,omitempty"` // the number of the slot of a semaphore, from 0 on
	// How many slots of a semaphore it takes, if more than 1.
	Weight int `json:"weight,omitempty"`
	// The fencing token of the share; absent while it waits.
	Token fence.Token `json:"token,omitempty"`
	// When the wait for it began, by the holder's wall clock.
	Since time.Time `json:"since"`
	// Session is the id of the session that keeps it.
	Session string `json:"session"`
}

// Pause says that nobody may lead the election of a name.
type Pause struct {
	// What names this pause when several are to be told apart.
	ID     string `json:"id,omitempty"`
	By     string `json:"by"`               // who paused the election
	Reason string `json:"reason,omitempty"` // why, for people
	// When it was paused, by the wall clock of who paused it.
	Since time.Time `json:"since"`
	// When the pause ends by itself, by the same clock; absent: it lasts until it is resumed.
	Until time.Time `json:"until,omitzero"`
}

// Role is what a candidate does.
type Role string

// The roles.
const (
	RoleLeader     Role = "leader"
	RoleCandidate  Role = "candidate"
	RoleIneligible Role = "ineligible"
)

// Candidate is one that stands for election. It may have died within the last TTL.
type Candidate struct {
	Name string `json:"name"` // what the candidate calls itself
	// The id under which it holds the name when it leads.
	Holder string `json:"holder"`
	// What it does: it leads, it may lead, or it may not.
	Role     Role   `json:"role"`
	Priority int    `json:"priority"`       // the highest leads first
	Zone     string `json:"zone,omitempty"` // where it runs
	// True while it may not lead; a leader may be so, too.
	Ineligible bool      `json:"ineligible,omitempty"`
	Since      time.Time `json:"since"` // when it came, by its wall clock
}

// Term is a term of a name: the present one, or one that is over.
type Term struct {
	Name   string      `json:"name,omitempty" on:"command"` // the name; absent within a lease
	Holder string      `json:"holder"`                      // the id under which the name was held
	Token  fence.Token `json:"token"`                       // the fencing token of the term
	// When the term began, by the holder's wall clock.
	From time.Time `json:"from"`
	// When it ended, by the wall clock of who wrote that; absent in the present term.
	Until time.Time `json:"until,omitzero"`
	Ended string    `json:"ended,omitempty"` // why it ended
	// The turn of a job whose command was begun in this term; in a history only.
	Turn *Turn `json:"turn,omitempty" on:"command"`
}

// TurnState is how a turn of a job stands.
type TurnState string

// The states of a turn.
const (
	TurnRunning TurnState = "running" // the command runs
	TurnDone    TurnState = "done"    // its exit code was 0
	TurnFailed  TurnState = "failed"  // its exit code was another one
	// Its holder no longer has the name, and has written no exit code.
	TurnLost TurnState = "lost"
)

// Turn is a turn of a job: a span of time in which its command runs once, on one of several
// machines.
type Turn struct {
	// When the turn begins, as a clock on the wall of the zone shows it: 2026-11-24 03:00.
	At string `json:"at"`
	// The time zone of the job's expression; UTC for a job without one.
	Zone  string    `json:"zone"`
	State TurnState `json:"state"` // how the turn stands
	// The exit code of the command; absent until it has ended.
	Code   *int        `json:"exit_code,omitempty"`
	Holder string      `json:"holder"` // the id under which the name was held
	Token  fence.Token `json:"token"`  // the fencing token of the term
	// When the command was begun, by the holder's wall clock.
	Begun time.Time `json:"begun"`
	// When it ended, by the same clock; absent until then.
	Ended time.Time `json:"ended,omitzero"`
	// Next is when the turn after it begins, as the job's expression said when it was begun.
	Next time.Time `json:"next,omitzero"`
}

// Verification is what is known of a sequencer, or of a token.
type Verification struct {
	Name string `json:"name"` // the name that the term is of
	// The holder that the sequencer names; of a bare token that is current, who holds the name.
	Holder  string      `json:"holder,omitempty"`
	Token   fence.Token `json:"token"`   // the token that was asked about
	Current bool        `json:"current"` // true if the term is the present one
	// How the name stands instead; absent when the term is current.
	Now *Lease `json:"now,omitempty"`
	// Why the term isn't current, or the sequencer can't be trusted.
	Reason string `json:"reason,omitempty"`
}
