package main

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

const never = clock.NoDeadline

// TestJudge gives made-up histories to the judge, each with what is wrong with it.
func TestJudge(t *testing.T) {
	in := func(proc int, from, to clock.Instant) section { return section{proc, "n", 1, from, to} }
	for _, c := range []struct {
		name     string
		terms    []term
		sections []section
		windows  []window
		breaks   []eviction
		overlaps int
		stalls   int
		want     string // part of the violation; "" is none
	}{
		{name: "nothing"},
		{name: "one after the other", sections: []section{in(1, 10, 20), in(2, 20, 30)}},
		{name: "other names", sections: []section{in(1, 10, 20), {2, "m", 1, 12, 18}}},
		{name: "one process", sections: []section{in(1, 10, 20), in(1, 15, 25)}},
		{name: "overlap", sections: []section{in(1, 10, 20), in(2, 19, 30)}, want: "processes 1 (token 1) and 2 (token 1) were both inside for 1ns"},
		{name: "overlap, told in another order", sections: []section{in(2, 19, 30), in(1, 10, 20)}, want: "both inside for 1ns"},
		{name: "one within the other", sections: []section{in(1, 10, 40), in(2, 20, 30)}, want: "both inside for 10ns"},
		{name: "overlap with a long one, after a short one", sections: []section{in(1, 10, 50), in(1, 12, 13), in(2, 29, 45)}, want: "both inside for 16ns"},
		{name: "one whose end isn't told yet", sections: []section{in(1, 10, never), in(2, 29, 39)}},
		{name: "one of which only the beginning is told", sections: []section{in(1, 10, 40), in(2, 29, never)}},
		{name: "the margin is over, so the machine stalled in the first", sections: []section{in(1, 10, 40), in(2, 30, 50)}, stalls: 1},
		{
			name: "the first was stopped inside", sections: []section{in(1, 10, 40), in(2, 20, 30)}, windows: []window{{1, 15, 38}}, overlaps: 1,
		},
		{
			name: "it goes on, and that isn't told yet", sections: []section{in(1, 10, 40), in(2, 20, 30)}, windows: []window{{1, 15, never}}, overlaps: 1,
		},
		{
			name:     "stopped only when the other was inside already",
			sections: []section{in(1, 10, 40), in(2, 20, 30)}, windows: []window{{1, 21, 38}}, want: "neither was stopped",
		},
		{
			name:     "stopped before its section, which began without a lease",
			sections: []section{in(1, 10, 40), in(2, 5, 30)}, windows: []window{{1, 2, 10}}, want: "neither was stopped",
		},
		{
			name:     "another process was stopped",
			sections: []section{in(1, 10, 40), in(2, 20, 30)}, windows: []window{{3, 15, 38}}, want: "neither was stopped",
		},
		{
			name:  "tokens rise",
			terms: []term{{1, "n", 5, "a", 10, 20, 0}, {2, "n", 6, "b", 15, 30, 0}, {1, "n", 7, "a", 31, 32, 0}, {3, "m", 5, "c", 40, 41, 0}},
		},
		{name: "one token twice", terms: []term{{1, "n", 5, "a", 10, 20, 0}, {2, "n", 5, "b", 12, 30, 0}}, want: "token 5 was given out twice: to a and to b"},
		{name: "one token twice to one holder", terms: []term{{1, "n", 5, "a", 10, 20, 0}, {1, "n", 5, "a", 22, 30, 0}}, want: "given out twice"},
		{name: "token falls", terms: []term{{1, "n", 5, "a", 10, 20, 0}, {2, "n", 4, "b", 21, 30, 0}}, want: "token 4 of b was given out after token 5 of a"},
		{name: "at the same time any order will do", terms: []term{{1, "n", 5, "a", 10, 20, 0}, {2, "n", 4, "b", 19, 30, 0}}},
		{
			name:  "token falls below one before the last",
			terms: []term{{1, "n", 9, "a", 1, 2, 0}, {2, "n", 5, "b", 1, 3, 0}, {3, "n", 6, "c", 4, 5, 0}}, want: "token 6 of c was given out after token 9 of a",
		},
		{name: "broken, and soon over", sections: []section{in(1, 10, 20), in(1, 130, 140)}, breaks: []eviction{{"n", 1, 30}}},
		{name: "broken, and goes on", sections: []section{in(1, 10, 20), in(1, 131, 140)}, breaks: []eviction{{"n", 1, 30}}, want: "process 1 went on 101ns after token 1 was broken"},
		{name: "another term was broken", sections: []section{in(1, 131, 140)}, breaks: []eviction{{"n", 2, 30}, {"m", 1, 30}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory()
			h.terms, h.sections, h.windows, h.breaks = c.terms, c.sections, c.windows, c.breaks
			v := h.judge(100, 0)
			expect(t, v.violations, c.want)
			if len(v.overlaps) != c.overlaps || v.stalls != c.stalls {
				t.Errorf("got %d overlaps with stops and %d with stalls, want %d and %d", len(v.overlaps), v.stalls, c.overlaps, c.stalls)
			}
		})
	}
}

