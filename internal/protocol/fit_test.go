package protocol

import (
	"errors"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
)

// wantedAs returns a rig whose hold wants the name as a lease.
func wantedAs(t *testing.T, kind store.Kind) *rig {
	t.Helper()
	r := newRig(t, false)
	r.h.Claim.Kind = kind
	return r
}

const members = `{"v":1,"kind":"semaphore","held":[{"session":"s1"},{"session":"s2"}]}`

// A name that is in use as one kind is not taken as another, by what its own record says.
func TestANameInUseStaysWhatItIs(t *testing.T) {
	for name, c := range map[string]struct {
		rec     store.Record
		gone    []string
		holder  string
		members []string
	}{
		"a semaphore with holders": {store.Record{Kind: store.KindSemaphore, Data: []byte(members)}, nil, "", []string{"s1", "s2"}},
		"one of them is gone":      {store.Record{Kind: store.KindSemaphore, Data: []byte(members)}, []string{"s1"}, "", []string{"s2"}},
		"a pool":                   {store.Record{Kind: store.KindPool}, nil, "", nil},
		"a pool's value":           {store.Record{Kind: store.KindPool, Owner: "other", TTL: rigTTL, Nonce: "x"}, nil, "other", nil},
		"an election's leader":     {store.Record{Kind: store.KindElection, Owner: "other", TTL: rigTTL, Nonce: "x"}, nil, "other", nil},
	} {
		r := wantedAs(t, store.KindLease)
		r.h.Gone = map[string]bool{}
		for _, session := range c.gone {
			r.h.Gone[session] = true
		}
		c.rec.Version = "7"
		r.read(c.rec, nil)
		var wrong *store.KindError
		if r.next(Idle); r.h.Phase != Ended || !errors.As(r.h.Err, &wrong) {
			t.Fatalf("%s: phase %d, %v", name, r.h.Phase, r.h.Err)
		}
		if wrong.Name != "job" || wrong.Kind != c.rec.Kind || wrong.Wanted != store.KindLease || wrong.Holder != c.holder || !slices.Equal(wrong.Members, c.members) {
			t.Errorf("%s: %+v", name, wrong)
		}
	}
}

// A name that nobody uses as what it was is taken as another kind, and its record says so from then on.
func TestANameThatNobodyUsesMayChangeItsKind(t *testing.T) {
	for name, c := range map[string]struct {
		rec   store.Record
		stays bool // what its record kept for its users
	}{
		"a semaphore whose holders are gone": {store.Record{Kind: store.KindSemaphore, Data: []byte(members)}, false},
		"a semaphore without any":            {store.Record{Kind: store.KindSemaphore}, false},
		"a free lease":                       {store.Record{Kind: store.KindLease, Data: []byte("data")}, true},
	} {
		r := wantedAs(t, store.KindLease)
		r.h.Gone = map[string]bool{"s1": true, "s2": true}
		c.rec.Version = "7"
		r.read(c.rec, nil)
		rec := r.next(Write).Rec
		if rec.Kind != store.KindLease || rec.Owner != "me" || (len(rec.Data) > 0) != c.stays {
			t.Errorf("%s: taken by %+v", name, rec)
		}
	}
	r := newRig(t, false) // of whom it doesn't matter what the name is
	r.read(store.Record{Kind: store.KindSemaphore, Data: []byte(members), Version: "7"}, nil)
	if rec := r.next(Write).Rec; rec.Kind != store.KindSemaphore || string(rec.Data) != members {
		t.Errorf("its record became %+v", rec)
	}
}

// Of what was remembered of the members nothing is believed: it is read first.
func TestMembersAreReadAgain(t *testing.T) {
	r := wantedAs(t, store.KindLease)
	r.h.rec = Seen{Rec: store.Record{Key: "job", Version: "6", Kind: store.KindSemaphore, Data: []byte(members)}, Known: true}
	r.read(store.Record{Version: "7", Kind: store.KindSemaphore}, nil)
	r.next(Write)

	r = wantedAs(t, store.KindLease)
	r.h.rec = Seen{Rec: store.Record{Key: "job", Version: "6", Kind: store.KindPool}, Known: true}
	r.read(store.Record{Version: "7", Kind: store.KindLease}, nil) // it is no pool any more
	r.next(Write)

	r = wantedAs(t, store.KindPool)
	r.read(store.Record{Version: "7", Kind: store.KindPool}, nil)
	if rec := r.next(Write).Rec; rec.Kind != store.KindPool || rec.Owner != "me" {
		t.Errorf("a pool is taken as one by %+v", rec)
	}

	r = wantedAs(t, store.KindLease) // a lease has none
	r.h.rec = Seen{Rec: store.Record{Key: "job", Version: "6", Kind: store.KindLease}, Known: true}
	r.next(Write)
}

