package election_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func (w *world) pauseBy(by string, d time.Duration) {
	w.T.Helper()
	p := election.Pause{By: by, Reason: "work", Since: time.Now()}
	if d > 0 {
		p.Until = p.Since.Add(d)
	}
	if err := election.SetPause(w.T.Context(), w.st, "job", p); err != nil {
		w.T.Fatal(err)
	}
}

func (w *world) paused() election.State {
	w.T.Helper()
	state, err := election.ReadState(w.T.Context(), w.st, "job")
	if err != nil {
		w.T.Fatal(err)
	}
	return state
}

// A pause stands beside those of others, whichever ends first, until each is over or ended by its id.
func TestFinding_K2_PausesOfSeveralOperators(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		w.pauseBy("ada", 0)
		time.Sleep(time.Second)
		w.expect("a leads, a stopped")
		w.pauseBy("bob", 2*time.Second)
		w.pauseBy("cy", 0)
		w.pauseBy("cy", 10*time.Minute) // one's own is replaced
		if state := w.paused(); len(state.Pauses) != 3 || state.Pause.By != "ada" || state.Pauses[2].Until.IsZero() {
			t.Errorf("%+v of %+v", state.Pause, state.Pauses)
		}
		time.Sleep(time.Minute)
		w.expect("")
		state := w.paused()
		if len(state.Pauses) != 2 {
			t.Fatalf("%+v", state.Pauses)
		}
		ada, cy := state.Pauses[0].ID, state.Pauses[1].ID
		if err := election.Resume(t.Context(), w.st, "job", ""); !errors.Is(err, election.ErrPauses) || !strings.Contains(err.Error(), ada) || !strings.Contains(err.Error(), cy) {
			t.Errorf("which one: %v", err)
		}
		if err := election.Resume(t.Context(), w.st, "job", "nobody's"); !errors.Is(err, election.ErrNotPaused) {
			t.Errorf("an id of none: %v", err)
		}
		if err := election.Resume(t.Context(), w.st, "job", ada); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		w.expect("")
		if state := w.paused(); len(state.Pauses) != 1 || state.Pause.By != "cy" {
			t.Errorf("%+v", state.Pauses)
		}
		p := election.Pause{ID: cy, By: "dot", Reason: "mine now", Since: time.Now()}
		if err := election.SetPause(t.Context(), w.st, "job", p); err != nil || w.paused().Pauses[0].By != "dot" || len(w.paused().Pauses) != 1 {
			t.Errorf("another's is replaced by its id: %v, %+v", err, w.paused().Pauses)
		}
		if p.ID = "gone"; !errors.Is(election.SetPause(t.Context(), w.st, "job", p), election.ErrNotPaused) {
			t.Error("a pause that isn't there is replaced")
		}
		w.pauseBy("eve", 0)
		if err := election.Resume(t.Context(), w.st, "job", election.AllPauses); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.expect("a leads")
		if err := election.Resume(t.Context(), w.st, "job", election.AllPauses); !errors.Is(err, election.ErrNotPaused) {
			t.Errorf("all of none: %v", err)
		}
	})
}

// A candidate counts the length of each pause from when it heard of that one, whatever becomes of the others.
func TestFinding_K2_ACandidateCountsEachPause(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{}).Clk.StepWall(time.Hour)
		time.Sleep(time.Second)
		w.pauseBy("ada", 10*time.Minute)
		time.Sleep(time.Second)
		w.expect("a leads, a stopped")
		w.pauseBy("bob", 0)
		time.Sleep(9 * time.Minute)
		if err := election.Resume(t.Context(), w.st, "job", w.paused().Pauses[1].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second)
		w.expect("")
		time.Sleep(20 * time.Second)
		w.expect("a leads")
	})
}

