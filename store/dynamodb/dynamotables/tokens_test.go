package dynamotables

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// each runs a test on every schema.
func each(t *testing.T, test func(t *testing.T, w *world)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, newWorld(t, k)) })
	}
}

func ours(key string, token fence.Token, version string) store.Record {
	return store.Record{
		Key: key, Owner: "me", Token: token, TTL: time.Minute, Nonce: newID(), Version: version,
		Past: []store.Term{{Owner: "before", Token: token - 1, Why: "released"}}, Data: []byte("state"),
	}
}

// TestPitfall_F1: the token outlives every write of a neighbour's: its taking the row, its releasing it by deletion, and that
// many times over. A neighbour's own hold counts as a change of ownership.
func TestPitfall_F1_TokenOutlivesTheNeighbour(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		rec := mustPut(t, w, ours("job", 1<<40, ""))
		for i := range 3 {
			w.plant(t, "job", theirRow(w.kind.name, time.Now()))
			theirs := mustGet(t, w.open(t), "job")
			if theirs.Token != rec.Token+1 || theirs.Owner == "me" || len(theirs.Past) != 1 || string(theirs.Data) != "state" {
				t.Fatalf("term %d: the neighbour's hold reads %+v, ours before had token %d", i, theirs, rec.Token)
			}
			w.wipe(t, "job")
			free := mustGet(t, w.open(t), "job")
			if free.Owner != "" || free.Token != rec.Token || free.Version == "" || len(free.Past) != 1 || string(free.Data) != "state" {
				t.Fatalf("term %d: deleted by the neighbour, it reads %+v, ours before had token %d", i, free, rec.Token)
			}
			if _, err := w.Put(t.Context(), store.Record{Key: "job"}); mustConflict(t, err).Token != rec.Token {
				t.Fatalf("term %d: made anew: %v", i, err)
			}
			rec = mustPut(t, w, ours("job", free.Token+2, free.Version))
		}
	})
}

// A token outlives DynamoDB's own expiry, too, which deletes the row of a neighbour that crashed.
func TestTokenOutlivesExpiry(t *testing.T) {
	w := newWorld(t, kindOf(t, "dynamodb-lease"))
	rec := mustPut(t, w, ours("job", 1<<40, ""))
	w.plant(t, "job", theirRow(w.kind.name, time.Now().Add(-time.Hour)))
	theirs := mustGet(t, w, "job")
	w.expireRows(t)
	for end := time.Now().Add(2 * time.Minute); w.attrs(t, "job") != nil; time.Sleep(50 * time.Millisecond) { // it looks every 10 s
		if time.Now().After(end) {
			t.Fatal("the expired row was never deleted")
		}
	}
	free := mustGet(t, w.open(t), "job")
	if free.Owner != "" || free.Token < rec.Token || free.Token > theirs.Token || string(free.Data) != "state" {
		t.Errorf("expired, it reads %+v; ours had token %d, and the neighbour's hold read %d", free, rec.Token, theirs.Token)
	}
	mustPut(t, w, ours("job", theirs.Token+1, free.Version))
}

// A crash between the two writes of a claim: nobody is told of a token that a neighbour could make forgotten.
func TestCrashBetweenRowAndCompanion(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		first := mustPut(t, w, ours("job", 5, ""))
		crashing, g := w.gated(t)
		g.set(func(op string, companion bool) error {
			if op == "UpdateItem" && companion {
				return errCrash
			}
			return nil
		})
		claim := ours("job", 9, first.Version)
		if _, err := crashing.Put(t.Context(), claim); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Fatalf("the crashed claim: %v, want an unknown outcome", err)
		}
		// The claimant can't adopt its claim while the companion can't be written.
		if rec, err := crashing.Get(t.Context(), "job"); err == nil {
			t.Fatalf("read by the claimant: %+v: its token is in no companion", rec)
		}
		rec := mustGet(t, w, "job")
		if rec.Nonce != claim.Nonce || rec.Token != 9 {
			t.Fatalf("read by another: %+v", rec)
		}
		w.wipe(t, "job")
		if free := mustGet(t, w, "job"); free.Token != 9 {
			t.Errorf("after a wipe the token is %d, and 9 was read", free.Token)
		}
	})
}

// The same, and the neighbour wipes the row before anyone looks: the token that nobody was told of is gone.
func TestCrashBetweenRowAndCompanionUnseen(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		first := mustPut(t, w, ours("job", 5, ""))
		crashing, g := w.gated(t)
		g.set(func(op string, companion bool) error {
			if op == "UpdateItem" && companion {
				return errCrash
			}
			return nil
		})
		if _, err := crashing.Put(t.Context(), ours("job", 9, first.Version)); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		w.wipe(t, "job")
		if free := mustGet(t, w, "job"); free.Token != 5 {
			t.Errorf("token %d, want 5", free.Token)
		}
	})
}

// A claim of a row that a neighbour had deleted comes so late that another term came and went, and the neighbour deleted the row
// again. It must not hold under a token lower than that term's.
func TestLateClaimIsTakenBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		mustPut(t, w, ours("job", 5, ""))
		w.wipe(t, "job")
		slow, g := w.gated(t)
		free := mustGet(t, slow, "job")
		g.set(func(op string, companion bool) error {
			if op == "UpdateItem" && !companion {
				g.set(nil)
				mustPut(t, w, ours("job", 100, mustGet(t, w, "job").Version)) // a whole term of another
				w.wipe(t, "job")
			}
			return nil
		})
		claim := ours("job", 7, free.Version)
		_, err := slow.Put(t.Context(), claim)
		current := mustConflict(t, err)
		if current.Owner != "" || current.Token != 100 || current.Nonce == claim.Nonce {
			t.Errorf("the late claim ends in %+v", current)
		}
		if got := mustGet(t, w, "job"); got.Version != current.Version || got.Owner != "" {
			t.Errorf("left behind: %+v", got)
		}
		mustPut(t, slow, ours("job", 101, current.Version))
	})
}

