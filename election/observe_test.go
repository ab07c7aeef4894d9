package election_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestObserve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clk := clock.NewFake(0)
		var net faulty.Outage
		st := faulty.Wrap(w.db.Open(), net.Plan(nil))
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var seen []string
		var oldest time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			for l, err := range election.Observe(ctx, st, clk, "job", ttl/3) {
				mu.Lock()
				oldest = l.Age
				if err == nil {
					seen = append(seen, strings.SplitN(l.Owner, "/", 2)[0])
				}
				mu.Unlock()
			}
		})
		a := w.candidate("a", election.Options{})
		time.Sleep(time.Minute)
		a.setCut(true)
		time.Sleep(3 * ttl)
		b := w.candidate("b", election.Options{})
		time.Sleep(time.Minute)
		b.end()
		time.Sleep(time.Minute)
		mu.Lock()
		if got := strings.Join(seen, ","); got != ",a,,b," {
			t.Errorf("%s", got)
		}
		mu.Unlock()
		net.Start()
		time.Sleep(time.Minute)
		mu.Lock()
		if oldest < 30*time.Second {
			t.Errorf("what is known has an age of %v after a minute without the store", oldest)
		}
		mu.Unlock()
		net.End()
		cancel()
		wg.Wait()
		st.Close()
	})
}

// What is shown was so within the age that it is shown with, however slow the network is: never later, as if it were current.
func TestObserveTellsHowOldItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		st := faulty.Wrap(w.db.Open(), func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Push {
				return faulty.Fault{ReplyDelay: 3 * time.Second}
			}
			return faulty.Fault{ReplyDelay: 400 * time.Millisecond}
		})
		defer st.Close()
		m, err := lease.NewManager(w.db.Open(), lease.Options{TTL: ttl, Clock: clock.NewFake(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		type turn struct {
			at    time.Time
			owner string
			token fence.Token
		}
		var mu sync.Mutex
		turns := []turn{{at: time.Now()}}
		took := func(owner string, token fence.Token) {
			mu.Lock()
			defer mu.Unlock()
			turns = append(turns, turn{time.Now(), owner, token})
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 200 {
				l, err := m.Acquire(ctx, "job")
				if err != nil {
					t.Error(err)
					break
				}
				took(l.Owner(), l.Token())
				time.Sleep(700 * time.Millisecond)
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
				took("", l.Token())
				time.Sleep(700 * time.Millisecond)
			}
			cancel()
		})
		shown := 0
		for l, err := range election.Observe(ctx, st, clock.NewFake(0), "job", ttl/3) {
			mu.Lock()
			within := false
			for i, x := range turns {
				until := time.Now()
				if i+1 < len(turns) {
					until = turns[i+1].at
				}
				within = within || x.owner == l.Owner && x.token == l.Token && !until.Before(time.Now().Add(-l.Age))
			}
			mu.Unlock()
			if shown++; err != nil || !within {
				t.Errorf("%+v, %v: that was not so within its age", l, err)
			}
		}
		wg.Wait()
		if shown < 20 {
			t.Errorf("only %d were shown", shown)
		}
	})
}
