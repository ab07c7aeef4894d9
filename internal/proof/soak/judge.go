package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
)

// verdict is what a history amounts to.
type verdict struct {
	overlaps    []overlap // those that a stop explains
	stalls      int       // and those that only a stall of the machine does
	outsiders   []overlap // those after an outsider took a record away
	lateEnds    []beside  // of families, while the machine stood still
	neverEnds   int       // of families, without that
	longestTail time.Duration
	violations  []string
}

// overlap is a time in which two processes were in critical sections of one name.
type overlap struct {
	a, b     section
	from, to clock.Instant
}

// judge says which promises were broken until now, when leases have that TTL. That a process left a
// section may be on its way still, while the next one has told already that it is inside. It is
// told before the lease is released, and has arrived by the judgement after that: so a section of
// which no end is known then lasted until the judgement before, at least. The history must not
// change meanwhile.
func (h *history) judge(ttl time.Duration, now clock.Instant) verdict {
	var v verdict
	sections := slices.Clone(h.sections)
	for _, i := range h.inside {
		if s := &sections[i]; s.from < h.judged {
			s.to = h.judged
		}
	}
	h.judged = now
	v.tokens(h.terms)
	v.sections(sections, h.windows, h.meddled(protocol.Timing{TTL: ttl}.WithDefaults().TTL/3+busy), protocol.Timing{TTL: ttl}.WithDefaults())
	v.broken(h.sections, h.breaks, ttl)
	return v
}

func (v *verdict) violate(format string, args ...any) {
	v.violations = append(v.violations, fmt.Sprintf(format, args...))
}

// tokens sees that no two terms of a name have one token, and that a term which began after another
// was held has a higher one.
func (v *verdict) tokens(terms []term) {
	byName := map[string][]term{}
	for _, t := range terms {
		byName[t.name] = append(byName[t.name], t)
	}
	for name, terms := range byName {
		seen := map[fence.Token]term{}
		for _, t := range terms {
			if o, ok := seen[t.token]; ok {
				v.violate("%s: token %d was given out twice: to %s and to %s", name, t.token, o.holder, t.holder)
			}
			seen[t.token] = t
		}
		held := slices.SortedFunc(slices.Values(terms), func(a, b term) int { return cmp.Compare(a.at, b.at) })
		slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.since, b.since) })
		var highest term
		for _, t := range terms {
			for len(held) > 0 && held[0].at < t.since {
				if held[0].token > highest.token {
					highest = held[0]
				}
				held = held[1:]
			}
			if t.token < highest.token {
				v.violate("%s: token %d of %s was given out after token %d of %s", name, t.token, t.holder, highest.token, highest.holder)
			}
		}
	}
}

// sections sees that sections of different processes overlap only where one of the two was stopped
// inside its own: by us, or by a machine that was busy with others. A section begins before its
// Check, and nobody else holds the name before the margin has passed since: so whatever the machine
// does, one that began earlier than that had no lease to begin under.
func (v *verdict) sections(sections []section, windows []window, meddled map[string][]window, timing protocol.Timing) {
	margin := timing.TTL - timing.Validity()
	stops := map[int][]window{}
	for _, w := range windows {
		stops[w.proc] = append(stops[w.proc], w)
	}
	sorted := slices.SortedFunc(slices.Values(sections), func(a, b section) int { return cmp.Compare(a.from, b.from) })
	inside := map[string][]section{} // by name: those that may still be going on
	for _, s := range sorted {
		if s.to == clock.NoDeadline {
			continue
		}
		inside[s.name] = slices.DeleteFunc(inside[s.name], func(o section) bool { return o.to <= s.from })
		for _, o := range inside[s.name] {
			if o.proc != s.proc {
				v.judgeOverlap(overlap{o, s, s.from, min(o.to, s.to)}, stops, meddled[s.name], margin)
			}
		}
		inside[s.name] = append(inside[s.name], s)
	}
}

