package protocol

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

func TestNote(t *testing.T) {
	at := func(version string, age time.Duration) store.Record {
		return store.Record{Key: "job", Version: version, Age: age, TTL: 10}
	}
	for name, c := range map[string]struct {
		before Seen
		rec    store.Record
		now    clock.Instant
		since  clock.Instant
	}{
		"the first look":             {Seen{}, at("1", 0), 100, 100},
		"an age that is vouched for": {Seen{}, at("1", 30), 100, 70},
		"a writer that is gone":      {Seen{}, at("1", store.AgeGone), 100, clock.Always},
		"the same version":           {Seen{at("1", 0), 50, true}, at("1", 0), 100, 50},
		"the same, older than seen":  {Seen{at("1", 0), 50, true}, at("1", 80), 100, 20},
		"the same, younger":          {Seen{at("1", 0), 50, true}, at("1", 10), 100, 50},
		"another version":            {Seen{at("1", 0), 50, true}, at("2", 0), 100, 100},
		"another with an age":        {Seen{at("1", 0), 50, true}, at("2", 30), 100, 70},
		"nothing, again":             {Seen{store.Record{Key: "job"}, 50, true}, store.Record{Key: "job"}, 100, 50},
		"unknown is not version 0":   {Seen{}, store.Record{Key: "job"}, 100, 100},
	} {
		got := c.before.Note(c.rec, c.now)
		if got.Since != c.since || !got.Known || got.Rec.Version != c.rec.Version || got.Dead() != c.since.Add(c.rec.TTL) {
			t.Errorf("%s: since %d, dead at %d, want since %d", name, got.Since, got.Dead(), c.since)
		}
	}
}

// A store that was restored from a backup gives a version that was seen before to another write, which is a sign of life.
func TestFinding_K1_AVersionAloneTellsNoWrite(t *testing.T) {
	own := store.Record{Key: "job", Owner: "a", Token: 3, TTL: 100, Nonce: "n", Version: "1"}
	for name, change := range map[string]func(*store.Record){
		"a renewal":      func(r *store.Record) { r.Nonce = "m" },
		"another holder": func(r *store.Record) { r.Owner = "b" },
		"another term":   func(r *store.Record) { r.Token = 4 },
	} {
		rec := own
		change(&rec)
		if got := (Seen{own, 50, true}).Note(rec, 90); got.Since != 90 {
			t.Errorf("%s under the version of a write that was seen: since %d, want 90", name, got.Since)
		}
	}
	if got := (Seen{own, 50, true}).Note(own, 90); got.Since != 50 {
		t.Errorf("the same write: since %d", got.Since)
	}
}

// What others do to a record beside its holder's writes is no sign of life, though it makes another version.
func TestFinding_S17_AnotherVersionIsNoSignOfLife(t *testing.T) {
	own := store.Record{Key: "job", Owner: "a", Token: 3, TTL: 100, Nonce: "n", Version: "1"}
	for name, c := range map[string]struct {
		change func(*store.Record)
		since  clock.Instant
	}{
		"a label":               {func(*store.Record) {}, 50},
		"a change of its data":  {func(r *store.Record) { r.Data = []byte("x") }, 50},
		"a renewal":             {func(r *store.Record) { r.Nonce = "m" }, 90},
		"a mark":                {func(r *store.Record) { r.Nonce = "n+m" }, 90},
		"another holder":        {func(r *store.Record) { r.Owner = "b" }, 90},
		"another token":         {func(r *store.Record) { r.Token = 4 }, 90},
		"another session":       {func(r *store.Record) { r.Session = "s" }, 90},
		"nothing tells a write": {func(r *store.Record) { r.Nonce = "" }, 90},
	} {
		rec := own
		rec.Version = "2"
		c.change(&rec)
		if got := (Seen{own, 50, true}).Note(rec, 90); got.Since != c.since || got.Rec.Version != "2" {
			t.Errorf("%s: version %s since %d, want since %d", name, got.Rec.Version, got.Since, c.since)
		}
	}
	bare := own
	bare.Nonce = ""
	next := bare
	next.Version = "2"
	if got := (Seen{bare, 50, true}).Note(next, 90); got.Since != 90 {
		t.Errorf("two versions without a nonce: since %d, want 90", got.Since)
	}
}