// A claim lands, and others have read it and written over it before its companion is raised. It is never reported as not
// done: over a row of ours it is done, and over none it can't be told from a late claim that a reader took back.
func TestClaimOvertakenBeforeItsCompanion(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		slow, g := w.gated(t)
		overtake := func(claim store.Record) error {
			g.set(func(op string, companion bool) error {
				if op == "UpdateItem" && companion {
					g.set(nil)
					seen := mustGet(t, w, "job")
					if seen.Nonce != claim.Nonce {
						t.Errorf("another reads %+v, want the claim", seen)
					}
					mustPut(t, w, ours("job", seen.Token+1, seen.Version))
				}
				return nil
			})
			_, err := slow.Put(t.Context(), claim)
			return err
		}
		if err := overtake(ours("job", 5, "")); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("the first claim of a name: %v, want an unknown outcome", err)
		}
		if err := overtake(ours("job", 9, mustGet(t, w, "job").Version)); err != nil {
			t.Errorf("a claim over a row of ours: %v, want done", err)
		}
		if rec := mustGet(t, slow, "job"); rec.Token != 10 {
			t.Errorf("in the end %+v, want token 10", rec)
		}
	})
}

// A late claim, and the claimant crashes before it can take its claim back: whoever reads does.
func TestLateClaimOfOneWhoCrashed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		mustPut(t, w, ours("job", 5, ""))
		w.wipe(t, "job")
		slow, g := w.gated(t)
		free := mustGet(t, slow, "job")
		g.set(func(op string, companion bool) error {
			if op == "UpdateItem" && !companion {
				g.set(func(op string, companion bool) error {
					if companion {
						return errCrash
					}
					return nil
				})
				mustPut(t, w, ours("job", 100, mustGet(t, w, "job").Version))
				w.wipe(t, "job")
			}
			return nil
		})
		claim := ours("job", 7, free.Version)
		if _, err := slow.Put(t.Context(), claim); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Fatalf("%v, want an unknown outcome", err)
		}
		g.set(nil)
		for _, s := range []*Store{slow, w.Store} {
			if rec := mustGet(t, s, "job"); rec.Owner != "" || rec.Token != 100 || rec.Nonce == claim.Nonce {
				t.Errorf("read: %+v", rec)
			}
		}
	})
}

// A deletion that crashed halfway is a deletion, and no obstacle; one of a record that was written meanwhile is none.
func TestDeletionHalfway(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, step := range []int{1, 2} { // the write that crashes, of three
			rec := mustPut(t, w, ours("job", 50, ""))
			crashing, g := w.gated(t)
			writes := 0
			g.set(func(op string, _ bool) error {
				if op == "GetItem" {
					return nil
				}
				if writes++; writes > step {
					return errCrash
				}
				return nil
			})
			if err := crashing.Delete(t.Context(), "job", rec.Version); err == nil {
				t.Fatalf("step %d: no error", step)
			}
			if step == 1 { // the companion is marked, the row is there
				if got := mustGet(t, w, "job"); got.Version != rec.Version {
					t.Errorf("%+v, want version %s", got, rec.Version)
				}
				if err := w.Delete(t.Context(), "job", rec.Version); err != nil {
					t.Error(err)
				}
			}
			if got, err := w.Get(t.Context(), "job"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("step %d: %+v, %v", step, got, err)
			}
			mustPut(t, w, ours("job", 2, "")) // its token is forgotten
			w.wipe(t, "job")
			if got := mustGet(t, w, "job"); got.Token != 2 {
				t.Errorf("step %d: token %d, want 2", step, got.Token)
			}
			if err := w.Delete(t.Context(), "job", mustGet(t, w, "job").Version); err != nil {
				t.Error(err)
			}
		}
		if rows := w.rows(t); rows != 0 {
			t.Errorf("%d rows are left", rows)
		}
	})
}

// What each operation takes, in requests.
func TestRequests(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		s, g := w.gated(t)
		var rec store.Record
		var stale string
		for _, step := range []struct {
			what string
			do   func()
			want []string
		}{
			{"acquire a name that has no row", func() { rec = mustPut(t, s, ours("job", 5, "")) }, []string{"GetItem companion", "UpdateItem", "UpdateItem companion"}},
			{"renew", func() { rec = mustPut(t, s, rec) }, []string{"UpdateItem"}},
			{"renew again", func() { rec = mustPut(t, s, rec) }, []string{"UpdateItem"}},
			{"read", func() { mustGet(t, s, "job") }, []string{"GetItem"}},
			{"release", func() { rec.Owner = ""; rec = mustPut(t, s, rec) }, []string{"UpdateItem"}},
			{"acquire", func() { stale = rec.Version; rec = mustPut(t, s, ours("job", 6, rec.Version)) }, []string{"UpdateItem", "UpdateItem companion"}},
			{"read by another", func() {
				other, g2 := w.gated(t)
				mustGet(t, other, "job")
				if log := g2.count(); !slices.Equal(log, []string{"GetItem", "GetItem companion"}) {
					t.Errorf("%v", log)
				}
			}, nil},
			{"conflict", func() { _, err := s.Put(t.Context(), ours("job", 9, stale)); mustConflict(t, err) }, []string{"UpdateItem"}},
		} {
			g.count()
			step.do()
			if log := g.count(); !slices.Equal(log, step.want) {
				t.Errorf("%s took %v, want %v", step.what, log, step.want)
			}
		}
	})
}
