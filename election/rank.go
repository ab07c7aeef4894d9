package election

import (
	"cmp"
	"slices"

	"github.com/leasehold/leasehold/internal/ballot"
)

// rank says how much a candidate is preferred: the lower, the more; by zone first.
func (o Options) rank(c ballot.Candidate) [2]int {
	zone := slices.Index(o.Zones, c.Zone)
	if zone < 0 {
		zone = len(o.Zones)
	}
	return [2]int{zone, -c.Priority}
}

// prefers reports whether a is preferred to b.
func (o Options) prefers(a, b ballot.Candidate) bool {
	x, y := o.rank(a), o.rank(b)
	return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) < 0
}

// preferred returns the best of the other candidates that may lead, if it is better than the one of
// session.
func (o Options) preferred(b ballot.Ballot, session string) (best ballot.Candidate, better bool) {
	best = ballot.Candidate{Session: session, Zone: o.Zone, Priority: o.Priority}
	for _, other := range b.Candidates {
		if other.Session != session && !other.Ineligible && o.prefers(other, best) {
			best, better = other, true
		}
	}
	return best, better
}

// ahead returns how many of the other candidates that may lead are better than the one of session.
func (o Options) ahead(b ballot.Ballot, session string) (n int) {
	me := ballot.Candidate{Zone: o.Zone, Priority: o.Priority}
	for _, other := range b.Candidates {
		if other.Session != session && !other.Ineligible && o.prefers(other, me) {
			n++
		}
	}
	return n
}
