package protocol

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestNextToken(t *testing.T) {
	ms := fence.Token(noon.UnixMilli())
	for _, c := range []struct {
		prev fence.Token
		wall time.Time
		want fence.Token
	}{
		{0, noon, ms},                                // a store that is new, or was wiped
		{1, noon, ms},                                // or restored from the distant past
		{ms - 1, noon, ms},                           // the clock and the count agree
		{ms, noon, ms + 1},                           // twice in one millisecond
		{ms + 3_600_000, noon, ms + 3_600_001},       // a clock that was set back
		{0, time.Time{}, 1},                          // a clock before 1970
		{7, time.Unix(-1, 0), 8},                     //
		{0, time.UnixMilli(1 << 60), fence.MaxToken}, // a clock beyond all tokens
		{fence.MaxToken - 1, noon, fence.MaxToken},
	} {
		if got, err := NextToken(c.prev, c.wall); err != nil || got != c.want {
			t.Errorf("NextToken(%d, %v) = %d, %v; want %d", c.prev, c.wall, got, err, c.want)
		}
	}
	for _, prev := range []fence.Token{fence.MaxToken, fence.MaxToken + 1, 1 << 63} {
		if got, err := NextToken(prev, noon); err == nil || !strings.Contains(err.Error(), prev.String()) {
			t.Errorf("NextToken(%d) = %d, %v", prev, got, err)
		}
	}
}

func TestNextTokenRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var last fence.Token
		for range rapid.IntRange(1, 50).Draw(t, "terms") {
			wall := time.UnixMilli(rapid.Int64Range(-1<<40, 1<<52).Draw(t, "wall"))
			next, err := NextToken(last, wall)
			if err != nil || next <= last || next > fence.MaxToken || int64(next) < wall.UnixMilli() {
				t.Fatalf("NextToken(%d, %d ms) = %d, %v", last, wall.UnixMilli(), next, err)
			}
			if rapid.Bool().Draw(t, "wiped") { // then time has to have passed, and the clock to be roughly right
				again, err := NextToken(0, wall.Add(time.Millisecond))
				if err != nil || (int64(next) <= wall.UnixMilli() && again <= next) {
					t.Fatalf("over a wiped store: %d after %d, %v", again, next, err)
				}
			}
			last = next
		}
	})
}

// full is a record with every field set.
func full() store.Record {
	return store.Record{
		Key: "job", Owner: "a", Token: 7, TTL: time.Second, Session: ".session/a", Acquired: noon.Add(-time.Hour),
		Info: map[string]string{"host": "x"}, Past: []store.Term{{Owner: "z", Token: 5}}, Data: []byte("d"),
		Nonce: "na", Version: "v7", Age: time.Minute,
	}
}

func TestClaimed(t *testing.T) {
	claim := Claim{Owner: "b", TTL: 2 * time.Second, Session: ".session/b", Info: map[string]string{"host": "y"}}
	of := func(change func(*store.Record)) store.Record {
		rec := full()
		change(&rec)
		return rec
	}
	ended := store.Term{Owner: "a", Token: 7, From: noon.Add(-time.Hour), Until: noon, Why: "expired"}
	for name, c := range map[string]struct {
		prev store.Record
		past []store.Term
	}{
		"an abandoned term": {full(), []store.Term{ended, {Owner: "z", Token: 5}}},
		"a free name":       {of(func(r *store.Record) { r.Owner = "" }), []store.Term{{Owner: "z", Token: 5}}},
		"an offer":          {of(func(r *store.Record) { r.Intervention = store.InterventionHandedOver }), []store.Term{{Owner: "z", Token: 5}}},
		"a broken term": {
			of(func(r *store.Record) { r.Intervention, r.Note = store.InterventionBroken, "ops: stuck" }),
			[]store.Term{{Owner: "a", Token: 7, From: ended.From, Until: noon, Why: "broken by ops: stuck"}, {Owner: "z", Token: 5}},
		},
		"a new name": {store.Record{Key: "job"}, nil},
	} {
		got := Claimed(c.prev, claim, 9, WhyExpired, noon, "nb")
		want := store.Record{
			Key: "job", Owner: "b", Token: 9, TTL: 2 * time.Second, Session: ".session/b", Acquired: noon, Info: claim.Info,
			Past: c.past, Data: c.prev.Data, Nonce: "nb", Version: c.prev.Version,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, want)
		}
	}
}

