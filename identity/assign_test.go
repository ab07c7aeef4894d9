package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func as(r, name string) AssignOptions { return AssignOptions{Options: named1(r, name)} }

func (p *process) assign(o AssignOptions) Assignment {
	p.w.Helper()
	a, err := Assign(p.w.Context(), p.m, "machines", o)
	if err != nil {
		p.w.Fatal(err)
	}
	return a
}

// assigns reports whether an operation writes what an assignment does, and not the heartbeat of a session.
func assigns(op faulty.Op) bool {
	return op.Kind == faulty.Put && !strings.HasPrefix(op.Key, ".session")
}

// An assignment outlives the process that made it, whoever asks for it again gets it, with its token; others get others.
func TestAssignmentOutlivesItsProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		first := p.assign(as("1-3", "a"))
		p.Cut()
		time.Sleep(30 * 24 * time.Hour)
		q := w.process(nil)
		again := q.assign(as("", "a"))
		if again.Value != first.Value || again.Record.Token != first.Record.Token || !again.Renewed || first.Renewed {
			t.Errorf("%+v, and a month later %+v", first, again)
		}
		if again.Record.TTL != store.MaxTTL || !again.Ceiling.After(first.Ceiling) || !again.Floor.Equal(first.Floor) {
			t.Errorf("%+v, and a month later %+v", first, again)
		}
		has := []string{first.Value}
		for _, name := range []string{"b", "c"} {
			has = append(has, q.assign(as("1-3", name)).Value)
		}
		slices.Sort(has)
		if !slices.Equal(has, []string{"1", "2", "3"}) {
			t.Errorf("assigned: %v", has)
		}
		if _, err := Assign(t.Context(), q.m, "machines", as("1-3", "d")); !errors.Is(err, ErrExhausted) {
			t.Errorf("the fourth of three: %v", err)
		}
	})
}

// An assignment whose name is silent for its TTL is free for others; until then it isn't.
func TestAssignmentExpires(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		o := as("7-7", "a")
		o.TTL = time.Hour
		first := p.assign(o)
		begun := time.Now()
		for {
			a, err := Assign(t.Context(), q.m, "machines", as("7-7", "b"))
			if err == nil {
				if lived := time.Since(begun); lived < time.Hour || lived > time.Hour+2*time.Minute {
					t.Errorf("it lived for %v", lived)
				}
				if a.Record.Token <= first.Record.Token || a.Floor.Before(first.Ceiling) {
					t.Errorf("%+v after %+v", a, first)
				}
				break
			}
			if !errors.Is(err, ErrExhausted) || time.Since(begun) > 3*time.Hour {
				t.Fatalf("after %v: %v", time.Since(begun), err)
			}
			time.Sleep(time.Minute)
		}
		if _, err := Assign(t.Context(), p.m, "machines", as("7-7", "a")); !errors.Is(err, ErrExhausted) {
			t.Errorf("a has it still: %v", err)
		}
	})
}

// One name that is assigned many times at once gets one value.
func TestOneNameAssignedTwiceAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		slow := func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: 10 * time.Millisecond} }
		var mu sync.Mutex
		got := map[string]bool{}
		var wg sync.WaitGroup
		for range 6 {
			p := w.process(slow)
			wg.Go(func() {
				a, err := Assign(t.Context(), p.m, "machines", as("1-64", "a"))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				got[fmt.Sprint(a.Value, " ", a.Record.Token)] = true
			})
		}
		wg.Wait()
		if len(got) != 1 {
			t.Errorf("one name has %v", got)
		}
		if _, all, err := List(t.Context(), w.DB.Open(), "machines"); err != nil || len(all) != 1 {
			t.Errorf("listed: %+v, %v", all, err)
		}
	})
}

