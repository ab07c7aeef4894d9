package turns_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

var three = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)

func open(t *testing.T) store.Store {
	t.Helper()
	return memory.NewDB(memory.Options{}).Open()
}

// begin begins the turn of an hour, and reports whether it could.
func begin(t *testing.T, st store.Store, token fence.Token, hour int, retry bool) bool {
	t.Helper()
	at := three.Add(time.Duration(hour) * time.Hour)
	done, err := turns.Begin(t.Context(), st, "job", turns.Turn{At: at, Token: token, Holder: "a", Begun: at}, retry)
	if err != nil {
		t.Fatal(err)
	}
	return done == nil
}

func end(t *testing.T, st store.Store, token fence.Token, code int) {
	t.Helper()
	if err := turns.End(t.Context(), st, "job", token, code, three); err != nil {
		t.Fatal(err)
	}
}

// A turn is begun once, unless it failed and is to be retried; a host whose clock is behind doesn't begin one before the last.
func TestBegin(t *testing.T) {
	st := open(t)
	for _, step := range []struct {
		token fence.Token
		hour  int
		retry bool
		want  bool
		code  int // -1: it does not end
	}{
		{1, 0, false, true, 0}, {2, 0, false, false, -1}, {3, 0, true, false, -1}, // it succeeded
		{4, 1, false, true, 7}, {5, 1, false, false, -1}, {6, 1, true, true, -1}, // it failed, then was lost
		{7, 1, false, false, -1}, {8, 1, true, true, 0}, {9, 1, true, false, -1},
		{10, 0, false, false, -1}, {11, 0, true, false, -1}, // behind
		{12, 3, false, true, 0}, {13, 2, true, false, -1},
	} {
		if got := begin(t, st, step.token, step.hour, step.retry); got != step.want {
			t.Errorf("%+v: %v", step, got)
		}
		if step.code >= 0 {
			end(t, st, step.token, step.code)
		}
	}
}

// The same write, sent again after an unknown outcome, is no second one.
func TestBeginAgain(t *testing.T) {
	st := open(t)
	for range 2 {
		if !begin(t, st, 1, 0, false) {
			t.Error("the holder of the turn was refused")
		}
	}
	if all, err := turns.Load(t.Context(), st, "job"); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}

// A holder that was late can't begin or end a turn when a later term has begun one.
func TestTurnOfATermThatIsOver(t *testing.T) {
	st := open(t)
	begin(t, st, 8, 0, false)
	if _, err := turns.Begin(t.Context(), st, "job", turns.Turn{At: three.Add(time.Hour), Token: 7}, true); !errors.Is(err, turns.ErrTerm) {
		t.Errorf("begun: %v", err)
	}
	if err := turns.End(t.Context(), st, "job", 7, 0, three); !errors.Is(err, turns.ErrTerm) {
		t.Errorf("ended: %v", err)
	}
	begin(t, st, 9, 1, false)
	if err := turns.End(t.Context(), st, "job", 8, 0, three); !errors.Is(err, turns.ErrTerm) {
		t.Errorf("ended after the next: %v", err)
	}
}

// The last turns are kept, with what came of them, newest first.
func TestPast(t *testing.T) {
	st := open(t)
	for i := range 20 {
		begin(t, st, fence.Token(i+1), i, false)
		if i != 18 { // that one is lost
			end(t, st, fence.Token(i+1), i)
		}
	}
	all, err := turns.Load(t.Context(), st, "job")
	if err != nil || len(all) != turns.Most {
		t.Fatalf("%v, %v", all, err)
	}
	for i, turn := range all {
		switch n := 19 - i; {
		case turn.Token != fence.Token(n+1) || n != 18 && (turn.Code == nil || *turn.Code != n || turn.Ended.IsZero()) || n == 18 && (turn.Code != nil || !turn.Failed()):
			t.Errorf("%d: %+v", i, turn)
		}
	}
}

// Data that this version can't read are an error, and stay. Fields that it doesn't know are none.
func TestLaterTurnsAreRefused(t *testing.T) {
	st := open(t)
	for text, corrupt := range map[string]bool{`{"v":2}`: true, `x`: true, `{"v":1,"kind":"rw","turn":{"at":"2026-11-24T03:00:00Z","token":1,"later":{}}}`: false} {
		if err := store.Update(t.Context(), st, turns.Prefix+"job", func(rec *store.Record) (bool, error) { rec.Data = []byte(text); return true, nil }); err != nil {
			t.Fatal(err)
		}
		_, err := turns.Begin(t.Context(), st, "job", turns.Turn{At: three.Add(time.Hour), Token: 2}, false)
		if errors.Is(err, store.ErrCorrupt) != corrupt || !corrupt && err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A version that kept one turn only reads what this one writes, and is read.
func TestEarlierVersions(t *testing.T) {
	st := open(t)
	begin(t, st, 1, 0, false)
	end(t, st, 1, 3)
	begin(t, st, 2, 1, false)
	rec, err := store.Load(t.Context(), st, turns.Prefix+"job")
	if err != nil {
		t.Fatal(err)
	}
	var earlier struct {
		Format int `json:"v"`
		Turn   struct {
			At    time.Time   `json:"at"`
			Token fence.Token `json:"token"`
		} `json:"turn"`
	}
	if err := json.Unmarshal(rec.Data, &earlier); err != nil || earlier.Format != 1 || earlier.Turn.Token != 2 {
		t.Errorf("%s is read as %+v, %v", rec.Data, earlier, err)
	}
	if rec.Data, err = json.Marshal(earlier); err != nil {
		t.Fatal(err)
	}
	if all, err := turns.Read(rec); err != nil || len(all) != 1 || !all[0].At.Equal(three.Add(time.Hour)) {
		t.Errorf("%v, %v", all, err)
	}
}

// A name of the greatest length has no room for turns.
func TestLongName(t *testing.T) {
	name := make([]byte, store.MaxKey)
	for i := range name {
		name[i] = 'a'
	}
	if all, err := turns.Load(t.Context(), open(t), string(name)); all != nil || err != nil {
		t.Errorf("%v, %v", all, err)
	}
}
