package sim_test

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func (w *live) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

// wants counts who waits for key in the calm.
func (w *live) wants(key string, more int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted[key] += more
}

// broke is violated for callers that hold w.mu.
func (w *live) broke(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%9.3fs  VIOLATION: %s", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...)))
	w.reported()
}

// announce tells the oracle of a lease that was just acquired. From then on it is watched.
func (w *live) announce(p *process, l *lease.Lease) {
	x := &term{Lease: l, p: p, ctx: l.Context()}
	events := l.Events()
	w.logf("%v holds %v for %v", p, l, l.Left())
	w.wg.Go(func() {
		final := 0
		for e := range events {
			if final > 0 {
				w.violated("%v: %s comes after the final event", l, e.State)
			}
			if e.State == lease.StateLost || e.State == lease.StateReleased {
				w.logf("%v of %v: %s %v", l, p, e.State, e.Err)
				w.justified(x, e)
				final++
			}
		}
		if final != 1 {
			w.violated("%v: %d final events", l, final)
		}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if other := w.tokens[x.id()]; other != nil {
		w.broke("%v was given to %v and to %v", l, other.p, p)
	}
	w.tokens[x.id()] = x
	w.terms = append(w.terms, x)
	w.highest[l.Key()] = max(w.highest[l.Key()], l.Token())
	w.exclusive(l.Key())
}

// justified checks that a lease isn't taken for another's while the store shows it as its own.
func (w *live) justified(x *term, e lease.Event) {
	var lost *lease.LostError
	if !errors.As(e.Err, &lost) || lost.Cause != lease.Taken {
		return
	}
	rec, err := store.Load(context.Background(), w.db.Open(), x.Key())
	if err != nil || rec.Owner == x.Owner() && rec.Token == x.Token() && rec.Intervention == "" {
		w.violated("%v of %v was given up as taken, and is its own: %v", x, x.p, err)
	}
}

// event counts final events; see lease.Options.OnEvent.
func (w *live) event(e lease.Event) {
	if e.State == lease.StateLost || e.State == lease.StateReleased {
		w.finalsMu.Lock()
		defer w.finalsMu.Unlock()
		w.finals[e.Key+"/"+e.Token.String()]++
	}
}

// watch checks everything over and over, at instants at which nothing else goes on.
func (w *live) watch(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(w.ttl / 100):
		}
		synctest.Wait()
		w.mu.Lock()
		for _, key := range w.keys {
			w.exclusive(key)
			w.vacancy(key)
		}
		w.inTime()
		w.mu.Unlock()
	}
}

// holders returns the terms of key that their holders may rely on at this instant. A machine that is suspended relies on
// nothing. w.mu is held.
func (w *live) holders(key string) []*term {
	var all []*term
	for _, x := range w.terms {
		if _, frozen := x.p.status(); x.Key() == key && !frozen && x.Left() > 0 {
			all = append(all, x)
		}
	}
	return all
}

// exclusive checks that key has one holder at most, and that it is the latest. w.mu is held.
func (w *live) exclusive(key string) {
	if time.Now().Before(w.excused[key]) {
		return
	}
	all := w.holders(key)
	if len(all) > 1 {
		w.broke("%v of %v and %v of %v are valid at one instant", all[0], all[0].p, all[1], all[1].p)
	}
	for _, x := range all {
		if x.Token() < w.highest[key] {
			w.broke("%v of %v is valid after token %d", x, x.p, w.highest[key])
		}
		if until, ok := w.broken[x.id()]; ok && time.Now().After(until) {
			w.broke("%v of %v was broken and goes on", x, x.p)
		}
	}
}

// inTime checks that losses are signalled by the deadline, and drops the terms that are over. w.mu is held.
func (w *live) inTime() {
	kept := w.terms[:0]
	for _, x := range w.terms {
		until := x.ValidUntil()
		runs, _ := x.p.status()
		late := until == clock.Always || x.p.clk.Now().Sub(until) > time.Millisecond
		switch {
		case x.ctx.Err() != nil && until != clock.Always:
			w.broke("%v of %v: its context is done, and it is valid until %v", x, x.p, until)
		case x.ctx.Err() == nil && runs && late:
			w.broke("%v of %v is over, and its context isn't done", x, x.p)
		case x.ctx.Err() == nil:
			kept = append(kept, x)
		}
	}
	w.terms = kept
}

// vacancy checks that, in the calm, a name that somebody waits for is soon held again. w.mu is held.
func (w *live) vacancy(key string) {
	if !w.calm || w.wanted[key] == 0 || len(w.holders(key)) > 0 || w.vacant[key].Before(w.calmAt) {
		w.vacant[key] = time.Now()
		return
	}
	// A TTL to be over, and a third of one until a waiter looks at a session again; then a retry, and the requests.
	bound := time.Duration(float64(w.ttl+w.ttl/3+w.ttl/5)/0.89) + time.Second
	if d := time.Since(w.vacant[key]); d > bound {
		w.broke("%s has been free for %v while %d wait", key, d, w.wanted[key])
		w.vacant[key] = time.Now()
	}
}

// atTheEnd checks that every lease has ended, once.
func (w *live) atTheEnd() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, x := range w.tokens {
		if x.ctx.Err() == nil || x.Check() == nil {
			w.broke("%v of %v has not ended though its manager is closed", x, x.p)
		}
		w.finalsMu.Lock()
		n := w.finals[id]
		w.finalsMu.Unlock()
		if n != 1 {
			w.broke("%v of %v: the observer was told %d final events", x, x.p, n)
		}
	}
	if len(w.tokens) == 0 {
		w.broke("nobody ever held anything")
	}
}
