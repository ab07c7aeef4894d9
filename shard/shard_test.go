package shard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/faulty"
)

// Slices spread as workers come, and go on when they leave or die; each has one owner all the time.
func TestWorkersComeAndGo(t *testing.T) {
	for _, space := range []shard.Space{{Name: "s", Names: names(60)}, {Name: "s", Hashed: true, Slices: 64}} {
		t.Run(fmt.Sprint(space.Hashed), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				total := len(space.Names) + space.Slices
				a := w.join(space, shard.Worker{Address: "a:1"})
				settle()
				if n := counts(a); n[0] != total {
					t.Fatalf("one worker serves %v of %d", n, total)
				}
				b := w.join(space, shard.Worker{Address: "b:1"})
				c := w.join(space, shard.Worker{Address: "c:1", Capacity: 2, Bystander: true})
				time.Sleep(ttl)
				settle()
				if n := counts(a, b, c); n[0]+n[1]+n[2] != total || n[0] > total/4+2 || n[1] > total/4+2 || n[2] > total/2+3 {
					t.Errorf("three workers, of which the last has twice the capacity, serve %v of %d", n, total)
				}
				began := time.Now()
				if err := a.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
				settle()
				if n := counts(a, b, c); n[0] != 0 || n[1]+n[2] != total || time.Since(began) > 3*time.Second {
					t.Errorf("after one has left, which took %v: %v of %d", time.Since(began), n, total)
				}
				c.outage.Start() // it dies
				began = time.Now()
				for counts(b)[0] != total && time.Since(began) < 2*ttl {
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(began); took > ttl+time.Second {
					t.Errorf("after a death, all slices have an owner after %v, want a TTL and a second", took)
				}
				if n := counts(c); n[0] != 0 {
					t.Errorf("the dead worker serves %v", n)
				}
			})
		})
	}
}

// A worker that leaves alone frees all at once, and the last names are nobody's.
func TestTheLastWorkerLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.join(shard.Space{Name: "s", Names: names(10)}, shard.Worker{})
		settle()
		began := time.Now()
		if err := a.Leave(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		for _, e := range entries(t, w.st, "s") {
			if e.Owner != "" || e.Token == 0 {
				t.Errorf("%+v", e)
			}
		}
		if m, err := shard.Members(t.Context(), w.st, "s"); err != nil || len(m) != 0 {
			t.Errorf("members: %+v, %v", m, err)
		}
		if _, err := a.Check("p001"); !errors.Is(err, shard.ErrWrongOwner) {
			t.Errorf("who has left: %v", err)
		}
	})
}

// diary is what callbacks of workers saw.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) worker(t *testing.T, name string) shard.Worker {
	said := func(what string) func(context.Context, *shard.Slice) {
		return func(ctx context.Context, s *shard.Slice) {
			if mine := s.Check() == nil; mine != (what == "start" || what == "drain") {
				t.Errorf("%s %s: it is its own: %t", name, what, mine)
			}
			if what == "stop" != (ctx.Err() != nil) {
				t.Errorf("%s %s: its context: %v", name, what, ctx.Err())
			}
			d.write("%s %s %s", name, what, s.Name)
		}
	}
	return shard.Worker{
		Name: name, Address: name + ":1", Prepare: said("prepare"), Drain: said("drain"),
		Start: func(ctx context.Context, s *shard.Slice) error { said("start")(ctx, s); return nil },
		Stop:  func(s *shard.Slice) { said("stop")(s.Context(), s) },
	}
}

// A slice that moves is prepared there, drained and stopped here, and started there, in this order.
func TestAMoveInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d, space := &diary{}, shard.Space{Name: "s", Names: []string{"x"}}
		a := w.join(space, d.worker(t, "a"))
		settle()
		b := w.join(space, d.worker(t, "b"))
		settle()
		before, err := a.Check("x")
		if err != nil {
			t.Fatal(err)
		}
		if err := shard.RequestMove(t.Context(), w.st, "s", "x", "b"); err != nil {
			t.Fatal(err)
		}
		settle()
		want := []string{"a start x", "b prepare x", "a drain x", "a stop x", "b start x"}
		if !slices.Equal(d.lines, want) {
			t.Errorf("%q, want %q", d.lines, want)
		}
		after, err := b.Check("x")
		if err != nil || after <= before {
			t.Errorf("token %d, then %d, %v", before, after, err)
		}
		var wrong *shard.WrongOwner
		if _, err := a.Check("x"); !errors.As(err, &wrong) || wrong.Now != "b:1" || wrong.Token != after {
			t.Errorf("the old owner says %v", err)
		}
	})
}

