package election_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// pauseFor pauses the election from now on.
func (w *world) pauseFor(d time.Duration) {
	w.T.Helper()
	now := time.Now()
	if err := election.SetPause(w.T.Context(), w.st, "job", election.Pause{By: "ada", Reason: "drill", Since: now, Until: now.Add(d)}); err != nil {
		w.T.Fatal(err)
	}
}

// A pause ends by itself, for who stands and for who comes meanwhile.
func TestPauseThatEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		w.expect("a leads")
		w.pauseFor(10 * time.Minute)
		time.Sleep(4 * time.Minute)
		w.expect("a stopped")
		w.candidate("b", election.Options{})
		time.Sleep(6*time.Minute - time.Second)
		w.expect("")
		if state, err := election.ReadState(t.Context(), w.st, "job"); err != nil || state.Pause == nil || time.Until(state.Pause.Until) != time.Second {
			t.Errorf("%+v, %v", state.Pause, err)
		}
		time.Sleep(2 * time.Second)
		if got := w.told(); got != "a leads" && got != "b leads" {
			t.Error(got)
		}
		if state, err := election.ReadState(t.Context(), w.st, "job"); err != nil || state.Pause != nil {
			t.Errorf("a pause that is over is one: %+v, %v", state.Pause, err)
		}
		time.Sleep(time.Hour)
		w.expect("")
	})
}

// A wall clock that is wrong, or steps, neither shortens nor lengthens a pause for a candidate that was there when it was set.
func TestPauseThatEndsUnderWrongClocks(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, 0, time.Hour} {
		for _, step := range []time.Duration{-time.Hour, 0, time.Hour} {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.candidate("a", election.Options{})
				a.Clk.StepWall(wrong)
				time.Sleep(time.Second)
				w.pauseFor(10 * time.Minute)
				time.Sleep(time.Minute)
				a.Clk.StepWall(step)
				time.Sleep(9*time.Minute - time.Second)
				w.expect("a leads, a stopped")
				time.Sleep(2 * time.Second)
				w.expect("a leads")
			})
		}
	}
}

// A candidate that comes later goes by its time of day, but waits no longer than the whole length.
func TestPauseThatEndsForWhoComesLater(t *testing.T) {
	for _, tt := range []struct{ wrong, leads time.Duration }{
		{0, 6 * time.Minute}, {-2 * time.Minute, 8 * time.Minute}, {-time.Hour, 10 * time.Minute}, {2 * time.Minute, 4 * time.Minute}, {time.Hour, 0},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.pauseFor(10 * time.Minute)
			time.Sleep(4 * time.Minute)
			began := time.Now()
			w.candidate("a", election.Options{}, func(p *process) { p.Clk.StepWall(tt.wrong) })
			for w.told() == "" && time.Since(began) < time.Hour {
				time.Sleep(time.Second)
			}
			if took := time.Since(began); took < tt.leads || took > tt.leads+2*time.Second {
				t.Errorf("with a clock that is wrong by %v it leads after %v, want %v", tt.wrong, took, tt.leads)
			}
		})
	}
}

// A candidate that loses its session, and forgets nothing by that, leaves a pause that it has seen begin as long as it is.
func TestPauseThatEndsOverALostSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.candidate("a", election.Options{})
		a.Clk.StepWall(time.Hour)
		time.Sleep(time.Second)
		w.pauseFor(10 * time.Minute)
		time.Sleep(time.Second)
		w.expect("a leads, a stopped")
		a.Cut()
		time.Sleep(2 * ttl)
		a.Heal()
		time.Sleep(9 * time.Minute)
		w.expect("")
		time.Sleep(time.Minute)
		w.expect("a leads")
	})
}

// A pause on a pause replaces it, which may be to prolong it, to end it sooner, or to have it last.
func TestPauseReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		w.pauseFor(10 * time.Minute)
		time.Sleep(5 * time.Minute)
		w.pauseFor(10 * time.Minute)
		time.Sleep(9 * time.Minute)
		w.expect("a leads, a stopped")
		w.pauseFor(time.Second)
		time.Sleep(2 * time.Second)
		w.expect("a leads")
		w.pauseFor(time.Minute)
		time.Sleep(time.Second)
		if err := election.SetPause(t.Context(), w.st, "job", election.Pause{By: "ada", Reason: "drill", Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		w.expect("a stopped")
		if err := election.Resume(t.Context(), w.st, "job", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.expect("a leads")
	})
}

// One that has ended by itself can be resumed all the same: somebody's clock may differ.
func TestPauseThatHasEndedIsResumed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.pauseFor(time.Minute)
		time.Sleep(time.Hour)
		if err := election.Resume(t.Context(), w.st, "job", ""); err != nil {
			t.Error(err)
		}
		if err := election.Resume(t.Context(), w.st, "job", ""); !errors.Is(err, election.ErrNotPaused) {
			t.Error(err)
		}
	})
}

func TestPauseRefused(t *testing.T) {
	st := memory.New(memory.Options{})
	defer func() { _ = st.Close() }()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for field, p := range map[string]election.Pause{
		"by":    {Since: now},
		"since": {By: "ada"},
		"until": {By: "ada", Since: now, Until: now.Add(election.MinPause - 1)},
	} {
		var invalid *store.InvalidError
		if err := election.SetPause(t.Context(), st, "job", p); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := election.SetPause(t.Context(), st, "job", election.Pause{By: "ada", Since: now, Until: now.Add(election.MaxPause + 1)}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
	if state, err := election.ReadState(t.Context(), st, "job"); err != nil || state.Pause != nil {
		t.Errorf("%+v, %v", state.Pause, err)
	}
}
