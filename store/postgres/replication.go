package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/leasehold/leasehold/clock"
)

// replication is what decides whether a failover may lose acknowledged writes, as far as the
// primary can see.
type replication struct {
	fsync, commit string
	synchronous   string // standbys that commits wait for
	followers     int    // that replicate now
	slots         int    // of standbys that don't replicate now
}

const replicationSQL = `current_setting('fsync'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
  (SELECT count(*)::int FROM pg_stat_replication), (SELECT count(*)::int FROM pg_replication_slots WHERE slot_type = 'physical' AND NOT active)`

// waits reports whether commits wait for a standby.
func (r replication) waits() bool {
	return r.synchronous != "" && r.commit != "local" && r.commit != "off"
}

// async reports whether a failover may lose writes that were acknowledged.
func (r replication) async() bool {
	return r.fsync != "on" || (r.followers+r.slots > 0 && !r.waits())
}

// columns are where a row of replicationSQL goes.
func (r *replication) columns() []any {
	return []any{&r.fsync, &r.commit, &r.synchronous, &r.followers, &r.slots}
}

// How often a handle looks at the replication: with a write, or else by itself once lookLater has
// passed without one. And how long that may take.
const (
	lookEvery = 10 * time.Second
	lookLater = time.Second
	lookLimit = 5 * time.Second
)

// watch is over the replication of a handle's server, which may change while the handle is open.
type watch struct {
	deaf atomic.Bool // a connection of the pool doesn't hear warnings
	seen atomic.Pointer[replication]

	mu      sync.Mutex
	due     clock.Instant
	looking bool
	planned bool // it may look by itself soon
	ended   bool
	running sync.WaitGroup
}

func (w *watch) saw(r replication) {
	w.seen.Store(&r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = clock.System().Now().Add(lookEvery)
}

func (w *watch) last() replication { return *w.seen.Load() }

// begin reports whether it is time to look, and counts that among what end waits for.
func (w *watch) begin() bool {
	now := clock.System().Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.looking || now < w.due {
		return false
	}
	w.looking = true
	w.running.Add(1)
	return true
}

// plan reports whether to look later if no write has done so by then, and counts that among what
// end waits for.
func (w *watch) plan() bool {
	now := clock.System().Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.looking || w.planned || now < w.due {
		return false
	}
	w.planned = true
	w.running.Add(1)
	return true
}

func (w *watch) planDone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.planned = false
	w.running.Done()
}

func (w *watch) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking, w.due = false, clock.System().Now().Add(lookEvery)
	w.running.Done()
}

// end lets no other look begin, and waits for one under way.
func (w *watch) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.running.Wait()
}

// lookAgain looks at the replication if that is due and no write does so meanwhile: it may need the
// connection that a holder renews on. It doesn't wait for the answer; Close does.
func (s *Store) lookAgain() {
	if !s.watch.plan() {
		return
	}
	go func() {
		defer s.watch.planDone()
		ctx, cancel := clock.WithTimeout(context.Background(), clock.System(), lookLater+lookLimit)
		defer cancel()
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-s.closed:
				cancel()
			case <-ended:
			}
		}()
		if clock.Sleep(ctx, clock.System(), lookLater) != nil || !s.watch.begin() {
			return
		}
		defer s.watch.done()
		var r replication
		_, err := s.ask(ctx, question{
			sql: "SELECT " + replicationSQL, seldom: true,
			scan: func(rows pgx.Rows) error { return rows.Scan(r.columns()...) },
		})
		if err == nil { // else the writes will tell
			s.watch.saw(r)
		}
	}()
}