// A slice that can't be started goes on, and is tried again.
func TestAStartThatFails(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		tries, told := 0, 0
		a := w.join(shard.Space{Name: "s", Names: []string{"x"}}, shard.Worker{
			Start: func(context.Context, *shard.Slice) error {
				if tries++; tries < 3 {
					return errors.New("not yet")
				}
				return nil
			},
			OnError: func(error) { told++ },
		})
		time.Sleep(ttl)
		if _, err := a.Check("x"); err != nil || tries != 3 || told != 2 {
			t.Errorf("after %d tries, of which %d were told: %v", tries, told, err)
		}
	})
}

// A stopped process passes no check once its validity is over, and is another member when it runs again.
func TestAStoppedProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(4)}
		a, b := w.join(space, shard.Worker{}), w.join(space, shard.Worker{})
		settle()
		mine := a.Slices()
		a.clk.Pause()
		time.Sleep(2 * ttl)
		for _, s := range mine {
			if err := s.Check(); err == nil {
				t.Errorf("%v passes in a process that stood still", s)
			}
		}
		if n := counts(a, b); n[0]+n[1] > 4 || n[1] < 2 {
			t.Errorf("while one stands still: %v", n)
		}
		a.clk.Resume()
		time.Sleep(ttl)
		if n := counts(a, b); n[0]+n[1] != 4 || n[0] == 0 {
			t.Errorf("when it runs again: %v", n)
		}
	})
}

// Names come and go while workers run.
func TestNamesComeAndGo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		d := &diary{}
		a := w.join(shard.Space{Name: "s", Names: []string{"x", "y"}}, d.worker(t, "a"))
		settle()
		old, err := a.Check("x")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(shard.RemoveNames(t.Context(), w.st, "s", "x", "unknown"), shard.AddNames(t.Context(), w.st, "s", "z", "y")); err != nil {
			t.Fatal(err)
		}
		settle()
		if _, err := a.Check("x"); err == nil || len(entries(t, w.st, "s")) != 2 || len(a.Slices()) != 2 {
			t.Errorf("after x was removed: %v, %+v", err, entries(t, w.st, "s"))
		}
		if err := shard.AddNames(t.Context(), w.st, "s", "x"); err != nil {
			t.Fatal(err)
		}
		settle()
		if again, err := a.Check("x"); err != nil || again <= old {
			t.Errorf("x has token %d, and had %d: %v", again, old, err)
		}
	})
}

// A split and a merge keep the owner, and raise the token over every one that a key has had.
func TestSplitAndMerge(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.join(shard.Space{Name: "s", Hashed: true, Slices: 2, Expect: 2}, shard.Worker{})
		settle()
		const low, high = uint64(1) << 60, uint64(1) << 62
		marks := map[uint64]fence.Token{}
		rises := func(what string, number int) {
			t.Helper()
			settle()
			for _, h := range []uint64{low, high - 1, high, high + 1} {
				token, err := a.CheckHash(h)
				if err != nil || token <= marks[h] {
					t.Errorf("%s: %x has token %d after %d: %v", what, h, token, marks[h], err)
				}
				marks[h] = token
			}
			if n := len(a.Slices()); n != number {
				t.Errorf("%s: %d slices, want %d", what, n, number)
			}
		}
		rises("at first", 2)
		if err := shard.RequestSplit(t.Context(), w.st, "s", high); err != nil {
			t.Fatal(err)
		}
		rises("split", 3)
		if err := shard.RequestMerge(t.Context(), w.st, "s", low); err != nil {
			t.Fatal(err)
		}
		rises("merged", 2)
		if err := shard.RequestSplit(t.Context(), w.st, "s", 0); err == nil {
			t.Error("a split at the beginning of a slice is no error")
		}
	})
}

