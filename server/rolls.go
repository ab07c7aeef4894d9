package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// A roll call is a write to the store, and so is each answer: however many look at a pair, its
// instances are asked once in rollEvery. They have rollLeast to answer, or twice as long as the
// last answer took. They have rollMost where one is missing, and now and then for others that have
// come: some look at their table every 13 s only.
const (
	rollEvery = 15 * time.Second
	rollLeast = 2 * time.Second
	rollMost  = 20 * time.Second
	rollFull  = 4 // of so many calls one has rollMost
	// rollAgain is how soon they are asked again once another term has begun, or where the holder
	// answered in the moment in which it took the lease, or was letting go of it.
	rollAgain = 2 * time.Second
	// maxRolls bounds how many pairs' answers are remembered.
	maxRolls = 256
)

// rolls are what the instances of pairs said last. Its zero value is ready.
type rolls struct {
	mu  sync.Mutex
	all map[string]*roll // by the name of the lease
}

type roll struct {
	busy      bool
	begun     clock.Instant // when they were asked last
	next      clock.Instant // when they may be asked again
	term      fence.Token   // of the lease, when they are asked
	asked     time.Time     // when they were that answered, by the wall clock; zero if never
	instances []api.Instance
	answered  fence.Token   // the term in which they did
	took      time.Duration // until the last answer
	missing   bool          // one that had answered before did not, or none did
	calls     int
}

// known returns what the instances of a pair said last, when they were asked, and in which term.
func (r *rolls) known(name string) ([]api.Instance, time.Time, fence.Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.all[name]; one != nil {
		return slices.Clone(one.instances), one.asked, one.answered
	}
	return nil, time.Time{}, 0
}

// turns reports whether the holder has answered, in its own term, that it is passive: it will be
// active soon, or the lease will be another's.
func (r *roll) turns(rec store.Record) bool {
	return r.answered == rec.Token && slices.ContainsFunc(r.instances, func(i api.Instance) bool {
		return i.Owner == rec.Owner && i.Status == api.InstancePassive
	})
}

// look has the instances of a pair, whose lease is rec, asked if that is some time ago, or in
// another term.
func (r *rolls) look(s *Server, name string, rec store.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.clk.Now()
	one := r.all[name]
	if one == nil {
		if one = (&roll{missing: true, next: clock.Ended}); r.all == nil {
			r.all = map[string]*roll{}
		}
		if len(r.all) >= maxRolls {
			maps.DeleteFunc(r.all, func(_ string, old *roll) bool { return !old.busy })
		}
		r.all[name] = one
	}
	soon := one.term != rec.Token || one.turns(rec)
	if one.busy || now < one.next && (!soon || now.Sub(one.begun) < rollAgain) {
		return
	}
	wait := rollMost
	if !one.missing && one.calls%rollFull != 0 {
		wait = min(max(rollLeast, 2*one.took), rollMost)
	}
	one.begun, one.term = now, rec.Token
	one.calls++
	one.busy = s.background.start(func() { r.ask(s, name, one, rec.Token, wait) })
}

// ask asks the instances of a pair. Answers replace those of the call before when it is over, or
// once there are as many.
func (r *rolls) ask(s *Server, name string, one *roll, term fence.Token, wait time.Duration) {
	begun, wall := s.clk.Now(), s.clk.Wall()
	op := admiral.Operator{Store: s.st, Config: admiral.Config{LeaseName: name}, By: "server", Clock: s.clk}
	took := time.Duration(0)
	tell := func(some []admiral.Instance) {
		took = s.clk.Now().Sub(begun)
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(some) > 0 && len(some) >= len(one.instances) {
			one.instances, one.asked, one.answered = instancesOf(some), wall, term
		}
	}
	all, err := op.Roll(s.closing, admiral.RollOptions{Wait: wait, Behind: rollMost, OnAnswer: tell})
	r.mu.Lock()
	defer r.mu.Unlock()
	one.busy, one.next = false, s.clk.Now().Add(rollEvery)
	if err != nil { // another operator asks, or the store doesn't answer: what is known gets older
		return
	}
	one.missing = len(all) < max(len(one.instances), 1)
	one.instances, one.asked, one.answered, one.took = instancesOf(all), wall, term, took
}

func instancesOf(some []admiral.Instance) []api.Instance {
	all := make([]api.Instance, len(some))
	for i, one := range some {
		all[i] = api.Instance(one)
	}
	return all
}
