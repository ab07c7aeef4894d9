package watcher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// room is a Set whose watches tell when they begin, are served and end.
type room struct {
	*Set[*Watch]
	begun, served, stopped, ended map[string]int
}

// enter runs test in virtual time on a set that keeps what nobody waits on for linger, at most most of them.
func enter(t *testing.T, linger time.Duration, most int, test func(t *testing.T, r *room)) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{begun: map[string]int{}, served: map[string]int{}, stopped: map[string]int{}, ended: map[string]int{}}
		keys := map[*Watch]string{}
		turn := make(chan struct{}, 1) // guards the maps
		r.Set = NewSet(t.Context(), Kind[*Watch]{
			Begin: func(ctx context.Context, key string) *Watch {
				turn <- struct{}{}
				defer func() { <-turn }()
				w := Begin(ctx, key)
				r.begun[key]++
				keys[w] = key
				return w
			},
			Serve: func(ctx context.Context, key string, w *Watch) {
				turn <- struct{}{}
				r.served[key]++
				<-turn
				w.Again()
				<-ctx.Done()
				turn <- struct{}{}
				r.stopped[key]++
				<-turn
			},
			End:    func(w *Watch) { r.ended[keys[w]]++ },
			Linger: linger, MaxIdle: most, Clock: clocktest.New(0),
		})
		defer r.Close()
		test(t, r)
	})
}

func (r *room) join(t *testing.T, key string) (*Watch, func()) {
	t.Helper()
	w, leave, err := r.Join(key)
	if err != nil {
		t.Fatal(err)
	}
	return w, leave
}

// is checks how often the watch on key began and ended by now.
func (r *room) is(t *testing.T, what, key string, begun, ended int) {
	t.Helper()
	synctest.Wait()
	if r.begun[key] != begun || r.served[key] != begun || r.ended[key] != ended || r.stopped[key] != ended {
		t.Errorf("%s: the watch began %d times, was served %d, stopped %d and ended %d times; want %d and %d",
			what, r.begun[key], r.served[key], r.stopped[key], r.ended[key], begun, ended)
	}
	if _, ok := r.Get(key); ok != (begun > ended) {
		t.Errorf("%s: there is a watch: %v", what, ok)
	}
}

// All who wait for a key share one watch, and it lasts until the last has left.
func TestWatchesAreShared(t *testing.T) {
	enter(t, 0, 0, func(t *testing.T, r *room) {
		first, leave := r.join(t, "a")
		second, alsoLeave := r.join(t, "a")
		other, leaveOther := r.join(t, "b")
		defer leaveOther()
		if first != second || first == other || r.Len() != 2 || len(r.All()) != 2 || r.Waiters("a") != 2 || r.Waiters("c") != 0 {
			t.Errorf("%p, %p and %p; %d watches, %d waiters", first, second, other, r.Len(), r.Waiters("a"))
		}
		leave()
		r.is(t, "one has left", "a", 1, 0)
		alsoLeave()
		r.is(t, "both have left", "a", 1, 1)
		r.is(t, "another key", "b", 1, 0)
		_, leave = r.join(t, "a")
		r.is(t, "one has come again", "a", 2, 1)
		leave()
	})
}

// A watch outlives its last Wait by Linger, and who comes in that time finds it.
func TestWatchesLinger(t *testing.T) {
	enter(t, 10*time.Second, 10, func(t *testing.T, r *room) {
		first, leave := r.join(t, "a")
		leave()
		time.Sleep(9 * time.Second)
		again, leave := r.join(t, "a")
		if again != first {
			t.Error("who came again found another watch")
		}
		time.Sleep(time.Minute)
		r.is(t, "while somebody waits", "a", 1, 0)
		leave()
		_, leave = r.join(t, "b")
		time.Sleep(5 * time.Second)
		leave()
		time.Sleep(4 * time.Second)
		r.is(t, "before its time", "a", 1, 0)
		time.Sleep(2 * time.Second)
		r.is(t, "after its time", "a", 1, 1)
		r.is(t, "left later", "b", 1, 0)
		time.Sleep(5 * time.Second)
		r.is(t, "left later, after its time", "b", 1, 1)
	})
}

// Of those that nobody waits on there are never more than MaxIdle: the one that was left first ends.
func TestIdleWatchesAreBounded(t *testing.T) {
	enter(t, Forever, 3, func(t *testing.T, r *room) {
		_, stay := r.join(t, "waited for")
		defer stay()
		for i := range 5 {
			_, leave := r.join(t, fmt.Sprint(i))
			leave()
		}
		_, leave := r.join(t, "2")
		leave() // now it is the last
		_, leave = r.join(t, "5")
		leave()
		for key, ended := range map[string]int{"0": 1, "1": 1, "2": 0, "3": 1, "4": 0, "5": 0, "waited for": 0} {
			r.is(t, key, key, 1, ended)
		}
		time.Sleep(1000 * time.Hour)
		r.is(t, "after long", "2", 1, 0)
	})
}

