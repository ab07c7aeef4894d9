package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestObserve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clk := clocktest.New(0)
		var net faulty.Outage
		st := faulty.Wrap(w.DB.Open(), net.Plan(nil))
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var seen []string
		var oldest time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			for l, err := range election.Watch(ctx, st, "job", election.WatchOptions{Clock: clk, Poll: ttl / 3}) {
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
		a.Cut()
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
		st := faulty.Wrap(w.DB.Open(), func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Push {
				return faulty.Fault{ReplyDelay: 3 * time.Second}
			}
			return faulty.Fault{ReplyDelay: 400 * time.Millisecond}
		})
		defer st.Close()
		m, err := lease.NewManager(w.DB.Open(), lease.Options{TTL: ttl, Clock: clocktest.New(0)})
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
				took(l.Holder(), l.Token())
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
		for l, err := range election.Watch(ctx, st, "job", election.WatchOptions{Clock: clocktest.New(0), Poll: ttl / 3}) {
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

// For a leader whose session can't be read at first OnNewLeader is called when it can; and not again after the store was away for longer
// than the leader would be believed to live.
func TestFinding_S12_ALeaderIsNewOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.candidate("a", election.Options{})
		time.Sleep(time.Second)
		session := w.session()
		away := ""
		b := w.candidate("b", election.Options{}, func(p *process) {
			p.plan = func(op faulty.Op) faulty.Fault {
				if op.Key == away && (op.Kind == faulty.Get || op.Kind == faulty.Wait) {
					return faulty.Fault{Err: errors.New("connection refused")}
				}
				return faulty.Fault{Delay: time.Millisecond}
			}
		})
		for _, step := range []struct{ away, told string }{{session, ""}, {"", "a"}, {"job", "a"}, {"", "a"}} {
			b.mu.Lock()
			away = step.away
			b.mu.Unlock()
			time.Sleep(3 * ttl)
			b.mu.Lock()
			if got := strings.Join(b.leaders, ","); got != step.told {
				t.Errorf("told of %q, want %q, while %q can't be read", got, step.told, step.away)
			}
			b.mu.Unlock()
		}
	})
}

// session returns the key of the session by which the leader leads.
func (w *world) session() string {
	w.T.Helper()
	rec, err := w.st.Get(w.T.Context(), "job")
	if err != nil || rec.Session == "" {
		w.T.Fatalf("%+v, %v", rec, err)
	}
	return rec.Session
}

// What was seen of one session says nothing of the next, however alike their records are.
func TestObserveTellsSessionsApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		st := faulty.Ageless(w.DB.Open())
		lead := func(token fence.Token) {
			session := fmt.Sprint(".session/a/", token)
			put(t, st, session, "", func(r *store.Record) { r.Owner, r.Token, r.TTL = "a", 1, ttl })
			put(t, st, "job", "", func(r *store.Record) { r.Owner, r.Token, r.TTL, r.Session = "a", token, ttl, session })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*ttl-time.Second)
		defer cancel()
		time.AfterFunc(time.Second, func() { lead(1) })
		time.AfterFunc(ttl, func() { lead(2) })
		var seen []string
		for l, err := range election.Watch(ctx, st, "job", election.WatchOptions{Clock: clocktest.New(0), Poll: ttl / 30}) {
			seen = append(seen, fmt.Sprint(l.Owner, l.Token))
			if err != nil {
				t.Error(err)
			}
		}
		if got := strings.Join(seen, ","); got != "0,a1,a2" {
			t.Errorf("saw %s", got)
		}
	})
}

// Who leads is told when the store answers again, though it is who was known before, or nobody: who waits for that would wait for ever.
func TestFinding_S12_ObserveTellsThatTheStoreAnswersAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var net faulty.Outage
		st := faulty.Wrap(w.DB.Open(), net.Plan(nil))
		defer st.Close()
		net.StartRefusing(errors.New("connection refused"))
		time.AfterFunc(ttl/2, net.End)
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		failed := 0
		for l, err := range election.Watch(ctx, st, "job", election.WatchOptions{Clock: clocktest.New(0), Poll: ttl / 3}) {
			if err == nil {
				if failed == 0 || l.Owner != "" {
					t.Errorf("%+v after %d errors", l, failed)
				}
				return
			}
			failed++
		}
		t.Errorf("told nothing but %d errors", failed)
	})
}
