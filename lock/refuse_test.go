package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// What has to be read before a name is taken, and can't be, keeps it from being taken: who uses it as another kind may be there.
func TestUnreadMembersAreNotGone(t *testing.T) {
	for name, u := range uses(t) {
		if u.kind != store.KindRW && u.kind != store.KindSemaphore {
			continue
		}
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.process(nil)
				q := w.process(nil)
				other := roster.Semaphore
				if u.kind == store.KindSemaphore {
					other = roster.RW
				}
				w.oldRoster(t, other, 1, 7, p.Key())
				for _, key := range []string{".lock/x", p.Key()} {
					q.Plan(on(faulty.Get, key, faulty.Fault{Err: errRefused}))
					if h, err := u.try(t.Context(), q.Session); !errors.Is(err, errRefused) {
						t.Errorf("%s can't be read: %v, %v", key, h, err)
					}
				}
				q.Plan(nil)
				if h, err := u.try(t.Context(), q.Session); !errors.Is(err, store.ErrKind) {
					t.Errorf("%v, %v", h, err)
				}
			})
		})
	}
}

// A lock beside leases is none beside a pool or an election.
func TestReadersBesideOtherKinds(t *testing.T) {
	for _, name := range []string{"pool", "election"} {
		inWorld(t, func(t *testing.T, w *world) {
			p, q := w.process(nil), w.process(nil)
			h, err := uses(t)[name].try(t.Context(), p.Session)
			must(t, h, err)
			rw, err := NewRWMutex(q.Session, "x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rw.BesideLeases().TryRLock(t.Context()); !errors.Is(err, store.ErrKind) {
				t.Errorf("beside a %s: %v", name, err)
			}
		})
	}
}

// A holder whose record was written before names had kinds has a lease.
func TestLeaseOfAVersionWithoutKinds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		w.edit("licences", func(rec *store.Record) { rec.Owner, rec.Token, rec.TTL = "old", 7, ttl })
		other := new(store.KindError)
		if _, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1); !errors.As(err, &other) || other.Kind != store.KindLease || other.Holder != "old" {
			t.Errorf("%v", err)
		}
	})
}

// Weights, limits and names are within their bounds, and a share that could never be had is not waited for.
func TestBounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		if _, err := semaphore(t, p.Session, 3, false).Acquire(t.Context(), 4); err == nil || errors.Is(err, lease.ErrHeld) {
			t.Errorf("a weight above the limit: %v", err)
		}
		h, err := semaphore(t, p.Session, MaxShares, false).TryAcquire(t.Context(), 1)
		released(t, must(t, h, err))
		if err := SetLimit(t.Context(), p.Manager(), "licences", 1); err != nil {
			t.Error(err)
		}
		if err := SetLimit(t.Context(), p.Manager(), "licences", MaxShares); err != nil {
			t.Error(err)
		}
		many := make([]string, MaxNames+1)
		for i := range many {
			many[i] = fmt.Sprint(i)
		}
		for what, err := range map[string]error{
			"no name of a semaphore":    second(NewSemaphore(p.Session, "", SemaphoreOptions{Limit: 1})),
			"no name of a limit":        SetLimit(t.Context(), p.Manager(), "", 1),
			"a limit of 0":              SetLimit(t.Context(), p.Manager(), "licences", 0),
			"a limit that is too large": SetLimit(t.Context(), p.Manager(), "licences", MaxShares+1),
			"no session":                second(AcquireAll(t.Context(), nil, "a")),
			"too many names":            second(AcquireAll(t.Context(), p.Session, many...)),
		} {
			if err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
		set, err := AcquireAll(t.Context(), p.Session, many[1:]...)
		if err != nil {
			t.Fatal(err)
		}
		released(t, set.Hold)
	})
}

