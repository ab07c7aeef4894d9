package sim

import (
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/protocol"
)

// Config describes a run. Draw makes one from a seed; each seed has its own choice and strength of
// faults, since a run with all of them at once never gets far enough for some.
type Config struct {
	Seed     uint64
	Nodes    int           // processes at the start
	Names    int           // names that they contend for
	TTL      time.Duration // of every lease
	Duration time.Duration // of the faults; the calm after them comes on top
	Age      bool          // the store vouches for the age of a version
	Sessions bool          // some leases are kept by sessions
	BadRates bool          // clock rates beyond the bound that the margin covers
	WildWall bool          // wall clocks are set back and forth by up to an hour
	Suppose  bool          // who knows nothing of a name writes as if it were new
	Served   bool          // some programs have a server take, renew and free names for them
	Away     bool          // drawn for no seed: see WithServedSessions
	Follow   bool          // drawn for no seed: see WithFollowers
	Patient  bool          // every other node leaves free names to the others at first
	Chance   Chances
}

// Chances are the probabilities of faults: of each message the first group, of each second of a
// node's or the store's life the second.
type Chances struct {
	DropRequest, DropReply, Duplicate, Late, Reject float64

	Pause, Suspend, Crash, Clone, Rate, Wall, Partition float64
	Outage, Restart, Wipe, Restore                      float64
	Break, OddCall                                      float64
	HandOver                                            float64 // of each release
	// Drawn for no seed: see WithOutsiders.
	Outsider float64
	// Drawn for no seed: see WithFailovers.
	Detach float64
}

// Draw returns the configuration of a seed.
func Draw(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 0x1ea5e))
	ttls := []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second}
	c := Config{
		Seed: seed, Nodes: 2 + rng.IntN(3), Names: 1 + rng.IntN(2), TTL: ttls[rng.IntN(len(ttls))],
		Age: rng.IntN(3) == 0, Sessions: rng.IntN(2) == 0, BadRates: rng.IntN(8) == 0, WildWall: rng.IntN(2) == 0,
	}
	c.Duration = c.TTL * time.Duration(12+rng.IntN(16))
	often := func(most float64) float64 { // half of the faults, each at its own strength
		if rng.IntN(2) == 0 {
			return 0
		}
		return most * rng.Float64()
	}
	perTTL := 1 / c.TTL.Seconds()
	c.Chance = Chances{
		DropRequest: often(0.2), DropReply: often(0.3), Duplicate: often(0.1), Late: often(0.05), Reject: often(0.1),
		Pause: often(0.3 * perTTL), Crash: often(0.2 * perTTL), Clone: often(0.1 * perTTL), Rate: often(0.2 * perTTL),
		Wall: often(0.3 * perTTL), Partition: often(0.2 * perTTL),
		Outage: often(0.15 * perTTL), Restart: often(0.1 * perTTL), Wipe: often(0.06 * perTTL), Restore: often(0.1 * perTTL),
		Break: often(0.2 * perTTL), OddCall: often(0.2 * perTTL), HandOver: often(0.5),
	}
	// A store that forgets and wall clocks that are wrong can't both be had: tokens rise over a
	// wiped store by the time.
	if c.WildWall {
		c.Chance.Wipe, c.Chance.Restore = 0, 0
	}
	c.Suppose = rng.IntN(2) == 0
	c.Patient = rng.IntN(4) == 0
	c.Chance.Suspend = often(0.2 * perTTL)
	c.Served = rng.IntN(4) == 0
	return c
}

// Aim returns c with more of the faults without which it takes long to notice that a rule is
// switched off. Most need none.
func (c Config) Aim(off seeded.Rule) Config {
	perTTL := 1 / c.TTL.Seconds()
	switch off {
	case seeded.RuleTwin, seeded.RuleEarlyNotice, seeded.RuleBreakStays, seeded.RuleSettle, seeded.RuleSessionHeld, seeded.RuleSessionPoll:
		c.Served = false // sessions alone
	}
	switch off {
	case seeded.RuleOfferToken:
		c.WildWall, c.Chance.Wipe, c.Chance.Clone = false, 0, 0
		c.Chance.Restore, c.Chance.HandOver, c.Chance.Crash = perTTL, 1, 0
	case seeded.RuleLooked:
		c = c.WithServedSessions().WithOutsiders()
		c.BadRates = false
	case seeded.RuleToldAgain:
		c = c.WithServedSessions()
		c.BadRates = false
		c.Chance.Break, c.Chance.DropReply = perTTL, 0.4
	case seeded.RuleFollowed, seeded.RuleFollowDead, seeded.RuleFollowBoth, seeded.RuleSecondKey, seeded.RulePushed:
		c = c.WithFollowers()
		c.Served, c.BadRates, c.Chance.Clone = false, false, 0
	case seeded.RuleReplica:
		c = c.WithFailovers()
		c.BadRates = false
	case seeded.RuleSettle:
		c.Sessions, c.BadRates, c.Chance.Clone = true, false, 0
		c.Chance.Outage, c.Chance.OddCall, c.Chance.Late, c.Chance.DropReply = perTTL, 2*perTTL, 0.2, 0.5
	case seeded.RuleLateAnswer: // an answer that is there when a process goes on, before its timers
		c.BadRates = false
		c.Chance.Pause, c.Chance.Late, c.Chance.DropReply = 2*perTTL, 0.1, 0
	case seeded.RuleSessionHeld:
		c.Sessions, c.BadRates, c.Chance.Clone = true, false, 0
		c.Chance.Pause, c.Chance.Late = 2*perTTL, 0.1
	case seeded.RuleSessionPoll:
		c.Sessions, c.BadRates, c.Chance.Clone = true, false, 0
		c.Chance.Crash = 0.5 * perTTL
	case seeded.RuleTwin:
		c.Sessions, c.BadRates, c.Chance.Clone = true, false, 0
		c.Chance.Duplicate, c.Chance.Reject, c.Chance.DropReply = 0.3, 0.3, 0.3
	case seeded.RuleEarlyNotice, seeded.RuleBreakStays:
		c.Sessions, c.BadRates, c.Chance.Clone = true, false, 0
		c.Chance.Break, c.Chance.Late = perTTL, 0.1
	}
	return c
}

func (c Config) timing() protocol.Timing { return protocol.Timing{TTL: c.TTL}.WithDefaults() }