func expect(t *testing.T, violations []string, want string) {
	t.Helper()
	if want == "" && len(violations) > 0 || want != "" && (len(violations) != 1 || !strings.Contains(violations[0], want)) {
		t.Errorf("got %q, want %q", violations, want)
	}
}

// Two who are inside and stay there are seen while they are, by the second look: until the first one, that one of them left may be on its way.
func TestFinding_O5_AnOverlapIsSeenWhileItLasts(t *testing.T) {
	for what, c := range map[string]struct {
		leaves bool // the first one, before the other came
		want   string
	}{
		"both stay":                 {false, "were both inside"},
		"one left, as is told late": {true, ""},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHistory()
			h.take(1, event{Kind: entered, Name: "n", Token: 1, At: 10})
			h.take(2, event{Kind: entered, Name: "n", Token: 2, At: 12})
			expect(t, h.judge(100, 20).violations, "")
			if c.leaves {
				h.take(1, event{Kind: left, Name: "n", Token: 1, At: 11})
			}
			expect(t, h.judge(100, 30).violations, c.want)
			h.died(1, 40)
			h.died(2, 50)
			expect(t, h.judge(100, 60).violations, c.want)
		})
	}
}

// What is known of one who is inside ends with the judgement before: it may have left since, before another one came and went.
func TestFinding_O5_WhoLeftIsToldLate(t *testing.T) {
	h := newHistory()
	h.take(1, event{Kind: entered, Name: "n", Token: 1, At: 10})
	expect(t, h.judge(100, 20).violations, "")
	h.take(2, event{Kind: entered, Name: "n", Token: 2, At: 22})
	h.take(2, event{Kind: left, Name: "n", Token: 2, At: 25})
	expect(t, h.judge(100, 30).violations, "")
	h.take(1, event{Kind: left, Name: "n", Token: 1, At: 21})
	expect(t, h.judge(100, 40).violations, "")
}

func TestJudgeTail(t *testing.T) {
	h := newHistory()
	h.sections = []section{{1, "n", 1, 10, 45}, {2, "n", 2, 30, 60}}
	h.windows = []window{{1, 15, 40}}
	if v := h.judge(100, 0); v.longestTail != 5 || longest(v.overlaps) != 15 {
		t.Errorf("got a tail of %d and an overlap of %d, want 5 and 15", v.longestTail, longest(v.overlaps))
	}
}