// The end of a set ends its watches and Waits, and Close waits for what it has started.
func TestTheEndOfASet(t *testing.T) {
	enter(t, time.Hour, 10, func(t *testing.T, r *room) {
		_, leave := r.join(t, "idle")
		leave()
		var ended atomic.Int64
		r.Go(func() { <-r.Life().Done(); time.Sleep(time.Second); ended.Add(1) })
		read := func(ctx context.Context, _ string, _ uint64) (store.Record, uint64, error) {
			<-ctx.Done()
			return store.Record{}, 0, fmt.Errorf("a read: %w", context.Cause(ctx))
		}
		underWay, atTheWatch := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := Wait(t.Context(), r.Set, "a", "1", Reader{Read: read})
			underWay <- err
		}()
		go func() {
			_, err := Wait(t.Context(), r.Set, "b", "", Reader{Read: func(context.Context, string, uint64) (store.Record, uint64, error) {
				return store.Record{Key: "b"}, 1, nil
			}})
			atTheWatch <- err
		}()
		synctest.Wait()
		r.End()
		for _, waiting := range []chan error{underWay, atTheWatch} {
			if err := <-waiting; !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		}
		if ended.Load() != 0 {
			t.Error("End waited")
		}
		r.Close()
		r.Close()
		r.Go(func() { ended.Add(1) })
		synctest.Wait()
		if ended.Load() != 1 || r.stopped["idle"] != 1 || r.stopped["a"] != 1 {
			t.Errorf("after Close %d of 1 have ended; stopped: %v", ended.Load(), r.stopped)
		}
		if _, _, err := r.Join("a"); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Join: %v", err)
		}
		if _, err := Wait(t.Context(), r.Set, "a", "", Reader{}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Wait: %v", err)
		}
		if r.begun["a"] != 1 {
			t.Error("a watch began after the end")
		}
	})
}

// A Wait leaves its watch however it ends, and begins none with what is no key or a context that has ended.
func TestAWaitLeavesItsWatch(t *testing.T) {
	enter(t, 0, 0, func(t *testing.T, r *room) {
		boom := errors.New("boom")
		_, err := Wait(t.Context(), r.Set, "a", "1", Reader{Read: func(context.Context, string, uint64) (store.Record, uint64, error) {
			return store.Record{}, 0, boom
		}})
		r.is(t, "a read that fails", "a", 1, 1)
		if !errors.Is(err, boom) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(boom)
		if _, err := Wait(ctx, r.Set, "b", "1", Reader{}); !errors.Is(err, boom) {
			t.Error(err)
		}
		if _, err := Wait(t.Context(), r.Set, "", "1", Reader{}); err == nil {
			t.Error("the empty key is one")
		}
		r.is(t, "a context that has ended", "b", 0, 0)
		r.is(t, "no key", "", 0, 0)
	})
}

// A watch that ends by itself does so only while nobody waits on it.
func TestAWatchRetires(t *testing.T) {
	enter(t, Forever, 10, func(t *testing.T, r *room) {
		_, leave := r.join(t, "a")
		if r.Retire("a") {
			t.Error("a watch retired that somebody waits on")
		}
		leave()
		for _, what := range []string{"a watch that nobody waits on", "none"} {
			if !r.Retire("a") {
				t.Errorf("%s did not retire", what)
			}
		}
		r.is(t, "retired", "a", 1, 1)
		_, leave = r.join(t, "a")
		r.is(t, "waited on again", "a", 2, 1)
		leave()
	})
}

// After revisions began again lower, as in a server that was put back from a backup, who waits reads, and lower ones count.
func TestRevisionsBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("5", 50)
		defer wd.end()
		wd.w.Again()
		unmoved := wd.follow(t.Context(), "5")
		wd.w.Show(60)
		wd.w.Rewind(50)
		if nothing(t, "the same revision", unmoved); wd.reads != 1 || wd.w.Knows("4") {
			t.Errorf("%d reads, want 1", wd.reads)
		}
		wd.set("5", 7)
		wd.w.Rewind(7)
		if nothing(t, "the same version, of a lower revision", unmoved); wd.reads != 2 || !wd.w.Knows("5") {
			t.Errorf("%d reads, want 2; the version is known: %v", wd.reads, wd.w.Knows("5"))
		}
		wd.set("8", 8)
		wd.w.Tell(8, version("8"), nil)
		returned(t, "what is told then", unmoved, "8", nil)
		if wd.reads != 2 {
			t.Errorf("%d reads, want 2", wd.reads)
		}
		moved := wd.follow(t.Context(), "8")
		wd.set("3", 3)
		wd.w.Rewind(3)
		returned(t, "another version", moved, "3", nil)
	})
}

