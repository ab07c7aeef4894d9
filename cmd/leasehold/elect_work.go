package main

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/driver"
)

// envLeader tells a command who leads.
const envLeader = "LEASEHOLD_LEADER"

// lead runs the active command for one term.
func (e *elector) lead(ctx context.Context, term election.Term) {
	e.words.say("%s: leading (token %d)", e.name, term.Token)
	e.leading.Store(true)
	defer e.leading.Store(false)
	e.follower.bar() // one command at a time
	defer e.follower.allow()
	if ctx.Err() != nil {
		return
	}
	p, err := e.start(e.active, "active", term.Leader, &term)
	if err != nil {
		e.endLife(err)
		return
	}
	e.began = e.a.clk.Now()
	tell := func(n supervise.Notice) { e.words.notice(n, "the active command", leftOf(term, e.a.clk)) }
	lost := supervise.WatchUntil(ctx.Done(), term, p, e.timing, e.a.clk, tell)
	switch {
	case lost || ctx.Err() != nil:
	case e.opts.onExit == onExitExit:
		e.endLife(programError(p.Status()))
	default:
		e.endLife(rejoinError(p.Status()))
	}
}

// newLeader has the passive command follow another leader.
func (e *elector) newLeader(l election.Leader) {
	if l.Owner == e.m.Owner() {
		return
	}
	e.words.say("%s: %s leads (token %d)", e.name, l.Owner, l.Token)
	e.follower.follow(l.Owner)
}

// stopping says why leading ends.
func (e *elector) stopping(_ election.Term, cause error) {
	if own := new(exitError); errors.Is(cause, errRejoin) || errors.As(cause, &own) {
		return // what the active command did
	}
	e.words.say("%s: stepping down: %v", e.name, cause)
}

// stuck says that the active command can't be ended. The token is what helps then.
func (e *elector) stuck(election.Term, error) {
	e.words.say("%s: the active command has not ended, though it was killed", e.name)
}

// event is told what becomes of the session, and of what it keeps.
func (e *elector) event(ev lease.Event) {
	session := lease.OwnerOf(ev.Key) != ""
	if session {
		e.sessions.Store(ev.Key, nil)
	}
	switch {
	case ev.State == lease.StateJeopardy && e.leading.Load():
		e.words.event(ev)
	case ev.State == lease.StateJeopardy:
		e.words.say("%s: the candidacy can't be renewed, trying again: %s", e.name, oneLine(ev.Err))
	case ev.State == lease.StateLost && session: // and all that it keeps
		e.words.say("%s: the candidacy is lost, beginning another one: %s", e.name, oneLine(ev.Err))
	}
}

func (e *elector) trouble(err error) { e.words.retry(e.name, err) }

// follow runs the passive command until ctx is done, and is over when it is gone.
func (e *elector) follow(ctx context.Context, leader string) {
	if e.opts.passive == "" {
		return
	}
	p, err := e.start(shell(e.opts.passive), "passive", leader, nil)
	if err != nil {
		e.words.say("the passive command can't be run: %v", err)
		return
	}
	supervise.WatchUntil(ctx.Done(), endless{}, p, e.timing, e.a.clk, func(n supervise.Notice) {
		if n != supervise.Asked {
			e.words.notice(n, "the passive command", 0)
		}
	})
	if s := p.Status(); ctx.Err() == nil {
		e.words.say("the passive command has ended with code %d; it is started again for the next leader", s.Code)
	}
}

// endless is the lease of a command that needs none.
type endless struct{}

func (endless) ValidUntil() clock.Instant { return clock.Never }
func (endless) Context() context.Context  { return context.Background() }

// start starts a command, whose path comes first. term is nil for the passive one.
func (e *elector) start(argv []string, role, leader string, term *election.Term) (*supervise.Process, error) {
	own := []string{envName + "=" + e.name, envStore + "=" + e.url, standby.EnvRole + "=" + role, envLeader + "=" + leader}
	if term != nil {
		sequencer, err := sequencerText(e.keys, term.Sequencer())
		if err != nil {
			return nil, err
		}
		own = append(own, envToken+"="+term.Token.String(), envHolder+"="+term.Leader, fence.EnvVar+"="+sequencer)
	}
	p, err := supervise.Start(supervise.Command{
		Path: argv[0], Args: argv[1:], Env: environment(own, envToken, envHolder, envSlot, fence.EnvVar), Clock: e.a.clk, Detached: true,
		Contain: e.a.contain(), Contained: e.words.contained, Guards: e.words.guards, Proof: driver.Proof(e.m.Store()),
	})
	if err != nil {
		return nil, startError(argv[1], err)
	}
	return p, nil
}

// follower runs a command for the leader there is, one at a time, unless it is barred. Its methods are called by several
// goroutines.
type follower struct {
	run func(ctx context.Context, leader string) // blocks until it has ended, which it does when ctx is done

	mu     sync.Mutex
	barred bool
	leader string // that is followed, or is to be when it isn't barred any more
	end    context.CancelFunc
	ended  chan struct{} // closed when the last one has ended; nil before
}

// follow runs the command for leader, when the one before has ended. It doesn't block.
func (f *follower) follow(leader string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = leader
	if !f.barred {
		f.start()
	}
}

func (f *follower) start() {
	before, end := f.ended, f.end
	if end != nil {
		end()
	}
	ctx, cancel := context.WithCancel(context.Background())
	leader, ended := f.leader, make(chan struct{})
	f.end, f.ended = cancel, ended
	go func() {
		defer close(ended)
		defer cancel()
		if before != nil {
			<-before
		}
		if ctx.Err() == nil {
			f.run(ctx, leader)
		}
	}()
}

// bar ends the command, and lets none begin until allow. It blocks until the command is gone.
func (f *follower) bar() {
	f.mu.Lock()
	f.barred, f.leader = true, ""
	f.mu.Unlock()
	f.stop()
}

// stop ends the command, and blocks until it is gone.
func (f *follower) stop() {
	f.mu.Lock()
	end, ended := f.end, f.ended
	f.mu.Unlock()
	if end != nil {
		end()
		<-ended
	}
}

// allow runs the command for the leader that was seen since bar, if there is one.
func (f *follower) allow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.barred = false
	if f.leader != "" {
		f.start()
	}
}
