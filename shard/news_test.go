package shard_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// wide has 64 records.
var wide = shard.Space{Name: "s", Hashed: true, Slices: 256, Expect: 4096}

// joinPolled starts n workers of wide, whose store doesn't push, one after the other. all counts what they ask of it.
func joinPolled(w *world, n int, worker shard.Worker) (owners []*shard.Owner, all *faulty.Store) {
	w.t.Helper()
	all = faulty.Wrap(w.db.Open(), nil)
	for i := range n {
		m, err := lease.NewManager(faulty.Polled(all), lease.Options{TTL: ttl, Clock: clocktest.New(clock.Instant(i))})
		if err != nil {
			w.t.Fatal(err)
		}
		worker.Address = fmt.Sprint("w", i)
		o, err := shard.Join(w.t.Context(), m, wide, worker)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			if err := o.Close(); err != nil {
				w.t.Error(err)
			}
			if err := m.Close(); err != nil {
				w.t.Error(err)
			}
		})
		owners = append(owners, o)
	}
	time.Sleep(4 * ttl)
	return owners, all
}

// until waits for virtual time to pass until ok, and returns how much that was.
func until(t *testing.T, most time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > most {
			t.Fatalf("not within %v: %s", most, what)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
	return time.Since(began)
}

// owns reports whether o owns the slice of a hash.
func owns(o *shard.Owner, hash uint64) bool {
	_, err := o.CheckHash(hash)
	return err == nil
}

// spread deals slices out at random once there are 4 workers, so that most of the 64 records concern each.
type spread struct{}

func (spread) Plan(s *shard.State) (moves []shard.Move) {
	for i, sl := range s.Slices {
		if sl.Owner < 0 && len(s.Workers) == 4 {
			moves = append(moves, shard.Move{Slice: i, To: rand.IntN(len(s.Workers))})
		}
	}
	return moves
}

// Where the store doesn't push, a worker asks for one record that tells what has changed, not for each record of the map all the time.
func TestReadsWithoutPush(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const workers = 4
		_, all := joinPolled(w, workers, shard.Worker{Strategy: spread{}})
		concerned := 0
		for rec, err := range w.st.List(t.Context(), shardmap.Space{Name: wide.Name}.MemberPrefix()) {
			m, bad := shardmap.ParseMember(rec)
			if err != nil || bad != nil {
				t.Fatal(err, bad)
			}
			concerned += len(m.Chunks)
		}
		before := all.Count(faulty.Get)
		const watched = 4 * ttl
		time.Sleep(watched)
		reads := float64(all.Count(faulty.Get)-before) / watched.Seconds()
		// Each worker, and the assigner, reads what concerns it once in a TTL or a little more often, and a few records once a second.
		most := 1.5*float64(concerned+64)/ttl.Seconds() + 6*workers
		t.Logf("%d records of the map concern %d workers: %.0f reads a second", concerned, workers, reads)
		if reads > most || concerned < 100 {
			t.Errorf("%.0f reads a second of %d workers that %d records concern, want at most %.0f, and 100 records", reads, workers, concerned, most)
		}
	})
}

// Without push, a move is still seen by the old and the new owner at once, by the assigner, and by a router.
func TestNewsAreQuick(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		owners, all := joinPolled(w, 2, shard.Worker{})
		st := faulty.Polled(all)
		r, err := shard.NewRouter(t.Context(), st, wide.Name, shard.RouterOptions{Clock: clocktest.New(0)})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		time.Sleep(3 * time.Second)
		key := "k"
		hash := shard.Hash(key)
		from, to := owners[0], owners[1]
		if owns(to, hash) {
			from, to = to, from
		}
		session := map[bool]string{}
		members, err := shard.Members(t.Context(), w.st, wide.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			session[m.Holder == to.Manager().Holder()] = m.Session
		}
		if err := shard.RequestMove(t.Context(), st, wide.Name, key, session[true]); err != nil {
			t.Fatal(err)
		}
		took := until(t, 3*time.Second, "the slice moves", func() bool { return owns(to, hash) && !owns(from, hash) })
		routed := until(t, 3*time.Second, "the router knows", func() bool { route, ok := r.Lookup(key); return ok && route.Session == session[true] })
		t.Logf("moved in %v, routed %v later", took, routed)
	})
}

// A writer that dies before it says what it wrote delays what it wanted by a TTL, no more.
func TestLostNewsAreFound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		owners, _ := joinPolled(w, 2, shard.Worker{})
		hash := shard.Hash("k")
		from, to := owners[0], owners[1]
		if owns(to, hash) {
			from, to = to, from
		}
		members, err := shard.Members(t.Context(), w.st, wide.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			if m.Holder == to.Manager().Holder() { // the store of the test pushes: it doesn't say what it writes
				if err := shard.RequestMove(t.Context(), w.st, wide.Name, "k", m.Session); err != nil {
					t.Fatal(err)
				}
			}
		}
		until(t, ttl+3*time.Second, "the slice moves", func() bool { return owns(to, hash) && !owns(from, hash) })
	})
}

// Whatever becomes of the news, they tell again.
func TestNewsThatWereBroken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		owners, all := joinPolled(w, 2, shard.Worker{})
		key := shardmap.Space{Name: wide.Name}.NewsKey()
		for _, data := range []string{"{", `{"v":1,"n":1}`, `{"v":1,"n":1000000}`, ""} {
			err := store.Update(t.Context(), w.st, key, func(rec *store.Record) (bool, error) {
				rec.Data = []byte(data)
				return true, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			hash := shard.Hash("k")
			from, to := owners[0], owners[1]
			if owns(to, hash) {
				from, to = to, from
			}
			members, err := shard.Members(t.Context(), w.st, wide.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				if m.Holder == to.Manager().Holder() {
					if err := shard.RequestMove(t.Context(), faulty.Polled(all), wide.Name, "k", m.Session); err != nil {
						t.Fatal(err)
					}
				}
			}
			until(t, 4*time.Second, "the slice moves after news of "+data, func() bool { return owns(to, hash) && !owns(from, hash) })
			time.Sleep(ttl)
		}
	})
}
