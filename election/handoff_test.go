package election_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// Whoever leads hands over to the one candidate that is meant; told again, there is nothing to do.
func TestHandOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		w.candidate("never", election.Options{Eligible: func() bool { return false }})
		time.Sleep(time.Second)
		w.told()
		l := w.leader()
		for what, c := range map[string]struct {
			token fence.Token
			to    string
			is    error
		}{
			"nobody":         {0, "x", election.ErrNoCandidate},
			"not eligible":   {0, "never", election.ErrNoCandidate},
			"another term":   {l.Token - 1, "b", fence.ErrStale},
			"part of a word": {0, "neve", election.ErrNoCandidate},
		} {
			if h, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: c.token, To: c.to, By: "ada"}); !errors.Is(err, c.is) || h.From.Owner != l.Owner {
				t.Errorf("%s: %+v, %v", what, h, err)
			}
		}
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{To: "b", By: strings.Repeat("x", 501)}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("too long a reason: %v", err)
		}
		time.Sleep(time.Second)
		w.expect("")
		h, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: l.Token, To: "b", By: "ada"})
		if err != nil || h.AlreadyLeads || h.From.Owner != l.Owner || !strings.HasPrefix(h.To, "b/") {
			t.Fatalf("%+v, %v", h, err)
		}
		time.Sleep(500 * time.Millisecond)
		w.expect("a stopped, b leads")
		for _, token := range []fence.Token{0, l.Token} { // whose answer was lost
			again, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: token, To: "b", By: "ada"})
			if err != nil || !again.AlreadyLeads || again.To != h.To {
				t.Errorf("%+v, %v", again, err)
			}
		}
		time.Sleep(time.Second)
		w.expect("")
	})
}

// A candidate that has died is not handed anything, nor does it stand in the way of another one of its name.
func TestHandOverToOneThatDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		dead := w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		w.told()
		dead.Cut()
		time.Sleep(ttl - time.Second) // it is dead when its session is: the others take it off the list when they see that
		for {
			state, err := election.ReadState(t.Context(), w.st, "job")
			if err != nil || len(state.Candidates) != 2 {
				t.Fatalf("%+v, %v", state, err)
			}
			rec, err := store.Load(t.Context(), w.st, state.Candidates[1].Session)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Owner == "" || rec.Age >= rec.TTL {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if h, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{To: "b", By: "ada"}); !errors.Is(err, election.ErrNoCandidate) {
			t.Errorf("%+v, %v", h, err)
		}
		w.expect("")
	})
}

// A name that two candidates have means neither of them. The owner id of one does.
func TestHandOverToOneOfTwo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		w.candidate("b", election.Options{})
		w.candidate("b", election.Options{})
		time.Sleep(time.Second)
		w.told()
		if h, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{To: "b", By: "ada"}); !errors.Is(err, election.ErrNoCandidate) {
			t.Errorf("%+v, %v", h, err)
		}
		time.Sleep(time.Second)
		w.expect("")
		state, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil || len(state.Candidates) != 3 {
			t.Fatalf("%+v, %v", state, err)
		}
		last := state.Candidates[2].Owner()
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{To: last, By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if l := w.leader(); l.Owner != last {
			t.Errorf("%s leads, want %s", l.Owner, last)
		}
	})
}

// Who leads alone hears an order, and leads again. Who holds the name beside candidates hears none.
func TestHandOverByTheOnlyOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		if _, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{By: "ada"}); err != nil {
			t.Error(err)
		}
		time.Sleep(ttl)
		w.expect("a leads, a stopped, a leads")
		put(t, w.st, "job", "", func(r *store.Record) { r.Owner, r.Token, r.Session = "script/1", r.Token+1, "" })
		if h, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{By: "ada"}); !errors.Is(err, election.ErrNotElected) {
			t.Errorf("%+v, %v", h, err)
		}
		a.end()
	})
}

// Who holds a name without standing for it would not hear the order.
func TestHandOverByNoCandidate(t *testing.T) {
	st := memory.NewDB(memory.Options{}).Open()
	defer func() { _ = st.Close() }()
	if _, err := election.HandOver(t.Context(), st, "job", election.HandOverOptions{To: "b", By: "ada"}); !errors.Is(err, election.ErrNoLeader) {
		t.Error(err)
	}
	if _, err := st.Put(t.Context(), store.Record{Key: "job", Owner: "script/1", Token: 1, TTL: time.Hour, Nonce: "n"}); err != nil {
		t.Fatal(err)
	}
	h, err := election.HandOver(t.Context(), st, "job", election.HandOverOptions{By: "ada"})
	if !errors.Is(err, election.ErrNotElected) || h.From.Owner != "script/1" {
		t.Errorf("%+v, %v", h, err)
	}
	if err := election.SetPause(t.Context(), st, "other", election.Pause{By: "ops", Reason: "drill", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := election.HandOver(t.Context(), st, "other", election.HandOverOptions{By: "ada"}); !errors.Is(err, election.ErrNoLeader) || !strings.Contains(err.Error(), "paused by ops: drill") {
		t.Error(err)
	}
}

// A pause that is asked for again, since the answer was lost, is the same one, and as old.
func TestPauseAskedForAgain(t *testing.T) {
	st := memory.NewDB(memory.Options{}).Open()
	defer func() { _ = st.Close() }()
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i, reason := range []string{"move", "move", "another"} {
		if err := election.SetPause(t.Context(), st, "job", election.Pause{By: "ada", Reason: reason, Since: since.Add(time.Duration(i) * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		state, err := election.ReadState(t.Context(), st, "job")
		want, last := since.Add(time.Duration(i/2)*2*time.Hour), state.Pauses[len(state.Pauses)-1]
		if err != nil || len(state.Pauses) != i/2+1 || !last.Since.Equal(want) || last.Reason != reason {
			t.Errorf("%d: %+v, %v: want it since %v", i, state.Pauses, err, want)
		}
	}
}

// A leader that found no place on the list hears an order all the same.
func TestHandOverOfALeaderThatIsNotListed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		others := make([]election.Candidate, 50)
		for i := range others {
			key := fmt.Sprintf(".session/other%d/1", i)
			put(t, w.st, key, "", func(r *store.Record) { r.Owner, r.Token, r.TTL = fmt.Sprint("other", i), 1, store.MaxTTL })
			others[i] = election.Candidate{Session: key, Name: fmt.Sprint("other", i)}
		}
		data, err := json.Marshal(map[string]any{"v": 1, "candidates": others})
		if err != nil {
			t.Fatal(err)
		}
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		w.expect("a leads")
		put(t, w.st, ".election/job", string(data))
		time.Sleep(2 * ttl)
		l := w.leader()
		if state, err := election.ReadState(t.Context(), w.st, "job"); err != nil || len(state.Candidates) != 50 || state.Candidates[49].Name != "other49" {
			t.Fatalf("%+v, %v", state, err)
		}
		h, err := election.HandOver(t.Context(), w.st, "job", election.HandOverOptions{Token: l.Token, By: "ada"})
		if err != nil || h.From.Owner != l.Owner || !strings.HasPrefix(l.Owner, "a/") {
			t.Fatalf("%+v, %v", h, err)
		}
		time.Sleep(time.Second)
		if got := w.told(); !strings.HasPrefix(got, "a stopped") {
			t.Error(got)
		}
	})
}