// A limit is set where the name is a semaphore, or nothing, and written where it changes.
func TestSetLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		if err := SetLimit(t.Context(), p.Manager(), "licences", 2); err != nil {
			t.Fatal(err)
		}
		before := w.Get("licences")
		if err := SetLimit(t.Context(), p.Manager(), "licences", 2); err != nil || before.Kind != store.KindSemaphore {
			t.Errorf("%v of %+v", err, before)
		}
		if after := w.Get("licences"); after.Version != before.Version {
			t.Error("the same limit was written again")
		}
		w.edit("licences", func(rec *store.Record) { rec.Key, rec.Version, rec.Kind = ".lock/beside", "", "" }) // as of a version without kinds
		if err := SetLimit(t.Context(), p.Manager(), "beside", 2); err != nil || w.Get("beside").Kind != store.KindSemaphore {
			t.Errorf("%v: of a roster beside: %+v", err, w.Get("beside"))
		}
		if _, err := p.TryAcquire(t.Context(), "held"); err != nil {
			t.Fatal(err)
		}
		if err := SetLimit(t.Context(), p.Manager(), "held", 2); !errors.Is(err, store.ErrKind) {
			t.Errorf("of a name that is held as a lease: %v", err)
		}
	})
}

// Who tries a mutex that is held learns who has it, and a reader weighs 1.
func TestWhatIsWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := mutex(t, p.Session, "m", false).TryLock(t.Context())
		must(t, h, err)
		held := new(HeldError)
		if _, err := mutex(t, q.Session, "m", false).TryLock(t.Context()); !errors.As(err, &held) || held.Wanted != 1 || !slices.Equal(held.Holders, []string{p.Manager().Holder()}) {
			t.Errorf("%v", err)
		}
		rw := rwmutex(t, p)
		for _, lock := range []func(context.Context) (*Hold, error){rw.RLock, rw.TryRLock} {
			h, err := lock(t.Context())
			must(t, h, err)
		}
		if state, err := roster.Load(t.Context(), p.Manager().Store(), "data"); err != nil || len(state.Held) != 2 || state.Held[0].Weight != 1 || state.Held[1].Weight != 1 {
			t.Errorf("%+v, %v", state, err)
		}
	})
}

// A roster that can't be, can't be read.
func TestRostersThatCantBe(t *testing.T) {
	many := func(n int) (all []roster.Entry) {
		for i := range n {
			all = append(all, roster.Entry{ID: fmt.Sprint(i), Weight: 1})
		}
		return all
	}
	for what, c := range map[string]struct {
		roster.Roster
		corrupt bool
	}{
		"full":                {roster.Roster{Format: roster.Format, Kind: roster.Semaphore, Limit: MaxShares, Held: many(60), Queue: many(MaxShares - 60)}, false},
		"more than a limit":   {roster.Roster{Format: roster.Format, Kind: roster.Semaphore, Limit: 2, Held: many(3)}, true},
		"too many altogether": {roster.Roster{Format: roster.Format, Kind: roster.Semaphore, Limit: MaxShares, Held: many(60), Queue: many(MaxShares - 59)}, true},
		"of another format":   {roster.Roster{Format: roster.Format + 1}, true},
	} {
		data, err := json.Marshal(c.Roster)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := roster.StateOf(store.Record{Key: "x", Data: data}); errors.Is(err, store.ErrCorrupt) != c.corrupt {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := roster.StateOf(store.Record{Key: "x", Data: []byte("nonsense")}); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("nonsense: %v", err)
	}
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		for _, key := range []string{"licences", ".lock/licences"} { // beside a record that says nothing, it is that of a version without kinds
			w.edit(key, func(rec *store.Record) { rec.Kind, rec.Data = store.KindSemaphore, []byte("nonsense") })
			if _, err := semaphore(t, p.Session, 1, true).TryAcquire(t.Context(), 1); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: %v", key, err)
			}
			if _, err := roster.Load(t.Context(), p.Manager().Store(), "licences"); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("%s: shown: %v", key, err)
			}
			w.edit(key, func(rec *store.Record) { rec.Kind, rec.Data = "", nil })
		}
		w.edit("m", func(rec *store.Record) { rec.Kind = store.KindLease })
		w.edit(".lock/m", func(rec *store.Record) { rec.Data = []byte("nonsense") })
		if state, err := roster.Load(t.Context(), p.Manager().Store(), "m"); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("the queue of a mutex is nonsense: %+v, %v", state, err)
		}
	})
}

