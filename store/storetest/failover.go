package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// RunFailovers checks an engine that is replicated. It checks what only the primary has, and what
// leases on the engine are worth when the primary dies. The instances have Detach, Attach and
// FailOver. LEASEHOLD_FAILOVERS is how many primaries die, 2 by default. Each failover takes some
// 20 s with a real server.
func RunFailovers(t *testing.T, factory Factory) {
	rounds := 2
	if text := os.Getenv("LEASEHOLD_FAILOVERS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("LEASEHOLD_FAILOVERS=%q: want a number of rounds from 1", text)
		}
	}
	try := func(run func(context.Context, *env) error) func(*testing.T) {
		return func(t *testing.T) {
			inst := factory(t)
			ctx, cancel := limited(t)
			defer cancel()
			if err := (check{run: run}).try(ctx, inst, t.Logf); err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("Unreplicated", try(unreplicated))
	for i := range rounds {
		t.Run(fmt.Sprint("Failover", i+1), try(failover))
	}
}

// leaseTTL is that of the leases which a failover ends.
const leaseTTL = 3 * time.Second

// failover: two processes want two names again and again, while the replica of their store is cut
// off and then takes its primary's place. There are never two holders of a name, no guard goes by a
// term that is over, and nothing that was acknowledged is lost. While nothing is replicated, nobody
// is given a name, none is renewed, and no guard is answered.
func failover(ctx context.Context, e *env) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	contest := &contest{env: e}
	defer func() {
		cancel()
		contest.contenders.Wait()
		for _, p := range contest.processes {
			err = errors.Join(err, p.m.Close())
		}
	}()
	for _, name := range []string{"a", "b"} {
		if err := contest.join(ctx, name); err != nil {
			return err
		}
	}
	contest.want(ctx, contest.processes[0], "kept")
	first := func() bool {
		return contest.holders("kept") == 1 && contest.admitted(ctx, contest.newest("kept")) == nil
	}
	if err := contest.until(ctx, "a first holder whom the guard admits", first); err != nil {
		return err
	}
	old := contest.newest("kept")
	if err := e.Detach(); err != nil {
		return err
	}
	if err := contest.admitted(ctx, old); err == nil {
		return errors.New("a guard is answered by what is cut off")
	}
	contest.want(ctx, contest.processes[1], "kept")
	for _, p := range contest.processes {
		contest.want(ctx, p, "claimed")
	}
	if err := contest.apart(ctx, old); err != nil {
		return err
	}
	if err := e.FailOver(); err != nil {
		return err
	}
	settled := func() bool { return contest.holders("kept") == 1 && contest.holders("claimed") == 1 }
	if err := contest.until(ctx, "a holder of each name after the failover", settled); err != nil {
		return err
	}
	if err := contest.renewed(ctx); err != nil {
		return err
	}
	return contest.nothingIsLost(ctx)
}

// contest is the processes that want names of a store, and what they were given.
type contest struct {
	*env
	processes  []process
	writes     acknowledged
	contenders sync.WaitGroup

	mu   sync.Mutex
	told []*lease.Lease
}

type process struct {
	st    store.Store
	m     *lease.Manager
	guard *fence.Online
}

func (c *contest) clock() clock.Clock {
	if c.Clock == nil {
		return clock.System()
	}
	return c.Clock
}

// join has another process, with a handle of its own.
func (c *contest) join(ctx context.Context, name string) error {
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	st = c.writes.watch(st)
	m, err := lease.NewManager(st, lease.Options{TTL: leaseTTL, Name: name, Clock: c.clock()})
	if err != nil {
		return err
	}
	guard, err := fence.NewOnline(lease.Source(st), fence.OnlineOptions{})
	c.processes = append(c.processes, process{st, m, guard})
	return err
}

// want has a process acquire a name, again each time that it is lost.
func (c *contest) want(ctx context.Context, p process, name string) {
	c.contenders.Go(func() {
		for ctx.Err() == nil {
			l, err := p.m.Acquire(ctx, name)
			if err != nil {
				continue // ctx ended, or the engine refused
			}
			c.mu.Lock()
			c.told = append(c.told, l)
			c.mu.Unlock()
			select {
			case <-l.Context().Done():
			case <-ctx.Done():
			}
		}
	})
}

// holders returns how many leases of that name are valid now.
func (c *contest) holders(name string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.told {
		if l.Name() == name && l.Check() == nil {
			n++
		}
	}
	return n
}

// newest returns the latest term of that name that a process was told of.
func (c *contest) newest(name string) (latest fence.Sequencer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.told {
		if s := l.Sequencer(); l.Name() == name && s.Token > latest.Token {
			latest = s
		}
	}
	return latest
}

// until looks, all the time, that no name has two holders, until what is waited for is there.
func (c *contest) until(ctx context.Context, what string, there func() bool) error {
	for began := c.clock().Now(); ; {
		for _, name := range []string{"kept", "claimed"} {
			if n := c.holders(name); n > 1 {
				return fmt.Errorf("%s has %d holders at one instant", name, n)
			}
		}
		if there() {
			return nil
		}
		if c.clock().Now().Sub(began) > 2*time.Minute {
			return fmt.Errorf("after 2 minutes there is not yet %s", what)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// admitted returns what the first process's guard says of a term.
func (c *contest) admitted(ctx context.Context, term fence.Sequencer) error {
	ctx, cancel := context.WithTimeout(ctx, shortly)
	defer cancel()
	return c.processes[0].guard.Check(ctx, term)
}

// apart lets the lease of that term run out while nothing more is replicated, and the time pass in
// which another could be given.
func (c *contest) apart(ctx context.Context, old fence.Sequencer) error {
	free := func() bool { return c.holders("kept") == 0 }
	if c.Majority {
		free = func() bool { return c.newest("kept").Token > old.Token && c.holders("claimed") == 1 }
	}
	if err := c.until(ctx, "an end of the lease that can't be renewed", free); err != nil {
		return err
	}
	began := c.clock().Now()
	if err := c.until(ctx, "", func() bool { return c.clock().Now().Sub(began) > leaseTTL }); err != nil {
		return err
	}
	if err := c.admitted(ctx, old); err == nil {
		return fmt.Errorf("a guard admits token %d, whose term is over", old.Token)
	}
	if n := c.holders("kept") + c.holders("claimed"); n > 0 && !c.Majority {
		return fmt.Errorf("%d names are held by what only the primary has", n)
	}
	return nil
}

// renewed lets each lease be renewed.
func (c *contest) renewed(ctx context.Context) error {
	began := c.clock().Now()
	return c.until(ctx, "", func() bool { return c.clock().Now().Sub(began) > leaseTTL })
}

// nothingIsLost checks that what is stored at the end comes after all that was acknowledged and
// announced.
func (c *contest) nothingIsLost(ctx context.Context) error {
	n := 0
	for _, name := range []string{"kept", "claimed"} {
		rec, err := patiently(ctx, func(ctx context.Context) (store.Record, error) { return store.Confirm(ctx, c.processes[1].st, name) })
		if err != nil {
			return err
		}
		if newest := c.newest(name).Token; rec.Token < newest {
			return fmt.Errorf("%s: token %d was announced, and %d is stored", name, newest, rec.Token)
		}
		before, err := c.writes.before(rec)
		if err != nil {
			return err
		}
		n += before
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logf("%d terms, %d writes acknowledged, 0 lost, 0 instants with two holders", len(c.told), n)
	return nil
}
