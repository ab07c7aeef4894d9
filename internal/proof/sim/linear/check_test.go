package linear

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = time.Minute

// The operations of histories written by hand. from and to are the call and the return.

func reads(from, to int64, version, nonce string) op {
	return op{kind: get, called: from, returned: to, version: version, seen: nonce}
}

func readsNothing(from, to int64) op {
	return op{kind: get, called: from, returned: to, outcome: missing}
}

func writes(from, to int64, nonce, over, version string) op {
	return op{kind: put, called: from, returned: to, nonce: nonce, over: over, version: version, seen: nonce}
}

func doubts(from int64, nonce, over string) op {
	return op{kind: put, called: from, returned: math.MaxInt64, nonce: nonce, over: over, outcome: unknown}
}

func deletes(from, to int64, version string) op {
	return op{kind: remove, called: from, returned: to, over: version}
}

func doubtsDeletion(from int64, version string) op {
	return op{kind: remove, called: from, returned: math.MaxInt64, over: version, outcome: unknown}
}

// meets makes o a write that was refused because of another version.
func (o op) meets(version, nonce string) op {
	o.outcome, o.version, o.seen = conflict, version, nonce
	return o
}

// misses makes o a write that was refused because nothing is stored.
func (o op) misses() op {
	o.outcome, o.version, o.seen = missing, "", ""
	return o
}

func history(ops ...op) *History {
	var h History
	for _, o := range ops {
		h.log("k").add(o)
	}
	return &h
}