// busy is how long a machine that is full may take to send and to wake, beyond what a holder takes
// to notice.
const busy = time.Second

// meddled returns until when two may be at work under a name: from when an outsider has taken its
// record away, until the holder has to have noticed. Where the store didn't serve meanwhile, its
// time to notice begins when it does.
func (h *history) meddled(noticed time.Duration) map[string][]window {
	times := map[string][]window{}
	for _, m := range h.meddlings {
		w := window{outsider, m.from, m.at.Add(noticed)}
		for _, o := range h.outages {
			if o.from <= w.to && o.to > w.from {
				w.to = max(w.to, o.to.Add(noticed)) // Never stays that
			}
		}
		times[m.name] = append(times[m.name], w)
	}
	return times
}

func (v *verdict) judgeOverlap(o overlap, stops map[int][]window, meddled []window, margin time.Duration) {
	for _, s := range []section{o.a, o.b} {
		for _, w := range stops[s.proc] {
			// The section was stopped before the other one began. What it still does once it goes
			// on, before it looks again, is the tail.
			if w.from < s.to && w.to > s.from && w.from <= o.from {
				v.overlaps = append(v.overlaps, o)
				v.longestTail = max(v.longestTail, o.to.Sub(max(w.to, o.from)))
				return
			}
		}
	}
	for _, w := range meddled {
		if w.from <= o.from && o.to <= w.to {
			v.outsiders = append(v.outsiders, o)
			return
		}
	}
	if o.from.Sub(o.a.from) >= margin {
		v.stalls++
		return
	}
	v.violate("%s: processes %d (token %d) and %d (token %d) were both inside for %v, and neither was stopped: [%d, %d] and [%d, %d]",
		o.a.name, o.a.proc, o.a.token, o.b.proc, o.b.token, o.to.Sub(o.from), o.a.from, o.a.to, o.b.from, o.b.to)
}

// broken sees that a term which was broken is over after a TTL: its holder can't renew it any more.
func (v *verdict) broken(sections []section, breaks []eviction, ttl time.Duration) {
	type key struct {
		name  string
		token fence.Token
	}
	until := map[key]clock.Instant{}
	for _, b := range breaks {
		until[key{b.name, b.token}] = b.at.Add(ttl)
	}
	for _, s := range sections {
		if end, ok := until[key{s.name, s.token}]; ok && s.from > end {
			v.violate("%s: process %d went on %v after token %d was broken", s.name, s.proc, s.from.Sub(end)+ttl, s.token)
		}
	}
}

// guarded sees that what a guarded file has accepted is in order, and that no write is missing that
// was acknowledged.
func (v *verdict) guarded(name string, writes []write, acks []ack) {
	var last write
	done := map[ack]bool{}
	for i, w := range writes {
		if w.token < last.token {
			v.violate("%s: write %d: token %d of %s was accepted after token %d of %s", name, i+1, w.token, w.holder, last.token, last.holder)
		}
		if w.token == last.token && w.holder != last.holder {
			v.violate("%s: write %d: token %d was accepted of %s and of %s", name, i+1, w.token, last.holder, w.holder)
		}
		last = w
		done[ack{name, w.holder, w.seq}] = true
	}
	for _, a := range acks {
		if a.name == name && !done[a] {
			v.violate("%s: write %d of %s was acknowledged, and is not there", name, a.seq, a.holder)
		}
	}
}

// late counts the writes that came after one of a higher token.
func late(writes []write) (n int) {
	var highest fence.Token
	for _, w := range writes {
		if w.token < highest {
			n++
		}
		highest = max(highest, w.token)
	}
	return n
}

// newest sees that a log which is written anew by each write ends with the newest one that was
// acknowledged, or a later one.
func (v *verdict) newest(name string, writes []write, acknowledged fence.Token) {
	if last := len(writes) - 1; acknowledged > 0 && (last < 0 || writes[last].token < acknowledged) {
		v.violate("%s: a write of token %d was acknowledged, and an earlier term's came after it", name, acknowledged)
	}
}
