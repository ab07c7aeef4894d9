package demo

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// contest is an election of the play.
type contest struct {
	name       string
	candidates []election.Options
	paused     string // why, from the beginning on
}

func contests() []contest {
	return []contest{
		{name: "search/leader", candidates: []election.Options{
			{Name: "search-a", Zone: "eu-1"},
			{Name: "search-b", Zone: "eu-2", Priority: 5},
			{Name: "search-c", Zone: "eu-3", Eligible: func() bool { return false }},
		}},
		{name: leader, candidates: []election.Options{{Name: failing, Zone: "eu-3"}, {Name: "web-4", Zone: "eu-1"}}},
		{name: "payments/settlement", paused: "the bank is closed until Monday", candidates: []election.Options{
			{Name: "settle-1", Zone: "eu-1"}, {Name: "settle-2", Zone: "eu-2"},
		}},
	}
}

// elect plays an election: its candidates lead when they may, and do as they are told. They elect
// each other, on the store that the server lends them.
func (s *stage) elect(ctx context.Context, c contest) {
	st, err := client.Open(ctx, s.base, client.Options{})
	if err != nil {
		return // the play is over
	}
	defer func() { _ = st.Close() }()
	if c.paused != "" && election.SetPause(ctx, st, c.name, election.Pause{By: "night shift", Reason: c.paused, Since: s.clk.Wall()}) != nil {
		return
	}
	var wg sync.WaitGroup
	for _, o := range c.candidates {
		wg.Go(func() { s.stand(ctx, st, c.name, o) })
	}
	wg.Wait()
}

// stand is one candidate.
func (s *stage) stand(ctx context.Context, st store.Store, name string, o election.Options) {
	m, err := lease.NewManager(st, lease.Options{TTL: 12 * time.Second, Name: o.Name, Clock: s.clk, Info: map[string]string{"doing": "leading"}})
	if err != nil {
		return // the options are right
	}
	_ = election.Run(ctx, m, name, election.Callbacks{
		OnStartedLeading: func(ctx context.Context, _ election.Term) { <-ctx.Done() },
	}, o) // it ends with the play
	_ = m.Close()
}
