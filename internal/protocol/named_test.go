package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Of the versions of a record that a server meets, the newest is that of the highest token, and of one term the one that was renewed most.
func TestLatest(t *testing.T) {
	version := func(token fence.Token, nonce string) store.Record { return store.Record{Token: token, Nonce: nonce} }
	for _, c := range []struct {
		known Latest
		met   store.Record
		want  Latest
		older bool // what was met came back with a restored store
	}{
		{Latest{}, version(7, "a~3"), Latest{7, 3}, false},
		{Latest{7, 3}, version(7, "b~4"), Latest{7, 4}, false},
		{Latest{7, 3}, version(7, "a~3"), Latest{7, 3}, false},
		{Latest{7, 3}, version(7, "a~2"), Latest{7, 3}, true},
		{Latest{7, 3}, version(7, "a~2+mark"), Latest{7, 3}, true},
		{Latest{7, 3}, version(7, "a~4+mark"), Latest{7, 4}, false},
		{Latest{7, 3}, version(7, "uncounted"), Latest{7, 3}, false},
		{Latest{7, 3}, version(7, "a~none"), Latest{7, 3}, false},
		{Latest{7, 3}, version(8, "c"), Latest{8, 0}, false},
		{Latest{7, 3}, version(8, "c~1"), Latest{8, 1}, false},
		{Latest{7, 3}, version(6, "d~9"), Latest{7, 3}, true},
		{Latest{7, 3}, version(6, "d"), Latest{7, 3}, true},
		{Latest{7, 0}, version(7, "a~-4"), Latest{7, 0}, false},
	} {
		if got := c.known.Note(c.met); got != c.want {
			t.Errorf("%+v after %+v: %+v, want %+v", c.known, c.met, got, c.want)
		}
		if got := c.known.after(c.met); got != c.older {
			t.Errorf("%+v: is %+v older? %v", c.known, c.met, got)
		}
	}
	if n := (Latest{7, 3}).of(7); n != 3 {
		t.Errorf("term 7 was renewed %d times, want 3", n)
	}
	if n := (Latest{7, 3}).of(8); n != 0 {
		t.Errorf("term 8 was renewed %d times, want none that is known", n)
	}
}

// theirs is the record of a term that its holder has a server renew.
func theirs() store.Record {
	return store.Record{Key: "job", Owner: "me", Token: 50, TTL: 2 * rigTTL, Nonce: "first~3", Version: "3"}
}

// namedRig returns a rig of a server that renews, or lets go of, the term of theirs. It has seen rec, if that has a key.
func namedRig(t *testing.T, rec store.Record, latest Latest) *rig {
	t.Helper()
	r := newRig(t, false)
	r.h = Named("job", "me", 50, rigTiming(), Seen{Rec: rec, Known: rec.Key != ""}, latest)
	return r
}

// A server renews what it has seen, once, and counts that in the nonce.
func TestNamedIsRenewedOnce(t *testing.T) {
	for name, known := range map[string]struct {
		rec    store.Record
		latest Latest
		nonce  string
	}{
		"seen":                             {theirs(), Latest{}, "n1~4"},
		"seen, and a later one heard of":   {theirs(), Latest{50, 3}, "n1~4"},
		"not seen":                         {store.Record{}, Latest{}, "n1~4"},
		"a later term heard of uncounted":  {func() store.Record { rec := theirs(); rec.Nonce = "old"; return rec }(), Latest{50, 8}, "n1~9"},
		"an earlier term was renewed more": {theirs(), Latest{49, 8}, "n1~4"},
	} {
		r := namedRig(t, known.rec, known.latest)
		if known.rec.Key == "" {
			if act := r.next(Read); act.Until != r.now.Add(3*rigAttempt) || act.Again != r.now.Add(rigAttempt) {
				t.Errorf("%s: the read may take until %v, and is repeated at %v", name, act.Until, act.Again)
			}
			r.read(theirs(), nil)
		}
		if r.h.Renewed() || r.h.InDoubt() {
			t.Errorf("%s: renewed %v, in doubt %v before anything was written", name, r.h.Renewed(), r.h.InDoubt())
		}
		act := r.next(Write)
		if act.Rec.Version != "3" || act.Rec.Nonce != known.nonce || act.Rec.TTL != rigTTL || act.Rec.Owner != "me" || act.Rec.Token != 50 {
			t.Errorf("%s: renewed by %+v", name, act.Rec)
		}
		sent := r.now
		r.now += 9
		r.wrote("4", nil)
		if !r.h.Renewed() || r.h.Deadline != sent.Add(rigValidity) {
			t.Errorf("%s: renewed %v, valid until %v", name, r.h.Renewed(), r.h.Deadline)
		}
		if act := r.next(Sleep); act.Until != r.h.Deadline {
			t.Errorf("%s: then %+v, want nothing until its deadline", name, act)
		}
		r.now = r.h.Deadline
		r.lost(CauseExpired)
		if r.h.Renewed() {
			t.Errorf("%s: renewed after its deadline", name)
		}
	}
}