// A checkpoint is read by the next owner, and an earlier one can't save any more.
func TestCheckpoints(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: []string{"x"}}
		a := w.join(space, shard.Worker{Name: "a"})
		settle()
		old, err := a.Slice("x")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := old.Checkpoint(t.Context()); err != nil || data != nil {
			t.Errorf("at first: %q, %v", data, err)
		}
		if err := old.SaveCheckpoint(t.Context(), []byte("offset 7")); err != nil {
			t.Fatal(err)
		}
		b := w.join(space, shard.Worker{Name: "b"})
		if err := shard.RequestMove(t.Context(), w.st, "s", "x", "b"); err != nil {
			t.Fatal(err)
		}
		settle()
		s, err := b.Slice("x")
		if err != nil {
			t.Fatal(err)
		}
		if data, err := s.Checkpoint(t.Context()); err != nil || string(data) != "offset 7" {
			t.Errorf("the next owner reads %q, %v", data, err)
		}
		if err := old.SaveCheckpoint(t.Context(), []byte("offset 8")); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the old owner saves: %v", err)
		}
		if err := s.SaveCheckpoint(t.Context(), make([]byte, shard.MaxCheckpoint+1)); err == nil {
			t.Error("too large a checkpoint is saved")
		}
	})
}

// A router knows the owners, follows moves, and tells a name that isn't there.
func TestRouter(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(20)}
		a := w.join(space, shard.Worker{Address: "a:1"})
		settle()
		r, err := shard.NewRouter(t.Context(), w.st, "s", shard.RouterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		token, err := a.Check("p007")
		if route, ok := r.Lookup("p007"); err != nil || !ok || route.Address != "a:1" || route.Token != token {
			t.Errorf("%+v, %t, %v", route, ok, err)
		}
		b := w.join(space, shard.Worker{Address: "b:1"})
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		token, err = b.Check("p007")
		if route, ok := r.Lookup("p007"); err != nil || !ok || route.Address != "b:1" || route.Token != token {
			t.Errorf("after a move: %+v, %t, %v", route, ok, err)
		}
		if route, ok := r.Lookup("unknown"); ok {
			t.Errorf("a name that isn't there: %+v", route)
		}
	})
}

// A worker leaves whose slices nobody else has room for: within a TTL it frees those, and returns.
func TestLeaveWithoutRoomElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: names(20), Placement: shard.Placement{Max: 12}}
		drained := atomic.Int32{}
		a := w.join(space, shard.Worker{Drain: func(context.Context, *shard.Slice) { drained.Add(1) }})
		settle()
		b := w.join(space, shard.Worker{})
		settle()
		if n := counts(a, b); n[0]+n[1] != 20 {
			t.Fatalf("they serve %v of 20", n)
		}
		has := int32(counts(a)[0]) //nolint:gosec // 20 at most
		drained.Store(0)
		began := time.Now()
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > ttl+ttl/2 {
			t.Errorf("it took %v to leave, with a TTL of %v", took, ttl)
		}
		settle()
		free := 0
		for _, e := range entries(t, w.st, "s") {
			if e.Owner == "" {
				free++
			}
		}
		if n := counts(b); n[0] != 12 || free != 8 || drained.Load() != has {
			t.Errorf("the other one serves %v, %d are free, and %d of %d were drained", n, free, drained.Load(), has)
		}
	})
}