func TestJudge(t *testing.T) {
	own := store.Record{Key: "job", Owner: "a", TTL: 100, Nonce: "n", Version: "1"}
	with := func(change func(*store.Record)) store.Record {
		rec := own
		change(&rec)
		return rec
	}
	kept := with(func(r *store.Record) { r.Session = "s" })
	session := func(owner string, since clock.Instant) Seen {
		return Seen{store.Record{Key: "s", Owner: owner, TTL: 50, Version: "9"}, since, true}
	}
	for name, c := range map[string]struct {
		rec     store.Record
		session Seen
		me      string
		mine    []string
		now     clock.Instant
		want    Verdict
	}{
		"nobody's":                      {with(func(r *store.Record) { r.Owner = "" }), Seen{}, "b", nil, 0, Verdict{Standing: Free}},
		"not stored":                    {store.Record{Key: "job"}, Seen{}, "b", nil, 0, Verdict{Standing: Free}},
		"somebody's":                    {own, Seen{}, "b", nil, 99, Verdict{Taken, 100}},
		"abandoned":                     {own, Seen{}, "b", nil, 100, Verdict{Standing: Dead}},
		"my own, given up":              {own, Seen{}, "a", []string{"m", "n"}, 0, Verdict{Standing: Mine}},
		"my own, marked since":          {with(func(r *store.Record) { r.Nonce, r.Intervention = "n+x", store.InterventionBroken }), Seen{}, "a", []string{"n"}, 0, Verdict{Standing: Mine}},
		"my own that I hold, a clone's": {own, Seen{}, "a", []string{"m"}, 99, Verdict{Taken, 100}},
		"another's with my nonce":       {own, Seen{}, "b", []string{"n"}, 0, Verdict{Taken, 100}},
		"offered to me":                 {with(func(r *store.Record) { r.Intervention = store.InterventionHandedOver }), Seen{}, "a", nil, 0, Verdict{Standing: Offered}},
		"offered to another":            {with(func(r *store.Record) { r.Intervention = store.InterventionHandedOver }), Seen{}, "b", nil, 0, Verdict{Taken, 100}},
		"offered, and never taken":      {with(func(r *store.Record) { r.Intervention = store.InterventionHandedOver }), Seen{}, "b", nil, 100, Verdict{Standing: Dead}},
		"broken":                        {with(func(r *store.Record) { r.Intervention = store.InterventionBroken }), Seen{}, "b", nil, 99, Verdict{Taken, 100}},
		"broken, grace over":            {with(func(r *store.Record) { r.Intervention = store.InterventionBroken }), Seen{}, "b", nil, 100, Verdict{Standing: Dead}},
		"kept, unread":                  {kept, Seen{}, "b", nil, 1000, Verdict{Standing: SessionUnknown}},
		"kept by another than read":     {with(func(r *store.Record) { r.Session = "s2" }), session("a", 0), "b", nil, 1000, Verdict{Standing: SessionUnknown}},
		"kept, closed":                  {kept, session("", 0), "b", nil, 0, Verdict{Standing: SessionGone}},
		"kept, session of another":      {kept, session("c", 0), "b", nil, 0, Verdict{Standing: SessionGone}},
		"kept, alive":                   {kept, session("a", 960), "b", nil, 1000, Verdict{Taken, 1010}},
		"kept, abandoned":               {kept, session("a", 950), "b", nil, 1000, Verdict{Standing: SessionDead}},
		"kept, my own, given up":        {kept, session("a", 960), "a", []string{"n"}, 1000, Verdict{Standing: Mine}},
	} {
		rec := Seen{c.rec, 0, true}
		if got := Judge(rec, c.session, c.me, c.mine, c.now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// However one looks, a record counts as abandoned only when a version of it has been there for its whole TTL.
func TestJudgeWaitsTheWholeTTL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ttl = 100
		var now, written clock.Instant
		var seen Seen
		version := "0"
		for i := range rapid.IntRange(1, 40).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(0, 60).Draw(t, "pause")))
			if rapid.IntRange(0, 2).Draw(t, "renewed") == 0 {
				written, version = now, string(rune('a'+i))
			}
			rec := store.Record{Key: "job", Owner: "a", TTL: ttl, Version: version}
			rec.Age = time.Duration(rapid.Int64Range(0, int64(now-written)).Draw(t, "age"))
			seen = seen.Note(rec, now)
			if v := Judge(seen, Seen{}, "b", nil, now); v.Standing == Dead && now < written.Add(ttl) {
				t.Fatalf("dead at %d, written at %d", now, written)
			} else if v.Standing == Taken && v.Until < written.Add(ttl) {
				t.Fatalf("taken until %d, written at %d", v.Until, written)
			}
		}
	})
}