// What a guard can't read it doesn't answer, and a roster of a version without kinds counts for it.
func TestSourceReadsAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		st := w.DB.Open()
		defer st.Close()
		net := faulty.Wrap(st, nil)
		asked := Source(net)
		current := func(name string) fence.Holding {
			t.Helper()
			c, err := asked.Current(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		unread := func(name string, keys ...string) {
			t.Helper()
			for _, key := range keys {
				net.SetPlan(on(faulty.Get, key, faulty.Fault{Err: errRefused}))
				if c, err := asked.Current(t.Context(), name); !errors.Is(err, errRefused) {
					t.Errorf("%s, and %s can't be read: %+v, %v", name, key, c, err)
				}
			}
			net.SetPlan(nil)
		}
		w.oldRoster(t, roster.RW, MaxShares, 7, p.Key())
		reader := fence.Share{Holder: p.Manager().Holder(), Token: 7}
		if c := current("x"); !slices.Equal(c.Shares, []fence.Share{reader}) || c.Token != 7 || c.Holder != reader.Holder {
			t.Errorf("a reader: %+v", c)
		}
		w.edit("x", func(rec *store.Record) { rec.Owner, rec.Token, rec.TTL = "old", 8, ttl })
		if c := current("x"); !slices.Equal(c.Shares, []fence.Share{{Holder: "old", Token: 8}, reader}) || c.Token != 8 || c.Holder != "old" {
			t.Errorf("beside a lease: %+v", c)
		}
		unread("x", "x", ".lock/x", p.Key())
		w.edit("x", func(rec *store.Record) { rec.Session = ".session/old/1" }) // who has the name as a whole keeps it by a session
		unread("x", ".session/old/1")
		h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		unread("licences#0", "licences", p.Key())
		if _, err := roster.Load(t.Context(), faulty.Wrap(st, on(faulty.Get, ".lock/x", faulty.Fault{Err: errRefused})), "x"); !errors.Is(err, errRefused) {
			t.Errorf("shown: %v", err)
		}
	})
}

// A sweep takes those off a roster whose sessions are over, notes once that nobody is left, and leaves alone what is no roster.
func TestPrune(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		st := w.DB.Open()
		defer st.Close()
		prune := func(key string, over ...string) error {
			return roster.Prune(t.Context(), st, key, func(session string) bool { return slices.Contains(over, session) }, time.Now())
		}
		h, err := semaphore(t, p.Session, 1, true).TryAcquire(t.Context(), 1)
		must(t, h, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = semaphore(t, q.Session, 1, true).Acquire(ctx, 1) }()
		time.Sleep(time.Second)
		state := func() roster.State {
			t.Helper()
			s, err := roster.Load(t.Context(), st, "licences")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		before := w.Get("licences")
		if err := prune("licences", "others"); err != nil || w.Get("licences").Version != before.Version {
			t.Errorf("all live, and it was written: %v", err)
		}
		q.Cut() // it doesn't put itself on again
		cancel()
		if err := prune("licences", p.Key()); err != nil {
			t.Fatal(err)
		}
		if s := state(); len(s.Held) != 0 || len(s.Waiting) != 1 || !s.Unused.IsZero() {
			t.Errorf("without the holder: %+v", s)
		}
		if err := prune("licences", q.Key()); err != nil {
			t.Fatal(err)
		}
		since := state().Unused
		if s := state(); len(s.Waiting) != 0 || since.IsZero() || !since.Equal(time.Now()) {
			t.Errorf("without the waiter: %+v", s)
		}
		time.Sleep(time.Second)
		if err := prune("licences"); err != nil || !state().Unused.Equal(since) {
			t.Errorf("%v, unused since %v, want %v", err, state().Unused, since)
		}

		for name, change := range map[string]func(rec *store.Record){
			"a lease": func(rec *store.Record) {
				rec.Kind, rec.Owner, rec.Token, rec.TTL = store.KindLease, "o", 7, ttl
			},
			"no roster": func(*store.Record) {},
		} {
			w.edit("y", change)
			before := w.Get("y")
			if err := prune("y"); err != nil || w.Get("y").Version != before.Version {
				t.Errorf("%s was written: %v", name, err)
			}
		}
		w.edit("z", func(rec *store.Record) { rec.Kind, rec.Data = store.KindSemaphore, []byte("nonsense") })
		if err := prune("z"); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("nonsense: %v", err)
		}
		w.edit("empty", func(rec *store.Record) { rec.Kind = store.KindSemaphore })
		if err := prune("empty"); err != nil || len(w.Get("empty").Data) != 0 {
			t.Errorf("a name without a roster was given one: %v", err)
		}
	})
}