// Replies are lost, of each write in turn: whoever assigns again has one value, and nothing else stays taken but for a TTL.
func TestAssignWithLostReplies(t *testing.T) {
	for n := range 8 {
		for _, fault := range []faulty.Fault{{LoseReply: true, Silent: true}, {Drop: true, Silent: true}} {
			inWorld(t, func(t *testing.T, w world) {
				var puts atomic.Int64
				p := w.process(func(op faulty.Op) faulty.Fault {
					if assigns(op) && puts.Add(1) == int64(n+1) {
						return fault
					}
					return faulty.Fault{}
				})
				for {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					a, err := Assign(ctx, p.m, "machines", as("1-4", "a"))
					cancel()
					if err == nil {
						if again := p.assign(as("1-4", "a")); again.Value != a.Value {
							t.Errorf("%s, then %s", a.Value, again.Value)
						}
						break
					}
				}
				time.Sleep(2 * ttl)
				for _, name := range []string{"b", "c", "d"} {
					for {
						if _, err := Assign(t.Context(), p.m, "machines", as("1-4", name)); err == nil {
							break
						} else if !errors.Is(err, ErrExhausted) {
							t.Fatalf("%s: %v", name, err)
						}
						time.Sleep(ttl) // where no age is known, what is left is looked at twice
					}
				}
			})
		}
	}
}

// A process dies in the middle of an assignment, after each of its writes: what it has taken is free after its TTL, and its name isn't
// kept out for longer.
func TestAssignThatDiesHalfway(t *testing.T) {
	for n := range 6 {
		inWorld(t, func(t *testing.T, w world) {
			w.process(nil).assign(as("1-2", "declares"))
			var puts atomic.Int64
			var p *process
			p = w.process(func(op faulty.Op) faulty.Fault {
				if assigns(op) && puts.Add(1) > int64(n) {
					p.Cut()
					return faulty.Fault{Drop: true}
				}
				return faulty.Fault{}
			})
			ctx, cancel := context.WithTimeout(t.Context(), ttl/3)
			defer cancel()
			_, err := Assign(ctx, p.m, "machines", as("", "a"))
			if err == nil {
				t.Fatalf("it lives after %d writes", n)
			}
			q := w.process(nil)
			ctx, cancel = context.WithTimeout(t.Context(), 4*ttl)
			defer cancel()
			name := "a"
			if n%2 == 0 {
				name = "b"
			}
			for {
				if _, err = Assign(ctx, q.m, "machines", as("", name)); err == nil || ctx.Err() != nil {
					break
				}
				time.Sleep(ttl / 2)
			}
			if err != nil {
				t.Errorf("%s, after a death behind %d writes: %v", name, n, err)
			}
		})
	}
}

// A process that claims a name's value takes its assignment over, with a new token and a window of its own; while it keeps it, the name
// can't be assigned.
func TestClaimTakesAnAssignmentOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		a := p.assign(as("1-9", "a"))
		start := time.Now()
		h := p.claim(named1("1-9", "a"))
		if h.Value() != a.Value || h.Token() <= a.Record.Token || h.Floor().Before(a.Ceiling) || time.Since(start) > time.Second {
			t.Errorf("claimed %s under %d from %v, after %v; assigned: %+v", h.Value(), h.Token(), h.Floor(), time.Since(start), a)
		}
		if _, err := Assign(t.Context(), p.m, "machines", as("1-9", "a")); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("assigned while a process keeps it: %v", err)
		}
		if err := h.Check(); err != nil {
			t.Error(err)
		}
		var kept *NotAssignedError
		if _, err := Release(t.Context(), p.Net, "machines", ReleaseOptions{Value: h.Value(), Clock: p.Clk}); !errors.As(err, &kept) {
			t.Errorf("released while a process keeps it: %v", err)
		}
		p.release(h, h.Floor())
		if b := p.assign(as("1-9", "a")); b.Value != a.Value || b.Renewed || b.Floor.After(a.Ceiling) {
			t.Errorf("assigned after that: %+v", b)
		}
	})
}

