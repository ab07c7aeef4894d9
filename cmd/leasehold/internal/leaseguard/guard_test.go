package leaseguard

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// reading is one of the clock of the present bubble.
func reading() int64 { return time.Now().UnixNano() }

func in(d time.Duration) int64 { return reading() + int64(d) }

// source is what a guard of the present bubble waits by.
func source(r io.Reader) func(int64) (event, string) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return func(until int64) (event, string) {
		var due <-chan time.Time
		if until != never {
			due = time.After(time.Duration(until - reading()))
		}
		select {
		case line, ok := <-lines:
			if ok {
				return told, line
			}
			return ended, ""
		case <-due:
			return late, ""
		}
	}
}

// guarded runs a guard in the present bubble and returns the supervisor's end of its pipe, and what it kills.
func guarded(t *testing.T) (*io.PipeWriter, func() []int) {
	t.Helper()
	r, w := io.Pipe()
	ended := make(chan struct{})
	var killed []int
	go func() {
		defer close(ended)
		watchOver(source(r), reading, func(s *Scope) bool {
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
		w, end := guarded(t)
		fmt.Fprint(w, KillLine(77, in(10*time.Second)))
		time.Sleep(9 * time.Second)
		fmt.Fprint(w, KillLine(77, in(10*time.Second)))
		time.Sleep(9 * time.Second)
		fmt.Fprintln(w, Done)
		if killed := end(); len(killed) != 0 {
			t.Errorf("killed %v although it was told later times, and then to let go", killed)
		}

		w, end = guarded(t)
		fmt.Fprint(w, KillLine(78, in(10*time.Second)))
		time.Sleep(11 * time.Second)
		fmt.Fprintln(w, Done)
		if killed := end(); !slices.Equal(killed, []int{78}) {
			t.Errorf("killed %v: want 78, once", killed)
		}
	})
}

func TestGuardKillsWhenTheSupervisorIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, end := guarded(t)
		fmt.Fprint(w, KillLine(77, in(10*time.Second)))
		if killed := end(); !slices.Equal(killed, []int{77}) {
			t.Errorf("killed %v: want 77", killed)
		}
	})
}

func TestGuardNeverKillsItselfOrEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, group := range []int{-1, 0, 1} {
			w, end := guarded(t)
			fmt.Fprint(w, KillLine(group, reading()))
			time.Sleep(time.Second)
			if killed := end(); len(killed) != 0 {
				t.Errorf("killed %v", killed)
			}
		}
		for _, line := range []string{"what's this?", "77", "77 ", " 77 1", "77 1 1", "77 x", "x 77", "", " ", "scope ", `scope "a"`, `scope "a" "b" `, `scope "a`} {
			w, end := guarded(t)
			fmt.Fprintln(w, line)
			time.Sleep(time.Second)
			if killed := end(); len(killed) != 0 {
				t.Errorf("%q: killed %v", line, killed)
			}
		}
	})
}

// What a supervisor tells of a scope comes to its guard as it was.
func TestScopeIsToldAsItIs(t *testing.T) {
	for _, want := range []Scope{{}, {Cgroup: "/a \"group\"\n"}, {Mark: "m=1 2"}, {Cgroup: "/sys/fs/cgroup/ä", Mark: `\`}} {
		got := Scope{Cgroup: "before", Mark: "before"}
		if _, timed := got.told(want.Line()[:len(want.Line())-1]); timed || got != want {
			t.Errorf("told %q, the guard has %+v", want.Line(), got)
		}
	}
}

// A guard does it again until nothing is left: while the supervisor hangs, and once it is gone.
func TestGuardKillsAgainUntilNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		ended := make(chan struct{})
		calls, last := 0, Scope{}
		go func() {
			defer close(ended)
			watchOver(source(r), reading, func(s *Scope) bool {
				calls++
				last = *s
				return calls != 3 && calls != 7
			})
		}()
		fmt.Fprint(w, Scope{Cgroup: "/a group", Mark: "m"}.Line())
		fmt.Fprint(w, KillLine(77, in(time.Second)))
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

// Lines come in pieces, and several at once. One that has come before the time counts, also when the guard looks later.
func TestLinesComeBeforeTheTime(t *testing.T) {
	var pieces []string
	l := lines{
		await: func(int64) bool { return len(pieces) > 0 },
		read: func(b []byte) (int, error) {
			n := copy(b, pieces[0])
			pieces = pieces[1:]
			return n, nil
		},
	}
	want := func(what event, line string) {
		t.Helper()
		if e, got := l.next(0); e != what || got != line {
			t.Errorf("event %d, line %q; want %d, %q", e, got, what, line)
		}
	}
	want(late, "")
	pieces = []string{"a", "b\nc\n\nd"}
	want(told, "ab")
	want(told, "c")
	want(told, "")
	want(late, "")
	pieces = []string{"e\nnot the whole", ""}
	want(told, "de")
	want(ended, "")
	want(ended, "")
}
