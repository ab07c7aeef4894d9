package leaseguard

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
)

const sec = clock.Instant(time.Second)

// guarded runs a guard in the present bubble and returns the supervisor's end of its pipe, and what it kills.
func guarded(t *testing.T, clk clock.Clock) (*io.PipeWriter, func() []int) {
	t.Helper()
	r, w := io.Pipe()
	ended := make(chan struct{})
	var killed []int
	go func() {
		defer close(ended)
		watchOver(r, clk, func(s *Scope) bool {
			if s.Group != 0 {
				killed = append(killed, s.Group)
			}
			return false
		})
	}()
	return w, func() []int {
		_ = w.Close()
		<-ended
		return killed
	}
}

func TestGuardKillsAtTheTimeToldLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(sec)
		w, end := guarded(t, clk)
		fmt.Fprint(w, KillLine(77, clk.Now().Add(10*time.Second)))
		time.Sleep(9 * time.Second)
		fmt.Fprint(w, KillLine(77, clk.Now().Add(10*time.Second)))
		time.Sleep(9 * time.Second)
		fmt.Fprintln(w, Done)
		if killed := end(); len(killed) != 0 {
			t.Errorf("killed %v although it was told later times, and then to let go", killed)
		}

		w, end = guarded(t, clk)
		fmt.Fprint(w, KillLine(78, clk.Now().Add(10*time.Second)))
		time.Sleep(11 * time.Second)
		fmt.Fprintln(w, Done)
		if killed := end(); !slices.Equal(killed, []int{78}) {
			t.Errorf("killed %v: want 78, once", killed)
		}
	})
}

func TestGuardKillsWhenTheSupervisorIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(sec)
		w, end := guarded(t, clk)
		fmt.Fprint(w, KillLine(77, clk.Now().Add(10*time.Second)))
		if killed := end(); !slices.Equal(killed, []int{77}) {
			t.Errorf("killed %v: want 77", killed)
		}
	})
}

func TestGuardNeverKillsItselfOrEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(sec)
		for _, group := range []int{-1, 0, 1} {
			w, end := guarded(t, clk)
			fmt.Fprint(w, KillLine(group, clk.Now()))
			time.Sleep(time.Second)
			if killed := end(); len(killed) != 0 {
				t.Errorf("killed %v", killed)
			}
		}
		w, end := guarded(t, clk)
		fmt.Fprintln(w, "what's this?")
		if killed := end(); len(killed) != 0 {
			t.Errorf("killed %v", killed)
		}
	})
}

// A guard does it again until nothing is left: while the supervisor hangs, and once it is gone.
func TestGuardKillsAgainUntilNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(sec)
		r, w := io.Pipe()
		ended := make(chan struct{})
		calls, last := 0, Scope{}
		go func() {
			defer close(ended)
			watchOver(r, clk, func(s *Scope) bool {
				calls++
				last = *s
				return calls != 3 && calls != 7
			})
		}()
		fmt.Fprint(w, Scope{Cgroup: "/a group", Mark: "m"}.Line())
		fmt.Fprint(w, KillLine(77, clk.Now().Add(time.Second)))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := (Scope{77, "/a group", "m"}); calls != 3 || last != want {
			t.Errorf("%d calls, the last one for %+v; want 3, for %+v", calls, last, want)
		}
		_ = w.Close()
		<-ended
		if calls != 7 {
			t.Errorf("%d calls, want 7", calls)
		}
	})
}