// Bad input is refused with what is wrong.
func TestJoinRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		good := shard.Space{Name: "s", Names: []string{"x"}}
		a := w.join(good, shard.Worker{})
		m := a.Manager()
		for what, try := range map[string]func() error{
			"slash": func() error {
				_, err := shard.Join(t.Context(), m, shard.Space{Name: "a/b"}, shard.Worker{})
				return err
			},
			"both": func() error {
				_, err := shard.Join(t.Context(), m, shard.Space{Name: "h", Hashed: true, Names: []string{"x"}}, shard.Worker{})
				return err
			},
			"kind": func() error {
				_, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Hashed: true}, shard.Worker{})
				return err
			},
			"name": func() error {
				_, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Names: []string{""}}, shard.Worker{})
				return err
			},
			"capacity": func() error { _, err := shard.Join(t.Context(), m, good, shard.Worker{Capacity: -1}); return err },
			"margin":   func() error { _, err := shard.Join(t.Context(), m, good, shard.Worker{StopMargin: ttl}); return err },
			"no space": func() error { return shard.AddNames(t.Context(), w.st, "none", "x") },
			"worker":   func() error { return shard.RequestMove(t.Context(), w.st, "s", "x", "nobody") },
		} {
			if err := try(); err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		_ = clock.System()
	})
}

// An owner that dies while its slice is to move, and isn't to go before its successor is ready, keeps nobody from the slice.
func TestAnOwnerDiesBeforeItsSliceMoves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		space := shard.Space{Name: "s", Names: []string{"x"}}
		b := w.join(space, shard.Worker{Name: "b", PrepareWithin: time.Hour, Prepare: func(ctx context.Context, _ *shard.Slice) { <-ctx.Done() }})
		settle()
		if err := shard.Drain(t.Context(), w.st, "s", "b", true); err != nil {
			t.Fatal(err)
		}
		a := w.join(space, shard.Worker{Name: "a"})
		settle()
		if err := errors.Join(shard.Drain(t.Context(), w.st, "s", "b", false), shard.RequestMove(t.Context(), w.st, "s", "x", "b")); err != nil {
			t.Fatal(err)
		}
		settle()
		if _, err := a.Check("x"); err != nil {
			t.Fatal(err) // b isn't ready
		}
		a.outage.Start()
		time.Sleep(ttl + time.Second)
		if _, err := b.Check("x"); err != nil {
			t.Errorf("a TTL and a second after the death of the owner: %v", err)
		}
	})
}

// Once an owner has sent the write that passes a slice on, it doesn't act on the slice again under that token: the write may land
// after the owner has read that it didn't.
func TestAPassOnOfUnknownOutcome(t *testing.T) {
	for what, fault := range map[string]faulty.Fault{
		"it is applied, and its answer lost": {LoseReply: true},
		"it is applied late":                 {ApplyLate: 3 * time.Second},
		"it is applied late, in silence":     {ApplyLate: 3 * time.Second, Silent: true},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				space := shard.Space{Name: "s", Names: []string{"x"}}
				b := w.join(space, shard.Worker{Name: "b"})
				settle()
				a := w.join(space, shard.Worker{
					Name: "a", Drain: func(context.Context, *shard.Slice) { time.Sleep(time.Second) }, // it serves meanwhile
				})
				settle()
				if err := shard.RequestMove(t.Context(), w.st, "s", "x", "a"); err != nil {
					t.Fatal(err)
				}
				settle()
				mine, err := a.Slice("x")
				if err != nil {
					t.Fatal(err)
				}
				var sent atomic.Bool
				a.net.SetPlan(func(op faulty.Op) faulty.Fault {
					switch chunk := strings.Contains(op.Key, "/c/"); {
					case chunk && op.Kind == faulty.Put && !sent.Swap(true):
						return fault
					case chunk && op.Kind == faulty.Put:
						return faulty.Fault{Err: faulty.ErrLost}
					case chunk && op.Kind == faulty.Push:
						return faulty.Fault{Delay: 2 * time.Second}
					}
					return faulty.Fault{}
				})
				if err := shard.RequestMove(t.Context(), w.st, "s", "x", "b"); err != nil {
					t.Fatal(err)
				}
				for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
					if !sent.Load() {
						continue
					}
					synctest.Wait()
					if s, err := a.Slice("x"); err == nil || mine.Check() == nil {
						t.Fatalf("%v after the move was asked for, the owner acts as %v again", time.Since(began), s)
					}
				}
				if token, err := b.Check("x"); err != nil || token <= mine.Token || !sent.Load() {
					t.Errorf("the successor has token %d after %d, %v", token, mine.Token, err)
				}
			})
		})
	}
}