// After an outsider has taken a record away, two may be at work until the holder has to have noticed: TTL/3 later, and a second.
func TestJudgeOutsiders(t *testing.T) {
	const ms = clock.Instant(time.Millisecond)
	for what, c := range map[string]struct {
		m    meddling
		want string
	}{
		"while it lasts":  {meddling{"n", 100 * ms, 110 * ms}, ""},
		"too long after":  {meddling{"n", -4000 * ms, -3900 * ms}, "neither was stopped"},
		"before it began": {meddling{"n", 2500 * ms, 2600 * ms}, "neither was stopped"},
		"another name's":  {meddling{"m", 100 * ms, 110 * ms}, "neither was stopped"},
	} {
		t.Run(what, func(t *testing.T) {
			h := newHistory()
			h.sections = []section{{1, "n", 1, 1900 * ms, 2300 * ms}, {2, "n", 2, 2000 * ms, 2100 * ms}}
			h.meddlings = []meddling{c.m}
			v := h.judge(6*time.Second, 0)
			expect(t, v.violations, c.want)
			if (len(v.outsiders) == 1) != (c.want == "") {
				t.Errorf("%d overlaps after an outsider", len(v.outsiders))
			}
		})
	}
}

func TestJudgeGuarded(t *testing.T) {
	for _, c := range []struct {
		name   string
		writes []write
		acks   []ack
		want   string
	}{
		{name: "in order", writes: []write{{5, "a", 1}, {5, "a", 2}, {9, "b", 1}}, acks: []ack{{"n", "a", 2}, {"m", "x", 1}}},
		{name: "falls", writes: []write{{5, "a", 1}, {4, "b", 1}}, want: "write 2: token 4 of b was accepted after token 5 of a"},
		{name: "shared", writes: []write{{5, "a", 1}, {5, "b", 1}}, want: "token 5 was accepted of a and of b"},
		{name: "missing", writes: []write{{5, "a", 1}}, acks: []ack{{"n", "a", 2}}, want: "write 2 of a was acknowledged, and is not there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdict
			v.guarded("n", c.writes, c.acks)
			expect(t, v.violations, c.want)
		})
	}
}

// TestHistory: what workers tell, and what is done to them, becomes sections and windows.
func TestHistory(t *testing.T) {
	h := newHistory()
	h.take(1, event{Kind: acquired, Name: "n", Token: 3, Holder: "a", Since: 5, At: 8})
	if p, ok := h.holding("n"); p != 1 || !ok {
		t.Error("the holder is not known")
	}
	h.take(1, event{Kind: entered, Name: "n", Token: 3, At: 10})
	h.take(1, event{Kind: left, Name: "n", Token: 3, At: 12})
	h.take(1, event{Kind: entered, Name: "n", Token: 3, At: 20})
	h.stop(1, 25)
	h.resume(1, 30)
	h.stop(1, 35)
	h.died(1, 40)
	want := []section{{1, "n", 3, 10, 12}, {1, "n", 3, 20, 40}}
	if len(h.sections) != 2 || h.sections[0] != want[0] || h.sections[1] != want[1] {
		t.Errorf("got %v, want %v", h.sections, want)
	}
	if len(h.windows) != 2 || h.windows[0] != (window{1, 25, 30}) || h.windows[1] != (window{1, 35, 40}) {
		t.Errorf("got windows %v", h.windows)
	}
	if _, ok := h.holding("n"); ok || h.freed["n"] != 40 {
		t.Error("a dead process still holds")
	}
}

func TestLogsOfResources(t *testing.T) {
	for _, c := range []struct {
		tokens []fence.Token
		acked  fence.Token
		stale  int
		lost   bool
	}{
		{nil, 0, 0, false},
		{nil, 3, 0, true},
		{[]fence.Token{1, 1, 2, 3}, 3, 0, false},
		{[]fence.Token{1, 2, 4}, 3, 0, false}, // a later one, whose writer was killed before it heard
		{[]fence.Token{1, 2}, 3, 0, true},
		{[]fence.Token{1, 3, 2, 1, 3}, 3, 2, false},
	} {
		var writes []write
		for _, token := range c.tokens {
			writes = append(writes, write{token: token})
		}
		var v verdict
		v.newest("n", writes, c.acked)
		if n := late(writes); n != c.stale || (len(v.violations) > 0) != c.lost {
			t.Errorf("%v, of which %d was acknowledged: %d stale, %q", c.tokens, c.acked, n, v.violations)
		}
	}
}

