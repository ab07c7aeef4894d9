package elect

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/standby"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/driver"
)

// envLeader tells a command who leads.
const envLeader = "LEASEHOLD_LEADER"

// lead runs the active command for one term.
func (e *elector) lead(ctx context.Context, term election.Term) {
	e.a.About(term.Sequencer())
	defer e.a.About(fence.Sequencer{Name: e.name})
	e.words.Say("%s: leading (token %d)", e.name, term.Token)
	e.events.Leads(e.name, term.Leader, term.Token)
	defer e.events.Stopped(e.name, term.Leader, term.Token)
	e.leading.Store(true)
	defer e.leading.Store(false)
	e.follower.bar() // one command at a time
	defer e.follower.allow()
	if ctx.Err() != nil {
		return
	}
	asked, end := e.route(ctx, term)
	defer end()
	if e.active == nil {
		<-asked
		return
	}
	p, err := e.start(e.active, "active", term.Leader, &term)
	if err != nil {
		e.endLife(err)
		return
	}
	e.began = e.a.Clock.Now()
	tell := func(n supervise.Notice) { e.words.Notice(n, "the active command", term.Left()) }
	lost := supervise.WatchUntil(asked, term, p, e.timing, e.a.Clock, tell)
	switch {
	case lost || ctx.Err() != nil:
	case e.opts.onExit == onExitExit:
		e.endLife(hold.EndError(p.Status()))
	default:
		e.endLife(rejoinError(p.Status()))
	}
}

// newLeader has the passive command follow another leader.
func (e *elector) newLeader(l election.Leader) {
	e.sight.see(l)
	if l.Owner == e.m.Holder() {
		return
	}
	e.words.SayOther(fence.Sequencer{Name: e.name, Token: l.Token, Holder: l.Owner}, "%s: %s leads (token %d)", e.name, l.Owner, l.Token)
	e.follower.follow(l.Owner)
}

// stopping says why leading ends.
func (e *elector) stopping(_ election.Term, cause error) {
	if own := new(cli.ExitError); errors.Is(cause, errRejoin) || errors.As(cause, &own) {
		return // what the active command did
	}
	e.words.Say("%s: stepping down: %v", e.name, cause)
}

// stuck says that the active command can't be ended. The token is what helps then.
func (e *elector) stuck(election.Term, error) {
	e.words.Say("%s: the active command has not ended, though it was killed", e.name)
}

// event is told what becomes of the session, and of what it keeps.
func (e *elector) event(ev lease.Event) {
	session := keyspace.OwnerOf(ev.Name) != ""
	if session {
		e.sessions.Store(ev.Name, nil)
	}
	e.sight.event(ev, session)
	if e.keeper != nil {
		e.keeper.Doubt(ev.State == lease.StateJeopardy)
	}
	switch {
	case ev.State == lease.StateJeopardy && e.leading.Load():
		e.words.Event(ev)
	case ev.State == lease.StateJeopardy:
		e.words.SayOf(slog.LevelInfo, ev, "%s: the candidacy can't be renewed, trying again: %s", e.name, cli.OneLine(ev.Err))
	case ev.State == lease.StateLost && session: // and all that it keeps
		e.words.SayOf(slog.LevelInfo, ev, "%s: the candidacy is lost, beginning another one: %s", e.name, cli.OneLine(ev.Err))
	}
}

func (e *elector) trouble(err error) { e.words.Retry(e.name, err) }

// follow runs the passive command until ctx is done, and is over when it is gone.
func (e *elector) follow(ctx context.Context, leader string) {
	if e.opts.passive == "" {
		return
	}
	p, err := e.start(shell(e.opts.passive), "passive", leader, nil)
	if err != nil {
		e.words.Say("the passive command can't be run: %v", err)
		return
	}
	supervise.WatchUntil(ctx.Done(), endless{}, p, e.timing, e.a.Clock, func(n supervise.Notice) {
		if n != supervise.Asked {
			e.words.Notice(n, "the passive command", 0)
		}
	})
	if s := p.Status(); ctx.Err() == nil {
		e.words.Say("the passive command has ended with code %d; it is started again for the next leader", s.Code)
	}
}

// endless is the lease of a command that needs none.
type endless struct{}

func (endless) ValidUntil() clock.Instant { return clock.NoDeadline }
func (endless) Context() context.Context  { return context.Background() }

// start starts a command, whose path comes first. term is nil for the passive one.
func (e *elector) start(argv []string, role, leader string, term *election.Term) (*supervise.Process, error) {
	own := []string{hold.EnvName + "=" + e.name, hold.EnvStore + "=" + e.url, standby.EnvRole + "=" + role, envLeader + "=" + leader}
	if term != nil {
		sequencer, err := cli.SequencerText(e.keys, term.Sequencer())
		if err != nil {
			return nil, err
		}
		own = append(own, hold.EnvToken+"="+term.Token.String(), hold.EnvHolder+"="+term.Leader, fence.EnvVar+"="+sequencer)
	}
	p, err := supervise.Start(supervise.Command{
		Path: argv[0], Args: argv[1:], Env: hold.Environment(own, hold.EnvToken, hold.EnvHolder, hold.EnvSlot, fence.EnvVar), Clock: e.a.Clock, Detached: true,
		Contain: e.a.Contain(), Contained: e.words.Contained, Guards: e.words.Guards, Proof: driver.Proof(e.m.Store()),
	})
	if err != nil {
		return nil, hold.StartError(argv[1], err)
	}
	return p, nil
}

// follower runs a command for the leader there is, one at a time, unless it is barred. Its methods
// are called by several goroutines.
type follower struct {
	// Blocks until it has ended, which it does when ctx is done.
	run func(ctx context.Context, leader string)

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
