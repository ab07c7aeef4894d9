package drill

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// Wrong is a write that a side accepted though another instance, or none, was active.
type Wrong struct {
	Pod string  `json:"pod"`
	At  float64 `json:"at_seconds"` // when the probe was sent, from the beginning of the drill
	Why string  `json:"why"`
}

// verdict is what all accepted writes come to.
type verdict struct {
	judged int // accepted writes that were looked at
	unsure int // of them: the row changed around them in a way that leaves it open
	wrong  []Wrong
}

// judge looks at every write that a side accepted. Its time lies between the sending of the probe
// and the answer. It is wrong if the side can't have been active at any moment in between: the last
// reading of the row that was answered before, and the first one that was sent after, show the same
// term, which isn't the side's. It is wrong, too, if its token is older than one that was accepted
// before it was sent.
func (b *book) judge(began clock.Instant) verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	byAnswer := slices.Clone(b.samples)
	slices.SortStableFunc(byAnswer, func(x, y sample) int { return cmp.Compare(x.answered, y.answered) })
	var v verdict
	for _, s := range b.samples {
		if !s.ok || s.pod == service {
			continue
		}
		v.judged++
		why, unsure := b.wrongByRow(s)
		if newest := newestToken(byAnswer, s.sent); why == "" && s.token != 0 && newest > s.token {
			why = fmt.Sprintf("its term %d is older than %d, in which a write was accepted before", s.token, newest)
		}
		if why != "" {
			v.wrong = append(v.wrong, Wrong{Pod: s.pod, At: s.sent.Sub(began).Seconds(), Why: why})
		} else if unsure {
			v.unsure++
		}
	}
	return v
}

// newestToken returns the highest token of a write whose answer was there before at.
func newestToken(byAnswer []sample, at clock.Instant) (newest fence.Token) {
	for _, s := range byAnswer {
		if s.answered > at {
			break
		}
		if s.ok {
			newest = max(newest, s.token)
		}
	}
	return newest
}

func (b *book) wrongByRow(s sample) (why string, unsure bool) {
	before, _ := slices.BinarySearchFunc(b.readings, s.sent, func(r reading, at clock.Instant) int {
		if r.answered <= at {
			return -1
		}
		return 1
	})
	before-- // the last one that was answered when the probe was sent
	after := before + 1
	for after < len(b.readings) && b.readings[after].sent < s.answered {
		after++
	}
	if before < 0 || after >= len(b.readings) {
		return "", true
	}
	was := b.readings[before]
	for _, r := range b.readings[before : after+1] {
		if r.pod == s.pod {
			return "", false // it held the lease around then
		}
		if r.token != was.token || r.held != was.held {
			return "", true
		}
	}
	switch {
	case was.held && !was.settled:
		return "", false // it has until its next renewal to notice
	case was.held:
		return "an operator held every instance passive, and they had stopped", false
	case was.handed:
		return "", true
	case was.pod == "":
		return "nobody held the lease", false
	}
	return fmt.Sprintf("%s held the lease (term %d)", was.pod, was.token), false
}