// The guarded resources have been tried when each has acknowledged a write, and a late one came to one whose log tells.
func TestTried(t *testing.T) {
	const told, rewritten = "grpc", "file-replace"
	h := newHistory()
	for _, c := range []struct {
		proc int
		e    event
		want bool
	}{
		{1, event{Kind: wrote, Resource: told, Name: "n", Token: 5}, false},
		{1, event{Kind: wrote, Resource: rewritten, Name: "n", Token: 5}, false},
		{1, event{Kind: wrote, Resource: rewritten, Name: "n", Token: 4}, false}, // the log shows the last writes only
		{2, event{Kind: wrote, Resource: told, Name: "n", Token: 4}, false},      // perhaps before the other process's
		{1, event{Kind: wrote, Resource: told, Name: "m", Token: 4}, false},
		{1, event{Kind: wrote, Resource: told, Name: "n", Token: 4}, true},
	} {
		h.take(c.proc, c.e)
		if got := h.tried(map[string]string{told: "", rewritten: ""}); got != c.want {
			t.Errorf("after %+v of process %d: %v", c.e, c.proc, got)
		}
	}
	h = newHistory()
	h.take(1, event{Kind: wrote, Resource: told, Name: "n", Token: 5})
	h.take(2, event{Kind: turned, Resource: told, Name: "n", Token: 4})
	if !h.tried(map[string]string{told: ""}) {
		t.Error("a refusal is none of a late write")
	}
	if !h.tried(nil) {
		t.Error("there are no resources to wait for")
	}
}

// A name is free from the end of a hold on, for as long as somebody wants it and nobody has it.
func TestFreeFor(t *testing.T) {
	ev := func(k kind, at clock.Instant) event { return event{Kind: k, Name: "n", At: at} }
	type step struct {
		proc int
		e    event
	}
	held := []step{{1, ev(wanted, 10)}, {1, ev(acquired, 20)}} // before the start at 50
	for name, c := range map[string]struct {
		steps []step
		want  int64
	}{
		"it is waited for":          {[]step{{2, ev(wanted, 30)}, {1, ev(released, 100)}, {2, ev(acquired, 300)}}, 200},
		"nobody wants it at first":  {[]step{{1, ev(released, 100)}, {2, ev(wanted, 290)}, {2, ev(acquired, 300)}}, 10},
		"who wanted it gave up":     {[]step{{2, ev(wanted, 30)}, {2, ev(gone, 90)}, {1, ev(released, 100)}, {3, ev(wanted, 290)}, {3, ev(acquired, 300)}}, 10},
		"one gave up, another came": {[]step{{2, ev(wanted, 30)}, {1, ev(released, 100)}, {3, ev(wanted, 290)}, {2, ev(gone, 295)}, {3, ev(acquired, 300)}}, 200},
		"who wanted it died":        {[]step{{2, ev(wanted, 30)}, {2, event{}}, {1, ev(released, 100)}, {3, ev(wanted, 290)}, {3, ev(acquired, 300)}}, 10},
		"its holder died":           {[]step{{2, ev(wanted, 30)}, {1, event{}}, {2, ev(acquired, 300)}}, 250},
		"it was free at the start":  {[]step{{1, ev(released, 30)}, {2, ev(wanted, 35)}, {2, ev(acquired, 300)}}, 250},
		"the release is told late":  {[]step{{2, ev(wanted, 30)}, {2, ev(acquired, 300)}, {1, ev(released, 290)}}, 10},
	} {
		h := newHistory()
		for _, s := range append(held[:2:2], c.steps...) {
			if s.e == (event{}) {
				h.died(s.proc, 40)
				continue
			}
			h.take(s.proc, s.e)
		}
		if got, ok := h.freeFor("n", 50); !ok || int64(got) != c.want {
			t.Errorf("%s: %d, %v, want %d", name, got, ok, c.want)
		}
	}
}
