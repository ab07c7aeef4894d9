package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/inspect"
	"github.com/leasehold/leasehold/store/driver"
)

// inspectWithin bounds the trial of what a lease does.
const inspectWithin = 10 * time.Second

// Inspect implements [driver.Inspector]. It writes and deletes one record of its own.
func (s *Store) Inspect(ctx context.Context) []driver.Finding {
	if err := s.ready(ctx); err != nil {
		return []driver.Finding{{What: "server", Status: driver.StatusFail, Detail: err.Error()}}
	}
	clk := clock.System()
	asked, before := clk.Now(), clk.Wall()
	l, err := s.look(ctx)
	if err != nil {
		return []driver.Finding{{What: "server", Status: driver.StatusFail, Detail: err.Error()}}
	}
	s.watch.saw(l.replication)
	trip := clk.Now().Sub(asked)
	findings := []driver.Finding{
		{What: "server", Status: driver.StatusOK, Detail: "PostgreSQL " + l.version},
		{What: "identity", Status: driver.StatusOK, Detail: fmt.Sprintf("role %s in database %s", l.role, l.database)},
	}
	for _, p := range l.problems(s.opts.Table) {
		findings = append(findings, driver.Finding{What: p.what, Status: driver.StatusFail, Detail: p.detail, Advice: p.advice})
	}
	findings = append(findings, s.tryOut(ctx)...)
	return append(findings, l.durability(), s.replication(l.replication), s.connections(l), inspect.Clock(l.clock.Sub(before.Add(trip/2)), trip, s.opts.ClockStep))
}

// tryOut does what a lease does.
func (s *Store) tryOut(ctx context.Context) []driver.Finding {
	return inspect.Trial{Store: s, Within: inspectWithin, Reads: "reads by the primary"}.Run(ctx)
}

func (l look) durability() driver.Finding {
	r := l.replication
	f := driver.Finding{What: "durability", Status: driver.StatusOK, Detail: fmt.Sprintf("fsync=%s, full_page_writes=%s, synchronous_commit=%s", r.fsync, l.fullPages, r.commit)}
	switch {
	case r.fsync != "on":
		f.Status, f.Advice = driver.StatusFail, "set fsync=on: a crash of the machine may lose or corrupt everything"
	case l.fullPages != "on":
		f.Status, f.Advice = driver.StatusWarn, "set full_page_writes=on, unless the file system can't tear pages"
	case r.commit == "off":
		f.Status, f.Advice = driver.StatusWarn, "set synchronous_commit=on for this role; the engine turns it on for its own writes"
	}
	return f
}

func (s *Store) replication(r replication) driver.Finding {
	f := driver.Finding{What: "replication", Status: driver.StatusOK}
	standbys := fmt.Sprintf("%d standbys replicate", r.followers)
	if r.slots > 0 {
		standbys += fmt.Sprintf(", %d slots of standbys are idle", r.slots)
	}
	switch {
	case r.followers+r.slots == 0 && !r.waits():
		f.Detail = "no standby replicates, and none has a slot; a standby that is down and has no slot can't be seen"
	case r.async():
		f.Status = driver.StatusWarn
		f.Detail = standbys + ", and commits don't wait for a standby: a failover may lose the last writes"
		f.Advice = "name the standbys in synchronous_standby_names, or let what is guarded refuse older tokens"
	case s.watch.deaf.Load():
		f.Status = driver.StatusWarn
		f.Detail = standbys + "; commits wait for " + r.synchronous + ", but a wait that the server cancels looks like success to this pool"
		f.Advice = "call postgres.HearWarnings on the pool's configuration"
	default:
		f.Detail = standbys + "; commits wait for " + r.synchronous
	}
	return f
}

func (s *Store) connections(l look) driver.Finding {
	f := driver.Finding{What: "connections", Status: driver.StatusOK, Detail: "straight to the server"}
	if l.pooled {
		f.Status, f.Detail = driver.StatusWarn, "through a pooler: waiting polls, and statements aren't prepared"
		f.Advice = "for hand-overs at once, connect straight to the server"
	}
	return f
}