// A renewal without a TTL keeps the record's, and is valid by that.
func TestNamedKeepsTheTTL(t *testing.T) {
	r := namedRig(t, theirs(), Latest{})
	r.h.Claim.TTL = 0
	if act := r.next(Write); act.Rec.TTL != 2*rigTTL {
		t.Errorf("renewed for %v, want %v", act.Rec.TTL, 2*rigTTL)
	}
	sent := r.now
	r.wrote("4", nil)
	if r.h.Deadline != sent.Add(2*rigValidity) {
		t.Errorf("valid for %v", r.h.Deadline.Sub(sent))
	}
}

// What a server renews has to be the term that was named, and no older than what it knows of; a term of somebody else is lost.
func TestNamedIsNoOtherTerm(t *testing.T) {
	for name, c := range map[string]struct {
		rec      func(rec *store.Record)
		latest   Latest
		restored bool // the record shows the term all the same
	}{
		"free":                    {func(rec *store.Record) { rec.Owner = "" }, Latest{}, false},
		"gone":                    {func(rec *store.Record) { *rec = store.Record{Key: "job"} }, Latest{}, false},
		"another's":               {func(rec *store.Record) { rec.Owner = "other" }, Latest{}, false},
		"of a later term":         {func(rec *store.Record) { rec.Token = 51 }, Latest{}, false},
		"of an earlier term":      {func(rec *store.Record) { rec.Token = 49 }, Latest{}, false},
		"restored from a backup":  {func(rec *store.Record) {}, Latest{50, 4}, true},
		"restored, a later known": {func(rec *store.Record) {}, Latest{51, 0}, true},
	} {
		rec := theirs()
		c.rec(&rec)
		for _, seen := range []bool{true, false} {
			r := namedRig(t, store.Record{}, c.latest)
			if seen {
				r = namedRig(t, rec, c.latest)
			}
			r.read(rec, nil) // also if it was seen: what was seen may be old
			r.lost(CauseTaken)
			if r.h.Restored() != c.restored || r.h.Renewed() {
				t.Errorf("%s: restored %v, renewed %v", name, r.h.Restored(), r.h.Renewed())
			}
		}
	}
	own := heldRig(t)
	for range 2 {
		if own.h.Restored() || own.h.Renewed() {
			t.Error("a hold that the holder itself keeps came back, or was renewed in its stead")
		}
		own.h.LoseSession()
	}
	r := namedRig(t, theirs(), Latest{})
	if r.h.Restored() {
		t.Error("a term came back that was not lost")
	}
}

// A renewal that lost a race begins with the version that won, if that is the same term's.
func TestNamedMeetsAnotherServersRenewal(t *testing.T) {
	r := namedRig(t, theirs(), Latest{})
	other := theirs()
	other.Version, other.Nonce = "4", "other~4"
	r.wrote("", conflict(other))
	if act := r.next(Write); act.Rec.Version != "4" || act.Rec.Nonce != "n2~5" {
		t.Errorf("renewed by %+v", act.Rec)
	}
	r.wrote("", conflict(foreign("5")))
	r.lost(CauseTaken)
}

// What keeps a term from being renewed in its holder's stead, or is to be told of it.
func TestNamedMarks(t *testing.T) {
	t.Run("broken", func(t *testing.T) {
		r := namedRig(t, Broken(theirs(), "ops", rigTTL, "x"), Latest{})
		r.lost(CauseBroken)
	})
	t.Run("kept by a session", func(t *testing.T) {
		rec := theirs()
		rec.Session = ".session/1"
		r := namedRig(t, rec, Latest{})
		r.ended(store.ErrInvalid)
	})
	for name, left := range map[string][]byte{"some of it is left": []byte("rest"), "nothing is left": nil} {
		t.Run("a notice, "+name, func(t *testing.T) {
			r := namedRig(t, Noticed(theirs(), "ops", []byte("all"), "x"), Latest{})
			r.h.Left = func(notice []byte) []byte {
				if string(notice) != "all" {
					t.Errorf("the notice is %q", notice)
				}
				return left
			}
			rec := r.next(Write).Rec
			if string(rec.Data) != string(left) || string(r.h.Notice) != string(left) || (rec.Intervention == store.InterventionNotice) != (left != nil) || (rec.Note == "ops") != (left != nil) {
				t.Errorf("%q is left: renewed by %+v, told %q", left, rec, r.h.Notice)
			}
		})
	}
	t.Run("what was told before", func(t *testing.T) {
		r := namedRig(t, theirs(), Latest{})
		r.h.Notice = []byte("before")
		if r.next(Write); r.h.Notice != nil {
			t.Errorf("told again: %q", r.h.Notice)
		}
	})
}

