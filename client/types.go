package client

import (
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// State is the state of a name, according to its record.
type State string

// The states.
const (
	Free = State(api.StateFree)
	Held = State(api.StateHeld)
	// Its holder has shown no sign of life for a whole TTL, or is known to be gone: anyone may take
	// it.
	Expired    = State(api.StateExpired)
	Broken     = State(api.StateBroken) // by an operator; its holder hasn't let go yet
	HandedOver = State(api.StateHanded) // to a holder that hasn't taken it yet
	Unreadable = State(api.StateBad)    // its record can't be read: see Lease.Err
	Declared   = State(api.StatePool)   // a pool of identities: nobody can hold its name
)

// Lease is a name, as the server shows it.
type Lease struct {
	Name     string
	State    State
	Holder   string        // the id under which it is held; "" when nobody holds it
	Token    fence.Token   // of the term, or of the last one
	TTL      time.Duration // how long the hold lasts past its last renewal
	Session  string        // that keeps it; "" when it is renewed by itself
	Acquired time.Time     // by the wall clock of the process that granted it; for people
	// From the server's answer, at most, unless it is renewed; nil where the answer had none.
	ExpiresIn *time.Duration
	// The least time for which the server has seen no sign of life; 0 unless that is more than half
	// of the TTL.
	Silent  time.Duration
	Info    map[string]string
	Note    string // who broke it or handed it over, and why
	Waiters int    // at that server

	Kind    store.Kind // what the name is; "" for a lease
	Limit   int        // how many slots a semaphore has
	Holders []Share    // who shares it; some may have died within the last TTL

	// The one that ends last; nil unless the election of that name is paused.
	Pause      *election.Pause
	Pauses     []election.Pause // all, if there are several; lists and events have none
	Candidates []Candidate      // who stands for election; lists and events have none

	// The last turn of a job in which its command was begun; nil for a name that is no job, and
	// from an earlier server.
	Turn          *Turn
	CompletedTurn *Turn // the last turn in which the command has ended, if that is another one

	Err error // why the record, or that of the election, can't be read; nil when it can
}

// Share is a hold of a name that several may hold, or a wait for one.
type Share struct {
	Holder  string      // the id under which it is held
	Token   fence.Token // of the share
	Write   bool        // it is the writer's of a read/write lock
	Slot    int         // of a semaphore, from 0 on; see [lock.Hold.Slot]
	Weight  int         // how many slots of a semaphore it takes; 1 of every other share
	Since   time.Time   // when the wait for it began, by the holder's wall clock; for people
	Session string      // that keeps it
}

func shareOf(w api.Share) Share {
	s := Share{
		Holder: w.Holder, Token: w.Token, Write: w.Mode == api.ModeWrite, Weight: max(w.Weight, 1), Since: w.Since, Session: w.Session,
	}
	if w.Slot != nil {
		s.Slot = *w.Slot
	}
	return s
}

// Candidate is a candidate of an election. It may have died within the last TTL.
type Candidate struct {
	Name       string
	Holder     string // the id under which it holds the name when it leads
	Leads      bool   // it held the name when the server answered
	Priority   int
	Zone       string
	Ineligible bool
	Since      time.Time // by its wall clock; for people
}

func candidateOf(w api.Candidate) Candidate {
	return Candidate{
		Name: w.Name, Holder: w.Holder, Leads: w.Role == api.RoleLeader, Priority: w.Priority, Zone: w.Zone, Ineligible: w.Ineligible,
		Since: w.Since,
	}
}

// Grant is a term that the server has granted, or renewed. It isn't renewed by itself: see the
// package's doc.
type Grant struct {
	Lease
	// Sequencer is what requests to the guarded resource carry, in the header [fence.Header].
	Sequencer string
	// Secret proves the term to the server: Renew and Release send it. No other answer has it.
	Secret Secret
	// ValidUntil is until when the holder may rely on it, by the client's clock, counted from
	// before the request was sent. It is [clock.NoDeadline] when a session keeps it: then the
	// session's counts.
	ValidUntil clock.Instant
	RenewEvery time.Duration // how often to renew it; 0 when a session keeps it
	Waited     time.Duration // for the name, at the server

	clk clock.Clock
}

// Secret proves a grant or a session to the server. Formatted it is "[secret]", so that no log has
// it; string(s) is the text.
type Secret string

// String returns "[secret]".
func (Secret) String() string { return "[secret]" }

// GoString returns "[secret]".
func (Secret) GoString() string { return "[secret]" }

// Left returns how long the holder may still rely on the grant; 0 when that is over. It doesn't ask
// the server. The resource's guard and the next renewal find a grant that was broken or taken
// meanwhile.
func (g Grant) Left() time.Duration { return left(g.clk, g.ValidUntil) }

// Session is one heartbeat for many leases, kept by the server's store.
type Session struct {
	ID         string
	Holder     string // the id under which its leases are held
	Token      fence.Token
	TTL        time.Duration
	ValidUntil clock.Instant // as that of a [Grant], for all the leases that the session keeps
	RenewEvery time.Duration
	// Broken are leases of the session that an operator broke, with their tokens: stop the work
	// under them, and release them. Each renewal reports them until that is done.
	Broken map[string]fence.Token
	// Lost are leases of the session, by name, whose records an outsider deleted, edited or
	// restored: stop the work under them. Each renewal reports them until they are released or
	// acquired again.
	Lost map[string]Loss
	// Secret proves the session to the server: each call that uses the session sends it. No other
	// answer has it.
	Secret Secret

	clk   clock.Clock
	looks bool // the server looks at what the renewals name
}

// Loss is the reason why a lease of a session is over though the session lives.
type Loss struct {
	Token  fence.Token
	Cause  lease.Cause // [lease.CauseTaken] or [lease.CauseBroken]
	Reason string      // what the lease's record has instead
}

// Left returns for how long the holder may go on relying on what the session keeps; 0 when that is
// over.
func (s Session) Left() time.Duration { return left(s.clk, s.ValidUntil) }

func left(clk clock.Clock, until clock.Instant) time.Duration {
	if clk == nil { // one that no server has granted
		return 0
	}
	return max(until.Sub(clk.Now()), 0)
}

// Term is an ended term of a name. Its times are by the wall clocks of their writers, for people.
type Term struct {
	Holder string
	Token  fence.Token
	From   time.Time
	Until  time.Time // zero while it lasts
	Ended  string    // why
}

// TurnState is how a turn of a job stands.
type TurnState string

// The states of a turn.
const (
	TurnRunning = TurnState(api.TurnRunning) // the command runs
	TurnDone    = TurnState(api.TurnDone)    // its exit code was 0
	TurnFailed  = TurnState(api.TurnFailed)  // its exit code was another one
	// Its holder no longer has the name, and has written no exit code.
	TurnLost = TurnState(api.TurnLost)
)

// Turn is a turn of a job ("leasehold run --once-per", "--tick"): a span of time in which its
// command runs once, on one of several machines.
type Turn struct {
	At     string // when it begins, as a clock on the wall of the zone shows it: 2026-11-24 03:00
	Zone   string
	State  TurnState
	Code   *int   // the exit code; nil until the command has ended
	Holder string // the id under which the name was held
	Token  fence.Token
	Begun  time.Time // by the holder's wall clock; for people
	Ended  time.Time // likewise; zero until it has ended
	// When the turn after it begins, as was known when it was begun; zero when there is none.
	Next time.Time
}

func turnOf(w *api.Turn) *Turn {
	if w == nil {
		return nil
	}
	return &Turn{w.At, w.Zone, TurnState(w.State), w.Code, w.Holder, w.Token, w.Begun, w.Ended, w.Next}
}

// Waiter is a place in a queue.
type Waiter struct {
	Holder string
	Waited time.Duration
	Left   time.Duration // until it gives up
	Info   map[string]string
}

// Verification is the server's answer about a sequencer.
type Verification struct {
	Name    string
	Holder  string
	Token   fence.Token
	Current bool   // the term is the present one
	Now     *Lease // the state of the name instead; nil when the term is current
	Reason  string // why it isn't
}

func leaseOf(w api.Lease) Lease {
	l := Lease{
		Name: w.Name, State: State(w.State), Holder: w.Holder, Token: w.Token, TTL: value(w.TTL), Session: w.Session,
		Info: w.Info, Note: w.Note, Waiters: w.Waiters, Kind: w.Kind, Limit: w.Limit, ExpiresIn: (*time.Duration)(w.ExpiresIn),
		Silent: value(w.Silent), Turn: turnOf(w.Turn), CompletedTurn: turnOf(w.CompletedTurn),
	}
	if w.Acquired != nil {
		l.Acquired = *w.Acquired
	}
	for _, s := range w.Holders {
		l.Holders = append(l.Holders, shareOf(s))
	}
	if w.Paused != nil {
		l.Pause = new(election.Pause(*w.Paused))
	}
	for _, p := range w.Pauses {
		l.Pauses = append(l.Pauses, election.Pause(p))
	}
	for _, c := range w.Candidates {
		l.Candidates = append(l.Candidates, candidateOf(c))
	}
	if w.Problem != nil {
		l.Err = w.Problem.Err()
	}
	return l
}

// grantOf returns a grant as the client's clock has it: sentAt is from before the request was sent.
func (c *Client) grantOf(w api.Grant, sentAt clock.Instant) Grant {
	g := Grant{
		Lease: leaseOf(w.Lease), Sequencer: w.Sequencer, Secret: Secret(w.Secret), ValidUntil: clock.NoDeadline, RenewEvery: value(w.RenewEvery),
		Waited: value(w.Waited), clk: c.clk,
	}
	if w.ValidFor != nil {
		g.ValidUntil = sentAt.Add(time.Duration(*w.ValidFor))
	}
	return g
}

func (c *Client) sessionOf(w api.Session, sentAt clock.Instant) Session {
	s := Session{
		ID: w.Session, Holder: w.Holder, Token: w.Token, TTL: time.Duration(w.TTL), RenewEvery: time.Duration(w.RenewEvery),
		ValidUntil: sentAt.Add(time.Duration(w.ValidFor)), Broken: w.Broken, Secret: Secret(w.Secret), clk: c.clk,
		looks: w.LookedAt != nil,
	}
	for name, loss := range w.Lost {
		if s.Lost == nil {
			s.Lost = map[string]Loss{}
		}
		s.Lost[name] = Loss{loss.Token, lease.Cause(loss.Cause), loss.Reason}
	}
	return s
}

// value is a duration that may be left out, as 0.
func value(s *api.Seconds) time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(*s)
}

// seconds is a duration that is left out when it is 0.
func seconds(d time.Duration) *api.Seconds {
	if d == 0 {
		return nil
	}
	s := api.Seconds(d)
	return &s
}