func TestLinearizable(t *testing.T) {
	for name, ops := range map[string][]op{
		"one after the other": {
			readsNothing(1, 2), writes(3, 4, "a", "", "v1"), reads(5, 6, "v1", "a"), writes(7, 8, "b", "v1", "v2"),
			reads(9, 10, "v2", "b"), deletes(11, 12, "v2"), readsNothing(13, 14), writes(15, 16, "c", "", "v3"),
		},
		"at one time, a read sees the old or the new": {
			writes(1, 2, "a", "", "v1"), writes(3, 8, "b", "v1", "v2"), reads(4, 7, "v1", "a"), reads(5, 6, "v2", "b"),
		},
		"of two writes over one version, one conflicts": {
			writes(1, 2, "a", "", "v1"), writes(3, 5, "b", "v1", "v2"), writes(4, 6, "c", "v1", "").meets("v2", "b"),
		},
		"the one that conflicts returns first": {
			writes(1, 2, "a", "", "v1"), writes(3, 6, "b", "v1", "v2"), writes(4, 5, "c", "v1", "").meets("v2", "b"),
		},
		"unknown, and it happened": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), reads(4, 5, "v2", "b"), writes(6, 7, "c", "v2", "v3"),
		},
		"unknown, and it happened late": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), reads(4, 5, "v1", "a"), reads(6, 7, "v1", "a"), reads(8, 9, "v2", "b"),
		},
		"unknown, and it never happened": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), writes(4, 5, "c", "v1", "v2"), reads(6, 7, "v2", "c"),
		},
		"unknown, and nobody looked again": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"),
		},
		"unknown, and a conflict tells": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), writes(4, 5, "b", "v1", "").meets("v2", "b"),
		},
		"unknown, and done when it was sent again": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), reads(4, 5, "v1", "a"), writes(6, 7, "b", "v1", "v2"), reads(8, 9, "v2", "b"),
		},
		"sent three times, unknown each time, and it happened once": {
			doubts(1, "a", ""), readsNothing(2, 3), doubts(4, "a", ""), doubts(5, "a", ""), reads(6, 7, "v1", "a"),
		},
		"a creation sent twice, that happened twice since it was deleted in between": {
			doubts(1, "a", ""), reads(2, 3, "v1", "a"), deletes(4, 5, "v1"), doubts(6, "a", ""), reads(7, 8, "v2", "a"),
		},
		"and a write over the first of them conflicts with the second": {
			doubts(1, "a", ""), writes(2, 3, "a", "", "v1"), deletes(4, 5, "v1"), writes(6, 7, "b", "v1", "").meets("v2", "a"),
		},
		"one unknown write over another, both happened": {
			doubts(1, "a", ""), reads(2, 3, "v1", "a"), doubts(4, "b", "v1"), reads(5, 6, "v2", "b"),
		},
		"a deletion of unknown outcome that happened": {
			writes(1, 2, "a", "", "v1"), doubtsDeletion(3, "v1"), readsNothing(4, 5), writes(6, 7, "b", "", "v2"),
		},
		"a deletion that happened late": {
			writes(1, 2, "a", "", "v1"), doubtsDeletion(3, "v1"), reads(4, 5, "v1", "a"), readsNothing(6, 7),
		},
		"a deletion that never happened": {
			writes(1, 2, "a", "", "v1"), doubtsDeletion(3, "v1"), writes(4, 5, "b", "v1", "v2"), reads(6, 7, "v2", "b"),
		},
		"deleted: a write over it finds nothing": {
			writes(1, 2, "a", "", "v1"), deletes(3, 4, "v1"), writes(5, 6, "b", "v1", "").misses(), deletes(7, 8, "v1").misses(),
		},
		"a deletion that conflicts": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v2"), deletes(5, 6, "v1").meets("v2", "b"),
		},
		"a creation that conflicts": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "", "").meets("v1", "a"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := history(ops...).Check(limit); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNotLinearizable(t *testing.T) {
	for name, ops := range map[string][]op{
		"a stale read after an acknowledged write": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v2"), reads(5, 6, "v1", "a"),
		},
		"nothing is found after an acknowledged write": {
			writes(1, 2, "a", "", "v1"), readsNothing(3, 4),
		},
		"a lost update: two writes done over one version": {
			writes(1, 2, "a", "", "v1"), writes(3, 5, "b", "v1", "v2"), writes(4, 6, "c", "v1", "v3"),
		},
		"two creations done": {
			writes(1, 3, "a", "", "v1"), writes(2, 4, "b", "", "v2"),
		},
		"two reads at one time in opposite orders": {
			writes(1, 2, "a", "", "v1"), writes(3, 12, "b", "v1", "v2"), reads(4, 5, "v2", "b"), reads(6, 7, "v1", "a"),
		},
		"an unknown write is seen, and later it isn't": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), reads(4, 5, "v2", "b"), reads(6, 7, "v1", "a"),
		},
		"an unknown write is seen before it was sent": {
			writes(1, 2, "a", "", "v1"), reads(3, 4, "v2", "b"), doubts(5, "b", "v1"),
		},
		"an unknown write lands over a newer version": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), writes(4, 5, "c", "v1", "v2"), reads(6, 7, "v3", "b"),
		},
		"an unknown write lands, and so does the same sent again": {
			writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"), reads(4, 5, "v2", "b"), writes(6, 7, "b", "v1", "v3"),
		},
		"a creation sent once, that happened twice": {
			doubts(1, "a", ""), reads(2, 3, "v1", "a"), deletes(4, 5, "v1"), reads(7, 8, "v2", "a"),
		},
		"a duplicate of a write that was done lands as well": {
			writes(1, 2, "a", "", "v1"), reads(3, 4, "v2", "a"),
		},
		"a duplicate of a write of unknown outcome lands as well": {
			doubts(1, "a", ""), reads(2, 3, "v1", "a"), reads(4, 5, "v2", "a"),
		},
		"a read without a version": {
			writes(1, 2, "a", "", "v1"), reads(3, 4, "", "a"),
		},
		"a write that was refused is seen": {
			writes(1, 2, "a", "", "v1"), reads(3, 4, "v2", "b"),
		},
		"deleted, and seen again": {
			writes(1, 2, "a", "", "v1"), deletes(3, 4, "v1"), reads(5, 6, "v1", "a"),
		},
		"deleted twice": {
			writes(1, 2, "a", "", "v1"), deletes(3, 5, "v1"), deletes(4, 6, "v1"),
		},
		"a deletion of a version that was replaced": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v2"), deletes(5, 6, "v1"),
		},
		"a deletion of unknown outcome comes over a newer version": {
			writes(1, 2, "a", "", "v1"), doubtsDeletion(3, "v1"), writes(4, 5, "b", "v1", "v2"), readsNothing(6, 7),
		},
		"a conflict over the very version that is stored": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "").meets("v1", "a"),
		},
		"a conflict that carries an old record": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v2"), writes(5, 6, "c", "v1", "v3").meets("v1", "a"),
		},
		"a conflict that carries a version without its record": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v2"), writes(5, 6, "c", "v1", "").meets("", ""),
		},
		"a conflict over nothing": {
			writes(1, 2, "a", "", "v1"), deletes(3, 4, "v1"), writes(5, 6, "b", "v1", "").meets("v1", "a"),
		},
		"not found although it is stored": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "").misses(),
		},
		"a creation that doesn't find what it is to create": {
			writes(1, 2, "a", "", "").misses(),
		},
		"done, with another's record for an answer": {
			writes(1, 2, "a", "", "v1"), {kind: put, called: 3, returned: 4, nonce: "b", over: "v1", version: "v1", seen: "a"},
		},
		"done without a version": {
			writes(1, 2, "a", "", ""),
		},
		"one version twice": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v1"),
		},
		"a write over a version that nobody ever had": {
			writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v7", "v2"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := history(ops...).Check(limit)
			if err == nil {
				t.Fatal("it passes")
			}
			if strings.Contains(err.Error(), "can't be checked") {
				t.Errorf("refused instead of checked: %v", err)
			}
		})
	}
}

