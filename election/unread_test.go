package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// put writes the record under key with data, whatever is there.
func put(t *testing.T, st store.Store, key, data string, change ...func(*store.Record)) {
	t.Helper()
	rec, err := store.Load(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	rec.Data, rec.Nonce = []byte(data), rec.Nonce+"x"
	for _, f := range change {
		f(&rec)
	}
	if _, err := st.Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

func version(t *testing.T, st store.Store, key string) string {
	t.Helper()
	rec, err := store.Load(t.Context(), st, key)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Version
}

// What can't be read is no answer to an operator: neither that nobody leads, nor that an order was given.
func TestUnreadElectionIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errRefused := errors.New("connection refused")
		st := memory.New(memory.Options{Clock: clocktest.New(0)})
		defer st.Close()
		const token = 7
		put(t, st, ".election/e", `{"v":1,"candidates":[{"session":".session/a/1","name":"a"},{"session":".session/b/2","name":"b"}]}`)
		put(t, st, "e", "", func(r *store.Record) {
			r.Kind, r.Owner, r.Token, r.TTL, r.Session = store.KindElection, "a", token, time.Minute, ".session/a/1"
		})
		for _, owner := range []string{"a", "b"} {
			put(t, st, ".session/"+owner+"/"+map[string]string{"a": "1", "b": "2"}[owner], "", func(r *store.Record) { r.Owner, r.Token, r.TTL = owner, 1, time.Minute })
		}
		calls := func(st store.Store) map[string]error {
			_, read := election.ReadState(t.Context(), st, "e")
			_, now := election.Current(t.Context(), st, "e")
			_, handed := election.HandOver(t.Context(), st, "e", election.HandOverOptions{Token: token, To: "b", By: "ada"})
			return map[string]error{
				"ReadState": read, "Current": now, "HandOver": handed,
			}
		}
		for _, key := range []string{"e", ".session/a/1", ".election/e", ".session/b/2"} {
			failing := faulty.Wrap(memoryOf(st), func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Get && op.Key == key {
					return faulty.Fault{Err: errRefused}
				}
				return faulty.Fault{}
			})
			for what, err := range calls(failing) {
				if what == "Current" && strings.HasPrefix(key, ".election/") || key == ".session/b/2" && what != "HandOver" {
					continue // it doesn't read that
				}
				if !errors.Is(err, errRefused) {
					t.Errorf("%s can't be read: %s: %v", key, what, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			seen := 0
			for l, err := range election.Watch(ctx, failing, "e", election.WatchOptions{Clock: clocktest.New(0), Poll: time.Second}) {
				if unread := key == "e" || key == ".session/a/1"; errors.Is(err, errRefused) != unread || !unread && l.Owner != "a" {
					t.Errorf("%s can't be read: an observer sees %+v, %v", key, l, err)
				}
				seen++
			}
			cancel()
			if seen == 0 || seen > 12 {
				t.Errorf("%s can't be read: an observer was told %d times in 10 s", key, seen)
			}
		}
		for what, err := range calls(st) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// memoryOf keeps a wrapped store from being closed with its wrapper.
func memoryOf(st store.Store) store.Store { return unclosed{st} }

type unclosed struct{ store.Store }

func (unclosed) Close() error { return nil }

// A control record that can't be read is an error that says so, of another format, too: nothing is done then.
func TestFinding_S12_AControlRecordOfAnotherFormatIsCorrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{Clock: clocktest.New(0)})
		defer st.Close()
		for _, data := range []string{"nonsense", `{"v":2}`} {
			put(t, st, ".election/e", data)
			before := version(t, st, ".election/e")
			_, read := election.ReadState(t.Context(), st, "e")
			for what, err := range map[string]error{
				"Read": read, "SetPause": election.SetPause(t.Context(), st, "e", election.Pause{By: "ada", Since: time.Now()}),
				"Resume": election.Resume(t.Context(), st, "e", ""),
				"Prune":  ballot.Prune(t.Context(), st, "e", func(string) bool { return true }, time.Now()),
			} {
				if !errors.Is(err, store.ErrCorrupt) {
					t.Errorf("%s: %s: %v", data, what, err)
				}
			}
			if version(t, st, ".election/e") != before {
				t.Errorf("%s was overwritten", data)
			}
		}
	})
}

