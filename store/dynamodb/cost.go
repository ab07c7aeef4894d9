package dynamodb

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold/leasehold/store/dynamodb/internal/poll"
)

// The prices of on-demand capacity in us-east-1, in US dollars a million units, since 1 November
// 2024. A replicated write costs the same in each Region of a global table. See
// https://aws.amazon.com/dynamodb/pricing/on-demand/.
const (
	WritePrice = 0.625
	ReadPrice  = 0.125
)

// Month is the time that [Cost] estimates for: 730 hours, as AWS does.
const Month = 730 * time.Hour

// Setup is what [Cost] estimates. The zero value of a field means its default.
type Setup struct {
	Leases   int           // how many are held all the time
	Sessions int           // over how many sessions they are spread; 0: each lease renews itself
	TTL      time.Duration // 15 s by default
	Renewals float64       // per TTL: 3 by default
	Waiters  int           // how many wait, each for a name of its own or in a process of its own
	PollMax  time.Duration // Options.PollMax of the waiters: 1 s by default
	// How often a lease changes hands in a month, by a release and an acquisition: 0 by default.
	Handovers float64
	RowBytes  int // size of a row: up to 1,024 by default, for one write unit
	// Replicas of the table, each of which pays for every write: 1 by default.
	Regions    int
	WritePrice float64 // dollars a million write units; the constant by default
	ReadPrice  float64 // dollars a million read units; the constant by default
}

func (s Setup) withDefaults() Setup {
	for _, d := range []struct {
		field    *float64
		standard float64
	}{{&s.Renewals, 3}, {&s.WritePrice, WritePrice}, {&s.ReadPrice, ReadPrice}} {
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	if s.TTL == 0 {
		s.TTL = 15 * time.Second
	}
	if s.PollMax == 0 {
		s.PollMax = time.Second
	}
	if s.RowBytes == 0 {
		s.RowBytes = freeRow
	}
	if s.Regions == 0 {
		s.Regions = 1
	}
	return s
}

func (s Setup) check() error {
	for _, f := range []struct {
		name              string
		value, least, top float64
	}{
		{"leases", float64(s.Leases), 0, 1e9},
		{"sessions", float64(s.Sessions), 0, float64(s.Leases)},
		{"renewals per TTL", s.Renewals, 0.001, 1000},
		{"waiters", float64(s.Waiters), 0, 1e9},
		{"hand-overs a month", s.Handovers, 0, 1e9},
		{"bytes of a row", float64(s.RowBytes), 1, 400 << 10},
		{"Regions", float64(s.Regions), 1, 100},
		{"price of writes", s.WritePrice, 0, 1e6},
		{"price of reads", s.ReadPrice, 0, 1e6},
	} {
		if !(f.value >= f.least && f.value <= f.top) { // and no NaN
			return fmt.Errorf("%s %v: want %v to %v", f.name, f.value, f.least, f.top)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"TTL", s.TTL}, {"longest pause of a poll", s.PollMax}} {
		if d.value < 10*time.Millisecond || d.value > Month {
			return fmt.Errorf("%s %v: want 10ms to %v", d.name, d.value, Month)
		}
	}
	return nil
}

// Estimate is what a setup takes in a [Month].
type Estimate struct {
	Renew  Line // renewals, of the sessions or of each lease
	Look   Line // reads of the records of what sessions keep, four times in a TTL
	Change Line // releases and acquisitions
	Wait   Line // polls of the waiters
	Total  Line
	// What the same would take if each lease renewed itself: the total without sessions.
	PerHold Line
}

// Line is one part of an estimate.
type Line struct {
	Writes  float64 // write units, in all Regions together
	Reads   float64 // read units
	Dollars float64
}

// How package lease looks at the records of what a session keeps. They are read one by one up to
// lookSingly of them, and up to lookAlone where a list yields more than lookCrowd records for one
// of the session's. A list reads the whole table.
const (
	looksPerTTL = 4
	lookSingly  = 16
	lookCrowd   = 16
	lookAlone   = 1024
)

// looks returns the read units of one look of each session; read is what one record takes. The
// names are taken to have a beginning in common.
func (s Setup) looks(read float64) float64 {
	if s.Sessions == 0 {
		return 0
	}
	each := math.Ceil(float64(s.Leases) / float64(s.Sessions))
	if each <= lookSingly || each <= lookAlone && float64(s.Leases) > lookCrowd*each {
		return float64(s.Leases) * read
	}
	return float64(s.Sessions) * math.Ceil(float64(s.Leases)*float64(s.RowBytes)/(4*freeRow))
}

// Cost estimates the units and the price of a month. Storage, which for leases is next to nothing,
// and the transfer of replicated writes between Regions aren't in it.
func Cost(setup Setup) (Estimate, error) {
	s := setup.withDefaults()
	if err := s.check(); err != nil {
		return Estimate{}, err
	}
	write := math.Ceil(float64(s.RowBytes)/freeRow) * float64(s.Regions)
	read := math.Ceil(float64(s.RowBytes) / (4 * freeRow))
	perHeartbeat := s.Renewals * float64(Month) / float64(s.TTL) * write
	heartbeats := s.Sessions
	if heartbeats == 0 {
		heartbeats = s.Leases
	}
	line := func(writes, reads float64) Line {
		const million = 1e6
		return Line{writes, reads, writes/million*s.WritePrice + reads/million*s.ReadPrice}
	}
	// Release, acquire; one read by whoever doesn't remember the name.
	const writesPerChange, readsPerChange = 2, 1
	change := s.Handovers * float64(s.Leases)
	e := Estimate{
		Renew:  line(perHeartbeat*float64(heartbeats), 0),
		Look:   line(0, looksPerTTL*float64(Month)/float64(s.TTL)*s.looks(read)),
		Change: line(change*writesPerChange*write, change*readsPerChange*read),
		Wait:   line(0, float64(s.Waiters)*float64(Month)/(float64(s.PollMax)*(1-poll.Jitter/2))*read),
	}
	rest := line(e.Change.Writes+e.Wait.Writes, e.Change.Reads+e.Wait.Reads)
	e.Total = line(e.Renew.Writes+rest.Writes, e.Look.Reads+rest.Reads)
	e.PerHold = line(perHeartbeat*float64(s.Leases)+rest.Writes, rest.Reads)
	return e, nil
}
