package availability

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

// What a candidate says, and what is said when its process has ended.
const begins, ends, gone = "begins", "ends", "gone"

// event is that a candidate begins or ends to lead, by its own view.
type event struct {
	at   time.Duration
	id   string
	what string
}

// outcome is what became of a name.
type outcome struct {
	vacant time.Duration   // nobody led
	gaps   []time.Duration // of those, without a break, the shortest first
	two    time.Duration   // two led at once
	terms  int
}

func (o outcome) p50() time.Duration {
	if len(o.gaps) == 0 {
		return 0
	}
	return o.gaps[len(o.gaps)/2]
}

func (o outcome) longest() time.Duration {
	if len(o.gaps) == 0 {
		return 0
	}
	return o.gaps[len(o.gaps)-1]
}

// measure sums up what happened between two times. The events are in their order; a term that began before counts.
func measure(events []event, from, to time.Duration) outcome {
	var o outcome
	leads := map[string]bool{}
	last, gap := from, time.Duration(0)
	pass := func(now time.Duration) {
		d := max(min(now, to)-last, 0)
		switch len(leads) {
		case 0:
			gap += d
		case 1:
		default:
			o.two += d
		}
		last += d
	}
	filled := func() {
		if gap > 0 {
			o.vacant += gap
			o.gaps = append(o.gaps, gap)
			gap = 0
		}
	}
	for _, e := range events {
		if e.at >= to {
			break
		}
		pass(e.at)
		switch {
		case e.what != begins:
			if leads[e.id] && e.at < from {
				o.terms--
			}
			delete(leads, e.id)
		case !leads[e.id]:
			filled()
			leads[e.id] = true
			o.terms++
		}
	}
	pass(to)
	filled()
	slices.Sort(o.gaps)
	return o
}

func TestMeasure(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		events []event
		want   outcome
	}{
		"nobody": {nil, outcome{vacant: 10 * s, gaps: []time.Duration{10 * s}}},
		"one that led before": {
			[]event{{1 * s, "0", begins}},
			outcome{terms: 1},
		},
		"a term that was over before": {
			[]event{{1 * s, "0", begins}, {2 * s, "0", ends}, {14 * s, "1", begins}},
			outcome{vacant: 4 * s, gaps: []time.Duration{4 * s}, terms: 1},
		},
		"a gap, and one that lasts": {
			[]event{{1 * s, "0", begins}, {11 * s, "0", ends}, {11 * s, "0", gone}, {12 * s, "1", begins}, {18 * s, "1", gone}, {21 * s, "0", begins}},
			outcome{vacant: 3 * s, gaps: []time.Duration{1 * s, 2 * s}, terms: 2},
		},
		"two at once": {
			[]event{{1 * s, "0", begins}, {13 * s, "1", begins}, {15 * s, "0", ends}},
			outcome{two: 2 * s, terms: 2},
		},
		"what comes later": {
			[]event{{1 * s, "0", begins}, {20 * s, "1", begins}, {30 * s, "1", ends}},
			outcome{terms: 1},
		},
	} {
		if got := measure(c.events, 10*s, 20*s); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