// A name whose record doesn't say its kind may be in use by what stands beside it; and an election has its candidates there.
func TestWhatStandsBesideAName(t *testing.T) {
	election := store.Record{Key: "job", Version: "7", Kind: store.KindElection}
	candidates := `{"v":1,"candidates":[{"session":"s1"}]}`
	for name, c := range map[string]struct {
		rec    store.Record
		beside string
		has    store.Record
		err    error
		want   error // how it ends; nil: it is taken
	}{
		"no lock":                        {store.Record{}, kinds.Locks + "job", store.Record{}, nil, nil},
		"a lock that is held":            {store.Record{}, kinds.Locks + "job", store.Record{Version: "1", Data: []byte(members)}, nil, store.ErrKind},
		"a lock whose list is damaged":   {store.Record{}, kinds.Locks + "job", store.Record{Version: "1", Data: []byte("{")}, nil, store.ErrCorrupt},
		"no room for such a key":         {store.Record{}, kinds.Locks + "job", store.Record{}, store.ErrInvalid, nil},
		"an election without candidates": {election, kinds.Elections + "job", store.Record{}, nil, nil},
		"an election with candidates":    {election, kinds.Elections + "job", store.Record{Version: "1", Data: []byte(candidates)}, nil, store.ErrKind},
	} {
		r := wantedAs(t, store.KindLease)
		r.read(c.rec, nil)
		act := r.next(Read)
		if act.Key != c.beside {
			t.Fatalf("%s: reads %s, want %s", name, act.Key, c.beside)
		}
		r.h.Read(r.env(), act.Key, c.has, c.err)
		if c.want != nil {
			r.ended(c.want)
			continue
		}
		if rec := r.next(Write).Rec; rec.Owner != "me" || rec.Kind != store.KindLease {
			t.Errorf("%s: taken by %+v", name, rec)
		}
	}
}

// A read of what stands beside a name that fails is tried again, and the name is not taken before it succeeds. Tokens rise over all kinds.
func TestWhatStandsBesideANameHasToBeRead(t *testing.T) {
	r := wantedAs(t, store.KindLease)
	r.read(store.Record{}, nil)
	r.h.Read(r.env(), r.next(Read).Key, store.Record{}, errRefused)
	if !errors.Is(r.h.Err, errRefused) {
		t.Errorf("the failure is %v", r.h.Err)
	}
	r.sleep()
	act := r.next(Read)
	r.h.Read(r.env(), act.Key, store.Record{Key: act.Key, Version: "1", Token: 1 << 52}, nil)
	if r.h.Err != nil {
		t.Errorf("after a read that succeeded: %v", r.h.Err)
	}
	if rec := r.next(Write).Rec; rec.Token != 1<<52+1 {
		t.Errorf("taken under token %d, after %d", rec.Token, 1<<52)
	}
}

// A holder of the right kind is waited for; a hold's own old terms and offers are taken.
func TestTheRightKindIsWaitedFor(t *testing.T) {
	r := wantedAs(t, store.KindLease)
	rec := foreign("3")
	rec.Kind = store.KindLease
	r.read(rec, nil)
	if act := r.next(Wait); act.Version != "3" {
		t.Errorf("waits from %q", act.Version)
	}
	rec.Kind, rec.Version = "", "4"
	r = wantedAs(t, store.KindLease) // a record that doesn't say, written before kinds were
	r.read(rec, nil)
	r.next(Wait)

	r = wantedAs(t, store.KindLease)
	r.h.mine = []string{"n0"}
	r.read(store.Record{Owner: "me", Kind: store.KindElection, TTL: rigTTL, Nonce: "n0", Version: "5"}, nil)
	r.next(Write)
	r = wantedAs(t, store.KindLease)
	r.read(store.Record{Owner: "me", Kind: store.KindElection, TTL: rigTTL, Intervention: store.InterventionHandedOver, Nonce: "n9", Version: "5"}, nil)
	r.next(Write)
}

// A session's record is no name, and has no kind.
func TestASessionHasNoKind(t *testing.T) {
	r := newRig(t, false)
	r.h = NewSession(".session/1", Claim{Owner: "me", TTL: rigTTL, Kind: store.KindLease}, rigTiming())
	if rec := r.next(Write).Rec; rec.Kind != "" || rec.Version != "" {
		t.Errorf("made by %+v", rec)
	}
	r.session = clock.Never
}