// A server asks of each version whether it may renew it, or let it go.
func TestNamedIsAllowed(t *testing.T) {
	asked := 0
	refuse := func(rec store.Record) error {
		if asked++; rec.Version != "3" {
			t.Errorf("asked of %+v", rec)
		}
		return errRefused
	}
	r := namedRig(t, theirs(), Latest{})
	r.h.Allow = refuse
	r.ended(errRefused)
	r = namedRig(t, theirs(), Latest{})
	r.h.Allow = refuse
	r.stop("")
	r.ended(errRefused)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	r = namedRig(t, theirs(), Latest{})
	r.h.Allow = func(store.Record) error { asked++; return nil }
	r.h.Left = func(notice []byte) []byte { return notice }
	r.wrote("4", nil)
	r.next(Sleep)
	if asked != 3 {
		t.Errorf("asked %d times for one renewal", asked-2)
	}
	r = namedRig(t, theirs(), Latest{})
	r.h.Allow = func(store.Record) error { return nil }
	r.stop("")
	r.next(Write)
}

// A server lets go of the version that it has seen, or reads it first; one that came back with a restored store, too.
func TestNamedIsLetGo(t *testing.T) {
	for name, c := range map[string]struct {
		seen   store.Record
		latest Latest
		reads  bool
	}{
		"seen":                 {theirs(), Latest{}, false},
		"seen in its own term": {theirs(), Latest{50, 9}, false},
		"not seen":             {store.Record{}, Latest{}, true},
		"another's was seen":   {foreign("2"), Latest{}, true},
	} {
		r := namedRig(t, c.seen, c.latest)
		r.stop("")
		if c.reads {
			r.read(theirs(), nil)
		}
		act := r.next(Write)
		if act.Rec.Owner != "" || act.Rec.Version != "3" || act.Rec.Token != 50 {
			t.Errorf("%s: let go by %+v", name, act.Rec)
		}
		sent := r.now
		r.now += 9
		r.wrote("4", nil)
		r.ended(nil)
		if r.h.LeftAt != sent || r.h.Unsettled() || len(r.h.Orphans()) != 0 {
			t.Errorf("%s: let go at %v, want %v; unsettled %v, %q", name, r.h.LeftAt, sent, r.h.Unsettled(), r.h.Orphans())
		}
	}
	handed, err := HandedOver(theirs(), "other", rigTTL, noon, "h")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rec    store.Record
		latest Latest
	}{
		"another's":              {foreign("4"), Latest{}},
		"a later term's known":   {theirs(), Latest{51, 0}},
		"handed over by another": {handed, Latest{}},
	} {
		r := namedRig(t, store.Record{}, c.latest)
		r.stop("")
		r.read(c.rec, nil)
		var conflict *store.ConflictError
		if r.next(Idle); r.h.Phase != Ended || !errors.As(r.h.Err, &conflict) || conflict.Current.Owner != c.rec.Owner {
			t.Errorf("%s: phase %d, %v", name, r.h.Phase, r.h.Err)
		}
	}
}

// A server hands over to an heir that it knows: the heir's term begins with the write that ends the one before, under a later token.
func TestNamedIsLeftToAnHeir(t *testing.T) {
	r := namedRig(t, theirs(), Latest{})
	r.h.Stop(r.env(), Exit{Why: WhyReleased, By: r.now.Add(rigRenew), Heir: &Claim{Owner: "heir", TTL: rigTTL}})
	rec := r.next(Write).Rec
	if rec.Owner != "heir" || rec.Token <= 50 || rec.Version != "3" || rec.Intervention != "" || len(rec.Past) != 1 || rec.Past[0].Owner != "me" {
		t.Errorf("the heir's record: %+v", rec)
	}
	r.wrote("4", errLost)
	if !r.h.InDoubt() || !r.h.Unsettled() {
		t.Error("the heir may have it, and that is not in doubt")
	}
	if orphans := r.h.Orphans(); len(orphans) != 2 || orphans[1] != rec.Nonce {
		t.Errorf("the store may show %q, want the heir's %q too", orphans, rec.Nonce)
	}

	last := theirs()
	last.Token = fence.MaxToken
	r = newRig(t, false)
	r.h = Named("job", "me", fence.MaxToken, rigTiming(), Seen{Rec: last, Known: true}, Latest{})
	r.h.Stop(r.env(), Exit{Why: WhyReleased, By: r.now.Add(rigRenew), Heir: &Claim{Owner: "heir", TTL: rigTTL}})
	if r.next(Idle); r.h.Phase != Ended || r.h.Err == nil {
		t.Errorf("phase %d, %v: there is no token left for an heir", r.h.Phase, r.h.Err)
	}
}

// A renewal that is to happen at once happens at once, and no renewal is put off by that.
func TestHasten(t *testing.T) {
	r := heldRig(t)
	due := r.h.Due()
	r.h.Hasten(due.Add(time.Second))
	if r.h.Due() != due {
		t.Errorf("a renewal was put off from %v to %v", due, r.h.Due())
	}
	r.h.Hasten(r.now)
	if act := r.next(Write); act.Rec.Owner != "me" || r.h.Due() > r.now {
		t.Errorf("%+v at %v", act, r.h.Due())
	}
	r = heldRig(t)
	if r.h.Deadline = r.now.Add(time.Second); r.h.Due() != r.h.Deadline {
		t.Error("what is due after the deadline is due at it")
	}
}
