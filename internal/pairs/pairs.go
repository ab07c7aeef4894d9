// Package pairs tells how the instances of `leasehold standby` stand, from their lease and from
// what they say of themselves.
package pairs

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// What the records of a pair say.
const (
	// Calls begins the keys of the records through which an operator talks to the instances; the
	// name of the lease follows.
	Calls = ".standby/"

	// SkipOwner is the owner of a row by which an operator holds every instance passive.
	SkipOwner = "SKIP-LEASE-POD"
	// ResumedOwner is that of a row whose hold is over: it lasts for the TTL of the term before.
	ResumedOwner = "RESUMED"

	InfoPod    = "pod"    // in the Info of a holder: its podIdentifier
	InfoRegion = "region" // and where it runs
	// InfoSettled is "true" in the Info of a hold once the term that it ended is over for certain.
	InfoSettled = "settled"
)

// HolderOf returns the pod and the Region that rec names for its holder. They are "" where it names
// none, as a row that Admiral itself wrote.
func HolderOf(rec store.Record) (pod, region string) { return rec.Info[InfoPod], rec.Info[InfoRegion] }

// Settled reports whether held is a hold under which certainly no instance is active.
func Settled(held store.Record) bool { return held.Info[InfoSettled] == "true" }

// Times are those of a pair's lease, as far as they are known: 0 if not.
type Times struct{ TTL, WaitTime time.Duration }

// Known returns the longest times that t and the instances say.
func (t Times) Known(instances []api.Instance) Times {
	for _, i := range instances {
		t.TTL, t.WaitTime = max(t.TTL, told(i.TTL)), max(t.WaitTime, told(i.WaitTime))
	}
	return t
}

// told is a time that an instance says in seconds; 0 for one that makes no sense.
func told(seconds float64) time.Duration {
	if !(seconds > 0 && seconds <= store.MaxTTL.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// Of returns how a pair stands: s is its lease, and instances are those that have answered.
func Of(s lease.Status, t Times, instances []api.Instance) api.Pair {
	rec := s.Record
	t = t.Known(instances)
	p := api.Pair{Lease: rec.Key, Owner: rec.Owner, Token: rec.Token, Note: rec.Note, State: api.PairFree, Instances: instances}
	p.Pod, p.Region = HolderOf(rec)
	answered := func(i api.Instance) bool { return i.Owner == rec.Owner && i.Status != api.InstanceActive }
	switch {
	case rec.Owner == SkipOwner:
		p.State, p.Settled = api.PairHeld, Settled(rec)
	case s.Standing == lease.NameFree:
	case s.Standing == lease.NameExpired:
		p.State = api.PairExpired
	case s.Standing == lease.NameBroken:
		p.State = api.PairBroken
	case s.Standing == lease.NameHanded:
		p.State = api.PairHanded
	case rec.Owner == ResumedOwner:
		p.State = api.PairResuming
	case slices.ContainsFunc(instances, answered):
		p.State = api.PairWarming
	default:
		p.State = api.PairActive
	}
	switch since := s.Since; {
	case s.Standing != lease.NameFree && since.IsZero(): // a row of Admiral's own doesn't say
	case s.Standing != lease.NameFree:
		p.Since = &since
	case len(rec.Past) > 0:
		p.Since = &rec.Past[0].Until
	}
	if rec.Owner != "" && rec.Owner != SkipOwner {
		t.TTL = rec.TTL
	}
	if ttl := api.Seconds(t.TTL); ttl > 0 {
		p.TTL = &ttl
	}
	p.Changes = changes(terms(s), Times{t.TTL, t.WaitTime})
	return p
}

// Outdated returns what still holds of what instances said in an earlier term than that of rec, or
// before rec was free. An instance that holds the lease has taken it since, and every other has let
// go of it. So has every instance under a hold that is settled. Any other row of an operator's says
// neither, and neither does a row that was deleted.
func Outdated(rec store.Record, told []api.Instance) []api.Instance {
	held := rec.Owner == SkipOwner && Settled(rec)
	if !held && (rec.Version == "" || rec.Owner == SkipOwner || rec.Owner == ResumedOwner) {
		return told
	}
	told = slices.Clone(told)
	for i := range told {
		switch one := &told[i]; {
		case one.Owner == rec.Owner && one.Status != api.InstanceWarming:
			one.Status, one.Waits = api.InstanceActive, ""
		case one.Owner != rec.Owner && one.Status == api.InstanceActive:
			one.Status = api.InstancePassive
		}
		if held {
			told[i].Waits = "an operator holds every instance passive"
		}
	}
	return told
}

// terms are those of a lease, the present one first.
func terms(s lease.Status) []api.Term {
	var all []api.Term
	if s.Holder != "" && s.Standing != lease.NameHanded {
		all = append(all, api.Term{Holder: s.Holder, Token: s.Token, From: s.Record.Acquired})
	}
	return append(all, api.PastOf(s.Record)...)
}

// whyExpired begins what is said of terms that nobody ended.
const whyExpired = "expired"

// changes are those between the terms, which begin with the latest.
func changes(terms []api.Term, times Times) (all []api.PairChange) {
	for i, t := range terms {
		c := api.PairChange{To: podOf(t.Holder)}
		if !t.From.IsZero() {
			c.At = &t.From
		}
		if i+1 < len(terms) {
			before := terms[i+1]
			c.From, c.Why = podOf(before.Holder), before.Ended
			switch gap := api.Seconds(max(t.From.Sub(before.Until), 0)); {
			case t.From.IsZero() || before.Until.IsZero(): // it isn't known
			case strings.HasPrefix(before.Ended, whyExpired) && times.TTL > 0 && times.WaitTime > 0:
				most := gap + api.Seconds(times.TTL+times.WaitTime)
				c.GapAtMost = &most
			case strings.HasPrefix(before.Ended, whyExpired): // it isn't known
			case before.Holder != SkipOwner && t.Holder != SkipOwner:
				c.Gap = &gap
			}
		}
		all = append(all, c)
	}
	return all
}

// podOf is the pod of a holder.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "/")
	return pod
}