func TestFreed(t *testing.T) {
	prev := full()
	got := Freed(prev, WhyReleased, noon, "nf")
	want := store.Record{
		Key: "job", Token: 7, Data: prev.Data, Nonce: "nf", Version: "v7",
		Past: []store.Term{{Owner: "a", Token: 7, From: prev.Acquired, Until: noon, Why: "released"}, {Owner: "z", Token: 5}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%+v, want\n%+v", got, want)
	}
	prev.Intervention, prev.Note = store.InterventionBroken, "ops"
	if got := Freed(prev, WhyReleased, noon, "nf"); got.Past[0].Why != "broken by ops" || got.Intervention != "" || got.Note != "" {
		t.Errorf("a broken term that was let go: %+v", got)
	}
}

func TestHandedOver(t *testing.T) {
	prev := full()
	got, err := HandedOver(prev, "b", 3*time.Second, noon, "nh")
	want := store.Record{
		Key: "job", Owner: "b", Token: fence.Token(noon.UnixMilli()), TTL: 3 * time.Second, Acquired: noon, Intervention: store.InterventionHandedOver,
		Note: "a", Data: prev.Data, Nonce: "nh", Version: "v7",
		Past: []store.Term{{Owner: "a", Token: 7, From: prev.Acquired, Until: noon, Why: "handed over to b"}, {Owner: "z", Token: 5}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v, want\n%+v", err, got, want)
	}
	prev.Token = fence.MaxToken
	if _, err := HandedOver(prev, "b", time.Second, noon, "nh"); err == nil {
		t.Error("handed over under a token that there isn't")
	}
}

// A mark keeps the term, its data and its history, and the nonce of the version that it was put on.
func TestMarks(t *testing.T) {
	prev := full()
	broken := Broken(prev, "ops: stuck", 4*time.Second, "nx")
	want := prev
	want.Intervention, want.Note, want.TTL, want.Session, want.Nonce = store.InterventionBroken, "ops: stuck", 4*time.Second, "", "na+nx"
	if !reflect.DeepEqual(broken, want) {
		t.Errorf("broken\n%+v, want\n%+v", broken, want)
	}
	noticed := Noticed(prev, "ops", []byte("told"), "ny")
	want = prev
	want.Intervention, want.Note, want.Data, want.Nonce = store.InterventionNotice, "ops", []byte("told"), "na+ny"
	if !reflect.DeepEqual(noticed, want) {
		t.Errorf("noticed\n%+v, want\n%+v", noticed, want)
	}
	if again := Broken(broken, "", time.Second, "nz"); again.Nonce != "na+nz" || baseNonce(again.Nonce) != "na" {
		t.Errorf("a mark on a mark: nonce %s", again.Nonce)
	}
	for nonce, base := range map[string]string{"": "", "n": "n", "n+x": "n", "n+x+y": "n", "+x": ""} {
		if got := baseNonce(nonce); got != base {
			t.Errorf("baseNonce(%q) = %q, want %q", nonce, got, base)
		}
	}
}

// However long the story, a record stays one that every store takes, and remembers the last terms, newest first.
func TestHistoryIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := store.Record{Key: "job"}
		owners := rapid.StringMatching(`[a-zé世]{1,85}`)
		var tokens []fence.Token
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			nonce := fmt.Sprint("n", i)
			switch op := rapid.IntRange(0, 4).Draw(t, "op"); {
			case rec.Owner == "":
				token, err := NextToken(rec.Token, noon)
				if err != nil {
					t.Fatal(err)
				}
				rec = Claimed(rec, Claim{Owner: owners.Draw(t, "owner"), TTL: time.Second}, token, WhyExpired, noon, nonce)
			case op == 0:
				tokens = append(tokens, rec.Token)
				rec = Freed(rec, WhyReleased, noon, nonce)
			case op == 1:
				tokens = append(tokens, rec.Token)
				next, err := HandedOver(rec, owners.Draw(t, "heir"), time.Second, noon, nonce)
				if err != nil {
					t.Fatal(err)
				}
				rec = Claimed(next, Claim{Owner: next.Owner, TTL: time.Second}, next.Token, WhyExpired, noon, nonce)
			case op == 2:
				rec = Broken(rec, owners.Draw(t, "who")+rapid.StringMatching(`[é世 ]{0,200}`).Draw(t, "why"), time.Second, nonce)
			default:
				tokens = append(tokens, rec.Token)
				rec = Claimed(rec, Claim{Owner: owners.Draw(t, "taker"), TTL: time.Second}, rec.Token+1, WhyExpired, noon, nonce)
			}
			if err := driver.Check(rec); err != nil {
				t.Fatalf("no store takes %+v: %v", rec, err)
			}
		}
		want := min(len(tokens), store.MaxPast)
		if len(rec.Past) != want {
			t.Fatalf("%d past terms of %d", len(rec.Past), len(tokens))
		}
		for i, term := range rec.Past {
			if term.Token != tokens[len(tokens)-1-i] {
				t.Errorf("past term %d has token %d, want %d", i, term.Token, tokens[len(tokens)-1-i])
			}
		}
	})
}