// A pause is written where it says something else than the one that stands, and needs who pauses, why in bounds, and since when.
func TestPausesThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{Clock: clocktest.New(0)})
		defer st.Close()
		const most = 500 // bytes of who and why
		now := time.Now()
		for what, p := range map[string]election.Pause{
			"by nobody": {Since: now}, "since never": {By: "ada"},
			"a long reason": {By: "ada", Reason: strings.Repeat("x", most-2), Since: now},
			"too short":     {By: "ada", Since: now, Until: now.Add(election.MinPause - 1)},
			"too long":      {By: "ada", Since: now, Until: now.Add(election.MaxPause + 1)},
		} {
			if err := election.SetPause(t.Context(), st, "e", p); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if version(t, st, ".election/e") != "" {
			t.Error("one that is refused was written")
		}
		last := ""
		for i, c := range []struct {
			p     election.Pause
			write bool
		}{
			{election.Pause{By: "ada", Reason: strings.Repeat("x", most-3), Since: now}, true},
			{election.Pause{By: "ada", Reason: "maintenance", Since: now}, true},
			{election.Pause{By: "ada", Reason: "maintenance", Since: now.Add(time.Hour)}, false},
			{election.Pause{By: "bob", Reason: "maintenance", Since: now}, true},
			{election.Pause{By: "bob", Reason: "a move", Since: now}, true},
			{election.Pause{By: "bob", Reason: "a move", Since: now, Until: now.Add(election.MinPause)}, true},
			{election.Pause{By: "bob", Reason: "a move", Since: now, Until: now.Add(election.MinPause)}, false},
			{election.Pause{By: "bob", Reason: "a move", Since: now, Until: now.Add(election.MaxPause)}, true},
		} {
			if err := election.SetPause(t.Context(), st, "e", c.p); err != nil {
				t.Fatal(err)
			}
			v := version(t, st, ".election/e")
			if (v != last) != c.write {
				t.Errorf("pause %d was written: %v, want %v", i, v != last, c.write)
			}
			last = v
		}
	})
}

// A sweep takes those off whose sessions are over, and notes once that nobody is left and nothing is paused.
func TestPruneOfCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(memory.Options{Clock: clocktest.New(0)})
		defer st.Close()
		now := time.Now()
		pause := `,"pause":{"by":"ada","since":"` + now.UTC().Format(time.RFC3339) + `"`
		over := pause + `,"until":"` + now.UTC().Format(time.RFC3339) + `"}`
		both := `,"candidates":[{"session":".session/a/1","name":"a"},{"session":".session/b/2","name":"b"}]`
		for i, c := range []struct {
			data   string
			gone   string
			left   int
			unused bool
			write  bool
		}{
			{both, "", 2, false, false},
			{both, ".session/a/1", 1, false, true},
			{both, ".session/", 0, true, true},
			{both + pause + "}", ".session/", 0, false, true},
			{pause + "}", "", 0, false, false},
			{over, "", 0, true, true},
			{"", "", 0, true, true},
			{`,"unused":"2020-01-01T00:00:00Z"`, "", 0, true, false},
		} {
			key := fmt.Sprint(".election/e", i)
			put(t, st, key, `{"v":1`+c.data+`}`)
			before := version(t, st, key)
			gone := func(session string) bool { return c.gone != "" && strings.HasPrefix(session, c.gone) }
			if err := ballot.Prune(t.Context(), st, fmt.Sprint("e", i), gone, now); err != nil {
				t.Fatal(err)
			}
			state, err := election.ReadState(t.Context(), st, fmt.Sprint("e", i))
			if err != nil || len(state.Candidates) != c.left || state.Unused.IsZero() == c.unused || (version(t, st, key) != before) != c.write {
				t.Errorf("%d: %+v, %v, written %v", i, state, err, version(t, st, key) != before)
			}
			if c.left == 1 && state.Candidates[0].Name != "b" {
				t.Errorf("%d: the wrong one is left: %+v", i, state.Candidates)
			}
		}
	})
}