func TestErrorShowsWhereTheOrderEnds(t *testing.T) {
	err := history(writes(1, 2, "a", "", "v1"), writes(3, 4, "b", "v1", "v2"), reads(5, 6, "v1", "a"), readsNothing(7, 8)).Check(limit)
	if err == nil {
		t.Fatal("a stale read passes")
	}
	before, after, _ := strings.Cut(err.Error(), "none of these")
	if !strings.Contains(before, `puts "b" over version "v1"`) || !strings.Contains(after, `[5–6]`) || strings.Contains(after, `[7–8]`) {
		t.Errorf("want the second put before, and the stale read, but not the one after it, among what can't be next:\n%v", err)
	}
}

// Two writes under one nonce can't be told apart, so nothing could be said of them.
func TestNoncesHaveToBeTheirOwn(t *testing.T) {
	for name, ops := range map[string][]op{
		"none":        {writes(1, 2, "", "", "v1")},
		"used before": {writes(1, 2, "a", "", "v1"), writes(3, 4, "a", "v1", "v2")},
	} {
		err := history(ops...).Check(limit)
		if err == nil || !strings.Contains(err.Error(), "can't be checked") {
			t.Errorf("%s: %v, want that it can't be checked", name, err)
		}
	}
}

func TestKeysAreCheckedApart(t *testing.T) {
	var h History
	h.log("good").add(writes(1, 2, "a", "", "v1"))
	h.log("bad").add(writes(1, 2, "a", "", "v1"))
	h.log("bad").add(readsNothing(3, 4))
	if err := h.Check(limit); err == nil || !strings.HasPrefix(err.Error(), "bad: ") {
		t.Errorf("Check: %v, want that it is about the key called bad", err)
	}
	if h.Len() != 3 {
		t.Errorf("Len: %d, want 3", h.Len())
	}
}

// A version may be known from a listing alone; then it was made by a write that landed.
func TestListingsTell(t *testing.T) {
	h := history(writes(1, 2, "a", "", "v1"), doubts(3, "b", "v1"))
	h.hear(store.Record{Key: "k", Version: "v2", Nonce: "b"})
	h.log("k").add(writes(6, 7, "c", "v2", "v3"))
	if err := h.Check(limit); err != nil {
		t.Error(err)
	}
	h.log("k").add(reads(8, 9, "v1", "a"))
	if err := h.Check(limit); err == nil {
		t.Error("a stale read passes")
	}
	h = history(doubts(1, "a", ""), reads(4, 5, "v9", "z"))
	h.hear(store.Record{Key: "k", Version: "v1", Nonce: "a"})
	if err := h.Check(limit); err == nil {
		t.Error("a read of what nobody wrote passes")
	}
}