// Adding a term to one record's history leaves another's alone that shares its array.
func TestHistoryIsNotShared(t *testing.T) {
	prev := full()
	prev.Past = append(make([]store.Term, 0, 10), prev.Past...)
	a, b := Freed(prev, "one", noon, "n1"), Freed(prev, "two", noon, "n2")
	if a.Past[0].Why != "one" || b.Past[0].Why != "two" || len(prev.Past) != 1 {
		t.Errorf("%+v and %+v", a.Past, b.Past)
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]int{
		"": 0, strings.Repeat("a", store.MaxKey): store.MaxKey, strings.Repeat("a", store.MaxKey+1): store.MaxKey,
		"a" + strings.Repeat("世", 100): store.MaxKey - 2, "aa" + strings.Repeat("𝄞", 100): store.MaxKey - 1,
	} {
		if got := clip(in); len(got) != want || !utf8.ValidString(got) {
			t.Errorf("%d bytes clipped to %d, want %d", len(in), len(got), want)
		}
	}
	if got := clip(strings.Repeat("\x80", store.MaxKey+1)); got != "" {
		t.Errorf("what has no character in it is clipped to %d bytes", len(got))
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[aé世𝄞]{0,300}`).Draw(t, "text")
		got := clip(s)
		if !utf8.ValidString(got) || len(got) > store.MaxKey || !strings.HasPrefix(s, got) || len(got) < min(len(s), store.MaxKey-3) {
			t.Errorf("%d bytes clipped to %d: %q", len(s), len(got), got)
		}
	})
}

func TestHandedOn(t *testing.T) {
	rec := full()
	rec.Past = []store.Term{{Owner: "c", Token: 6, Why: WhyReleased}, {Owner: "b", Token: 5, Why: WhyHanded + " to c"}, {Owner: "a", Token: 4, Why: WhyExpired}}
	for token, want := range map[fence.Token]bool{7: false, 6: false, 5: true, 4: false, 3: false} {
		if got := handedOn(rec, token); got != want {
			t.Errorf("term %d: %v", token, got)
		}
	}
}

// A mark on what another program wrote names no version: no holder of ours will look for it.
func TestMarkOnAForeignVersion(t *testing.T) {
	for prev, want := range map[string]string{"n1": "n1+x", "n1+w": "n1+x", "": "+x", driver.ForeignNonce("sign"): "+x"} {
		if got := markNonce(prev, "x"); got != want {
			t.Errorf("a mark on %q is %q, want %q", prev, got, want)
		}
	}
}