// The window of what is assigned begins where the one before ended, whoever had it, so ids are unique across it.
func TestAssignedWindowsDoNotOverlap(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		var ceiling time.Time
		for i := range 5 {
			a := p.assign(as("3-3", fmt.Sprint("n", i)))
			if a.Floor.Before(ceiling) || a.Ceiling.Before(a.Floor) {
				t.Errorf("%d: window from %v to %v, after one to %v", i, a.Floor, a.Ceiling, ceiling)
			}
			g, err := flake.New[flake.ID](flake.Snowflake(), a.Number, flake.FixedWindow(a.Floor, a.Ceiling), flake.Options{Now: p.Clk.Wall, MaxWait: -1})
			if err != nil {
				t.Fatal(err)
			}
			ceiling = a.Ceiling
			o := ReleaseOptions{Name: a.Name, Clock: p.Clk}
			if i%2 == 0 {
				time.Sleep(time.Minute)
				if _, err := g.Next(); err != nil && i == 0 {
					t.Fatal(err)
				}
				o.Used = g.Stop()
				ceiling = o.Used
			}
			if _, err := Release(t.Context(), p.Net, "machines", o); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAssignedValueThatWasAskedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		o := as("1-9", "a")
		o.Value = "5"
		if a := p.assign(o); a.Value != "5" || p.assign(o).Value != "5" {
			t.Errorf("%+v", a)
		}
		o.Value = "6"
		var other *OtherValueError
		if _, err := Assign(t.Context(), p.m, "machines", o); !errors.As(err, &other) || other.Value != "5" {
			t.Errorf("another one for the same name: %v", err)
		}
		b := as("1-9", "b")
		b.Value = "5"
		if _, err := Assign(t.Context(), p.m, "machines", b); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("the same for another name: %v", err)
		}
		b.Value = "10"
		var outside *OutsideError
		if _, err := Assign(t.Context(), p.m, "machines", b); !errors.As(err, &outside) {
			t.Errorf("one that isn't in the pool: %v", err)
		}
		if _, err := Release(t.Context(), p.Net, "machines", ReleaseOptions{Value: "5", Name: "b", Clock: p.Clk}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("released by another name: %v", err)
		}
		if v, err := Release(t.Context(), p.Net, "machines", ReleaseOptions{Name: "a", Clock: p.Clk}); err != nil || v != "5" {
			t.Errorf("released: %s, %v", v, err)
		}
		if _, err := Release(t.Context(), p.Net, "machines", ReleaseOptions{Value: "5", Clock: p.Clk}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("released twice: %v", err)
		}
		if a := p.assign(o); a.Value != "6" {
			t.Errorf("after its release: %+v", a)
		}
	})
}

// A value that is assigned for a session is kept by that, and by nothing else.
func TestAssignedToASession(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, q := w.process(nil), w.process(nil)
		o := as("1-1", "a")
		o.Session = q.s.Key()
		a := p.assign(o)
		if a.Record.Owner != q.m.Holder() || a.Record.Session != q.s.Key() {
			t.Errorf("%+v", a.Record)
		}
		if again := p.assign(o); again.Record.Token != a.Record.Token || !again.Renewed {
			t.Errorf("again: %+v", again)
		}
		time.Sleep(10 * ttl)
		if _, err := Assign(t.Context(), p.m, "machines", as("1-1", "b")); !errors.Is(err, ErrExhausted) {
			t.Errorf("while the session lives: %v", err)
		}
		if err := q.s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		if b := p.assign(as("1-1", "b")); b.Record.Token <= a.Record.Token {
			t.Errorf("%+v", b)
		}
		if _, err := Assign(t.Context(), p.m, "machines", o); !errors.Is(err, fence.ErrStale) {
			t.Errorf("for a session that is closed: %v", err)
		}
	})
}

// An operator breaks an assignment: its name can't renew it, and has to wait for the grace as everybody does.
func TestBrokenAssignment(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		a := p.assign(as("1-1", "a"))
		if _, err := drive.Break(t.Context(), p.Net, a.Record.Key, drive.EndTerm{Token: a.Record.Token, By: "op", Grace: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if _, err := Assign(t.Context(), p.m, "machines", as("1-1", "a")); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("assigned again: %v", err)
		}
		time.Sleep(time.Minute)
		start := time.Now()
		if h := p.claim(named1("1-1", "a")); h.Token() <= a.Record.Token || time.Since(start) > ttl {
			t.Errorf("claimed %d after %v, assigned: %d", h.Token(), time.Since(start), a.Record.Token)
		}
	})
}

// What an assignment costs in writes.
func TestWritesOfAnAssignment(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		var puts atomic.Int64
		p := w.process(func(op faulty.Op) faulty.Fault {
			if assigns(op) {
				puts.Add(1)
			}
			return faulty.Fault{}
		})
		p.assign(as("1-9", "first"))
		puts.Store(0)
		p.assign(as("1-9", "a"))
		made := puts.Load()
		p.assign(as("1-9", "a"))
		if made > 6 || puts.Load()-made > 2 {
			t.Errorf("%d writes, and %d to repeat it", made, puts.Load()-made)
		}
	})
}
