package lessor

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// members are the data of a record that lists the member of that session.
func members(t *testing.T, list string, kind store.Kind, session string) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"v": 1, "kind": kind, "limit": 100, list: []map[string]any{{"id": "1", "session": session, "weight": 1}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Members of another kind keep a name from those who ask a server for it while their sessions live, and not when they have died: at once
// where the store tells how old records are, else after one more TTL.
func TestFinding_S1_TheDeadDontKeepANameFromTheServer(t *testing.T) {
	for name, of := range map[string]struct {
		kind    store.Kind
		records func(session string) []store.Record
	}{
		"readers": {store.KindRW, func(session string) []store.Record {
			return []store.Record{{Key: "job", Kind: store.KindRW, Token: 7, Data: members(t, "held", store.KindRW, session), Nonce: "n"}}
		}},
		"waiters": {store.KindSemaphore, func(session string) []store.Record {
			return []store.Record{{Key: "job", Kind: store.KindSemaphore, Token: 7, Data: members(t, "queue", store.KindSemaphore, session), Nonce: "n"}}
		}},
		"candidates": {store.KindElection, func(session string) []store.Record {
			return []store.Record{
				{Key: "job", Kind: store.KindElection, Token: 7, Nonce: "n"},
				{Key: ".election/job", Data: members(t, "candidates", store.KindElection, session), Nonce: "n"},
			}
		}},
		"an old roster": {store.KindRW, func(session string) []store.Record {
			return []store.Record{{Key: ".lock/job", Token: 7, Data: members(t, "held", store.KindRW, session), Nonce: "n"}}
		}},
	} {
		for _, ageless := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", ageless"}[ageless], func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.Ageless = ageless
					r, _ := w.registry()
					s, err := r.OpenSession(t.Context(), "member", ttl, nil)
					if err != nil {
						t.Fatal(err)
					}
					for _, rec := range of.records(s.Record.Key) {
						w.Put(rec)
					}
					for range 2 {
						other := new(store.KindError)
						if g, err := r.Acquire(t.Context(), wants("a", 0)); !errors.As(err, &other) || other.Kind != of.kind {
							t.Fatalf("beside a member: %+v, %v", g, err)
						}
						time.Sleep(ttl / 2)
						if _, err := r.RenewSession(t.Context(), s.Record.Key, "member", s.Record.Token, 0, nil, untouched, nil); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(2 * ttl)
					g, err := r.Acquire(t.Context(), wants("a", 0))
					if ageless && errors.Is(err, store.ErrKind) {
						time.Sleep(ttl)
						g, err = r.Acquire(t.Context(), wants("a", 0))
					}
					if err != nil || g.Record.Token <= 7 || g.Record.Kind != store.KindLease {
						t.Errorf("the members are dead: %+v, %v", g, err)
					}
				})
			})
		}
	}
}

// Whether members live can't be told while the store doesn't answer: the name is theirs.
func TestFinding_S1_MembersOfWhomNothingIsKnownKeepTheName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := store.Record{Key: "job", Kind: store.KindRW, Token: 7, Data: members(t, "held", store.KindRW, ".session/member/1"), Nonce: "n"}
		w.Put(rec)
		net.SetPlan(func(op faulty.Op) faulty.Fault { return faulty.Fault{Drop: op.Key == ".session/member/1"} })
		if g, err := r.Acquire(t.Context(), wants("a", 0)); !errors.Is(err, store.ErrKind) {
			t.Errorf("%+v, %v", g, err)
		}
		net.SetPlan(nil)
		granted(t, r, wants("a", 0))
	})
}