// What a Wait has read before the server was put back is no reason to keep from anybody what is told after.
func TestRevisionsBeginAgainBelowARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		defer wd.end()
		wd.w.Again()
		wd.w.Tell(10, version("1"), nil)
		wd.set("5", 50) // of which the watch is never told
		returned(t, "a Wait that reads", wd.follow(t.Context(), "1a"), "5", nil)
		waiting := wd.follow(t.Context(), "5")
		wd.set("2", 20)
		wd.w.Rewind(20)
		wd.w.Tell(20, version("2"), nil)
		returned(t, "put back", waiting, "2", nil)
		waiting = wd.follow(t.Context(), "2")
		nothing(t, "nothing more", waiting)
		wd.set("3", 21)
		wd.w.Tell(21, version("3"), nil)
		returned(t, "told more", waiting, "3", nil)
	})
}

// What the watch tells as it begins is known at once: a Wait for what comes after makes no read.
func TestAWatchThatBeginsWithWhatIsStored(t *testing.T) {
	for _, c := range []struct {
		stored  string
		at      uint64
		reads   int // until it is woken
		changed string
	}{{"1", 10, 0, "2"}, {"", 0, 1, "2"}} {
		synctest.Test(t, func(t *testing.T) {
			wd := newWorld(c.stored, c.at)
			defer wd.end()
			waiting := wd.follow(t.Context(), c.stored)
			wd.w.Rewind(c.at)
			wd.w.Tell(c.at, wd.rec, nil)
			nothing(t, "told what it knows", waiting)
			if wd.reads != 0 {
				t.Errorf("%q: %d reads before a change, want none", c.stored, wd.reads)
			}
			wd.set(c.changed, 20)
			wd.w.Rewind(20)
			wd.w.Tell(20, wd.rec, nil)
			if returned(t, "told more", waiting, c.changed, nil); wd.reads != c.reads {
				t.Errorf("%q: %d reads, want %d", c.stored, wd.reads, c.reads)
			}
		})
	}
}

// Where what isn't stored has no revision, what is told late may be older than what a Wait knows, and is never returned.
func TestWhatIsNotStoredHasNoRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		defer wd.end()
		wd.w.Tell(10, wd.rec, nil)
		known := wd.follow(t.Context(), "1")
		wd.set("", 0) // of which the watch hasn't told yet
		gone := wd.follow(t.Context(), "")
		nothing(t, "what was told before the read", gone)
		wd.w.Tell(11, version("1a"), nil) // written, told late, and deleted before the read
		nothing(t, "what is told late", gone)
		if wd.reads != 2 {
			t.Errorf("%d reads, want 2: what is told late is read, once", wd.reads)
		}
		returned(t, "one that was told of that", known, "1a", nil)
		wd.w.Rewind(0)
		wd.w.Tell(0, version(""), nil)
		nothing(t, "the deletion is told", gone)
		returned(t, "a Wait for the deletion", wd.follow(t.Context(), "1a"), "", nil)
		again := wd.follow(t.Context(), "")
		reads := wd.reads
		wd.set("3", 30)
		wd.w.Rewind(30)
		wd.w.Tell(30, wd.rec, nil)
		returned(t, "made again", gone, "3", nil)
		returned(t, "made again, to one that came later", again, "3", nil)
		if wd.reads != reads+2 {
			t.Errorf("%d reads by two, want one each", wd.reads-reads)
		}
	})
}

// A Wait whose watch is refused reads, and returns why; one that was refused for a while is told all the same.
func TestAWatchThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wd := newWorld("1", 10)
		defer wd.end()
		wd.w.Tell(10, wd.rec, nil)
		first := wd.follow(t.Context(), "1")
		wd.w.Ended() // the read that follows is granted
		nothing(t, "granted", first)
		boom := errors.New("refused")
		second := wd.follow(t.Context(), "1")
		wd.set("2", 20)
		wd.w.Tell(20, wd.rec, nil)
		returned(t, "told by another watch", first, "2", nil)
		returned(t, "told by another watch", second, "2", nil)
		third := wd.follow(t.Context(), "2")
		wd.err = boom
		wd.w.Ended()
		synctest.Wait()
		select {
		case got := <-third:
			if !errors.Is(got.err, boom) {
				t.Errorf("%+v", got)
			}
		default:
			t.Error("a refusal ends no Wait")
		}
	})
}