// A version that knows one pause sees the one that ends last. What it writes is read, and a bound holds.
func TestFinding_K2_VersionsThatKnowOnePause(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	now := time.Now()
	set := func(by string, until time.Time) error {
		return election.SetPause(t.Context(), st, "job", election.Pause{By: by, Reason: "work", Since: now, Until: until})
	}
	edit := func(f func(data map[string]any)) {
		t.Helper()
		err := store.Update(t.Context(), st, kinds.Elections+"job", func(rec *store.Record) (bool, error) {
			var data map[string]any
			err := json.Unmarshal(rec.Data, &data)
			f(data)
			rec.Data, _ = json.Marshal(data)
			return err == nil, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for by, until := range map[string]time.Time{"ada": now.Add(time.Hour), "bob": {}, "cy": now.Add(time.Minute)} {
		if err := set(by, until); err != nil {
			t.Fatal(err)
		}
	}
	edit(func(data map[string]any) {
		if data["pause"].(map[string]any)["by"] != "bob" || len(data["pauses"].([]any)) != 3 {
			t.Errorf("%v", data)
		}
		delete(data, "pauses") // with its next write
		delete(data["pause"].(map[string]any), "id")
	})
	state, err := election.ReadState(t.Context(), st, "job")
	if err != nil || len(state.Pauses) != 1 || state.Pause.By != "bob" || state.Pause.ID == "" {
		t.Errorf("%+v, %v", state.Pauses, err)
	}
	if err := set("ada", time.Time{}); err != nil {
		t.Fatal(err)
	}
	edit(func(data map[string]any) { // it has replaced the one that it sees, and knows nothing of the list
		data["pause"] = map[string]any{"by": "old", "since": now}
	})
	if state, err = election.ReadState(t.Context(), st, "job"); err != nil || len(state.Pauses) != 1 || state.Pause.By != "old" {
		t.Errorf("%+v, %v", state.Pauses, err)
	}
	edit(func(data map[string]any) { delete(data, "pause") })
	if state, err = election.ReadState(t.Context(), st, "job"); err != nil || state.Pause != nil || len(state.Pauses) != 0 {
		t.Errorf("%+v, %v", state.Pauses, err)
	}
	for i := range 11 {
		if err = set(fmt.Sprint(i), time.Time{}); (err != nil) != (i == 10) {
			t.Fatal(i, err)
		}
	}
	if !errors.Is(err, election.ErrTooMany) {
		t.Error(err)
	}
}

// An operator whose clock is ahead ends one pause, and none that candidates may still count.
func TestResumeLeavesOthersThatMayLast(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	now := time.Now()
	for by, since := range map[string]time.Time{"ada": now, "bob": now.Add(-90 * time.Minute)} {
		if err := election.SetPause(t.Context(), st, "job", election.Pause{By: by, Reason: "work", Since: since, Until: since.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := election.Resume(t.Context(), st, "job", ""); err != nil {
		t.Fatal(err)
	}
	rec, err := st.Get(t.Context(), kinds.Elections+"job")
	if err != nil || strings.Contains(string(rec.Data), "ada") || !strings.Contains(string(rec.Data), "bob") {
		t.Errorf("%s, %v", rec.Data, err)
	}
	if err := election.Resume(t.Context(), st, "job", ""); err != nil {
		t.Errorf("one that is over is forgotten: %v", err)
	}
	if err := election.Resume(t.Context(), st, "job", ""); !errors.Is(err, election.ErrNotPaused) {
		t.Error(err)
	}
}

// A pause that is asked for again is the new one, unless neither has an end; by its id it may become another's; and to replace one there is
// always room.
func TestAPauseIsReplacedByWhatIsAskedFor(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	now := time.Now().UTC()
	set := func(p election.Pause) election.Pause {
		t.Helper()
		if p.Since.IsZero() {
			p.Since = now
		}
		if err := election.SetPause(t.Context(), st, "job", p); err != nil {
			t.Fatal(err)
		}
		state, err := election.ReadState(t.Context(), st, "job")
		if err != nil {
			t.Fatal(err)
		}
		return state.Pauses[0]
	}
	first := set(election.Pause{By: "ada", Reason: "work", Until: now.Add(time.Hour)})
	again := set(election.Pause{By: "ada", Reason: "work", Until: now.Add(time.Hour), Since: now.Add(time.Second)})
	if !again.Since.Equal(now.Add(time.Second)) || !again.Until.Equal(first.Until) {
		t.Errorf("asked for again, a second later: %+v", again)
	}
	endless := set(election.Pause{By: "ada", Reason: "work"})
	if p := set(election.Pause{By: "ada", Reason: "work", Since: now.Add(time.Minute)}); !p.Since.Equal(endless.Since) || p.ID != endless.ID {
		t.Errorf("without an end, asked for again: %+v, want %+v", p, endless)
	}
	if p := set(election.Pause{ID: endless.ID, By: "bob", Reason: "work"}); p.By != "bob" {
		t.Errorf("another's: %+v", p)
	}
	if p := set(election.Pause{ID: endless.ID, By: "bob", Reason: "rest"}); p.Reason != "rest" {
		t.Errorf("for another reason: %+v", p)
	}
	for i := range 9 {
		set(election.Pause{By: fmt.Sprint("op", i), Reason: "work"})
	}
	if p := set(election.Pause{By: "bob", Reason: "rest", Until: now.Add(time.Hour)}); p.Until.IsZero() {
		t.Errorf("of ten: %+v", p)
	}
}

// The pause that ends last is the one that is shown, and that older versions see, in whichever order they were set; of several without an
// end, the first.
func TestThePauseThatEndsLast(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	now := time.Now()
	ends := map[string]time.Time{"never": {}, "nor this": {}, "hour": now.Add(time.Hour), "minute": now.Add(time.Minute)}
	for i, order := range [][]string{{"never", "hour", "minute"}, {"hour", "never", "minute"}, {"minute", "hour", "never"}, {"hour", "never", "nor this"}, {"hour", "minute"}, {"minute", "hour"}} {
		name := fmt.Sprint("job", i)
		for _, by := range order {
			if err := election.SetPause(t.Context(), st, name, election.Pause{By: by, Since: now, Until: ends[by]}); err != nil {
				t.Fatal(err)
			}
		}
		want := "hour"
		if len(order) == 3 {
			want = "never"
		}
		if state, err := election.ReadState(t.Context(), st, name); err != nil || state.Pause == nil || state.Pause.By != want {
			t.Errorf("%v: %+v, %v; want that of %s", order, state.Pause, err, want)
		}
	}
}
