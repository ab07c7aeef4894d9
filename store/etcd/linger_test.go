package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// awaitJoined blocks until so many wait for key.
func awaitJoined(t testing.TB, s *Store, key string, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " to wait for ", key), func() bool {
		_, ok := s.watches.Get(key)
		return ok && s.watches.Waiters(key) == n
	})
}

// follow waits for one change of rec by writer, so that the store has a watch that lingers and knows the record that it returns.
func follow(t testing.TB, s, writer *Store, rec store.Record) store.Record {
	t.Helper()
	waiting := startWait(t, s, rec.Key, rec.Version)
	rec.Token++
	rec = storetest.MustPut(t, writer, rec)
	mustWake(t, "the first Wait", waiting, rec)
	awaitJoined(t, s, rec.Key, 0)
	return rec
}

// A caller that follows a record by one Wait after another makes one read and one watch, and no request for what comes after.
func TestFollowingCostsNoRequests(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	prefix, traffic := newPrefix(t), &wire{}
	s, writer := open(t, dial(t, srv.Addr, traffic.options()...), prefix), open(t, dial(t, srv.Addr), prefix)
	rec := follow(t, s, writer, storetest.MustPut(t, writer, held("k", 1)))
	before := traffic.requests()
	for range 20 {
		rec = follow(t, s, writer, rec)
	}
	// A Wait that is given up leaves the next one what it knows, too.
	given, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Wait(given, "k", rec.Version); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Wait that is given up: %v", err)
	}
	if err := writer.Delete(t.Context(), "k", follow(t, s, writer, rec).Version); err != nil {
		t.Fatal(err)
	}
	if n := traffic.requests() - before; n != 0 {
		t.Errorf("%d requests for 21 changes, want 0", n)
	}
}

// What changes while nobody waits is returned by the next Wait.
func TestChangeBetweenTwoWaits(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	prefix := newPrefix(t)
	s, writer := open(t, dial(t, srv.Addr), prefix), open(t, dial(t, srv.Addr), prefix)
	rec := follow(t, s, writer, storetest.MustPut(t, writer, held("k", 1)))
	for range 20 {
		next := rec
		next.Token++
		next = storetest.MustPut(t, writer, next)
		got, err := s.Wait(storetest.Within(t, soon), "k", rec.Version)
		if err != nil || got.Version != next.Version {
			t.Fatalf("Wait returned %q and %v, want %q", got.Version, err, next.Version)
		}
		rec = next
	}
	if err := writer.Delete(t.Context(), "k", rec.Version); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Wait(storetest.Within(t, soon), "k", rec.Version); err != nil || got.Version != "" {
		t.Errorf("after a deletion: %q and %v", got.Version, err)
	}
}

// What a watch tells late is older than what the store has shown meanwhile: no Wait returns that.
func TestNoWaitReturnsAnOlderRecordThanWasShown(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	for how, show := range map[string]func(s *Store, stale store.Record) error{
		"Get": func(s *Store, _ store.Record) error {
			_, err := s.Get(t.Context(), "k")
			return err
		},
		"List": func(s *Store, _ store.Record) error {
			for _, err := range s.List(t.Context(), "") {
				return err
			}
			return nil
		},
		"a conflict": func(s *Store, stale store.Record) error {
			if _, err := s.Put(t.Context(), stale); !errors.As(err, new(*store.ConflictError)) {
				return fmt.Errorf("%w, want a conflict", err)
			}
			return nil
		},
	} {
		for _, begun := range []bool{true, false} {
			t.Run(fmt.Sprint(how, "/begun before: ", begun), func(t *testing.T) {
				prefix, traffic := newPrefix(t), &wire{}
				s, writer := open(t, dial(t, srv.Addr, traffic.options()...), prefix), open(t, dial(t, srv.Addr), prefix)
				second := follow(t, s, writer, storetest.MustPut(t, writer, held("k", 1)))
				release := traffic.hold()
				defer release()
				third := storetest.MustPut(t, writer, second)
				fourth := storetest.MustPut(t, writer, third)
				var waiting <-chan waited
				if begun {
					waiting = startWait(t, s, "k", second.Version)
					awaitJoined(t, s, "k", 1)
				}
				if err := show(s, second); err != nil {
					t.Fatal(err)
				}
				if begun {
					release()
				} else {
					waiting = startWait(t, s, "k", second.Version)
				}
				mustWake(t, "the Wait", waiting, fourth)
			})
		}
	}
}

// A watch that broke while nobody waited, and can't be resumed, tells nothing of what changed meanwhile: the next Wait reads that, whether it
// begins while the server can't be reached, or later.
func TestWatchBrokenBetweenTwoWaits(t *testing.T) {
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("begun during the outage: ", early), func(t *testing.T) {
			srv := servers.Etcd(t)
			network, prefix, traffic := servers.Proxy(t, srv.Addr), newPrefix(t), &wire{}
			s, client := open(t, dial(t, network.Addr, traffic.options()...), prefix), dial(t, srv.Addr)
			direct := open(t, client, prefix)
			rec := follow(t, s, direct, storetest.MustPut(t, direct, held("k", 1)))
			network.Refuse()
			next := rec
			for range 5 {
				next = storetest.MustPut(t, direct, next)
			}
			revision, _ := revisionOf(storetest.MustPut(t, direct, held("other", 1)).Version)
			if _, err := client.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
			var waiting <-chan waited
			if early {
				waiting = startWait(t, s, "k", rec.Version)
				awaitJoined(t, s, "k", 1)
			}
			network.Heal()
			if !early {
				eventually(t, "a watch that ended by compaction, and a second one that began", func() bool {
					traffic.mu.Lock()
					defer traffic.mu.Unlock()
					return traffic.compactions > 0 && traffic.begun == 3 // the attempt to resume is begun, too
				})
				time.Sleep(100 * time.Millisecond) // the store knows, too; before, it would have to read all the same
				waiting = startWait(t, s, "k", rec.Version)
			}
			mustWake(t, "a key that changed while the watch was broken", waiting, next)
			follow(t, s, direct, next)
		})
	}
}

// A server that was killed and came back tells a Wait that begins afterwards what changed meanwhile, and later.
func TestServerRestartsBetweenTwoWaits(t *testing.T) {
	srv, prefix := servers.Etcd(t), newPrefix(t)
	network := servers.Proxy(t, srv.Addr)
	s, direct := open(t, dial(t, network.Addr), prefix), open(t, dial(t, srv.Addr), prefix)
	rec := follow(t, s, direct, storetest.MustPut(t, direct, held("k", 1)))
	network.Refuse()
	srv.Kill()
	srv.Restart()
	var next store.Record
	eventually(t, "a write after the restart", func() (ok bool) {
		var err error
		next, err = direct.Put(storetest.Within(t, soon), rec)
		return err == nil
	})
	waiting := startWait(t, s, "k", rec.Version)
	network.Heal()
	mustWake(t, "a key that changed while the server was away", waiting, next)
	follow(t, s, direct, next)
}

// A watch that nobody needs ends after a while, and there are never many: the one that was left first ends.
func TestIdleWatchesEnd(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	s := open(t, dial(t, srv.Addr), newPrefix(t))
	begin := time.Now()
	const keys = maxIdle + 10
	join := func(i int) (*watcher.Watch, func()) {
		w, leave, err := s.watches.Join(fmt.Sprint("k", i))
		if err != nil {
			t.Fatal(err)
		}
		return w, leave
	}
	for i := range keys {
		_, leave := join(i)
		leave()
	}
	if watched := s.watches.Len(); time.Since(begin) < linger && watched != maxIdle {
		t.Errorf("%d watches, want %d", watched, maxIdle)
	}
	_, oldest := s.watches.Get("k0")
	newest, ok := s.watches.Get(fmt.Sprint("k", keys-1))
	if oldest || !ok {
		t.Errorf("the watch that was left first: %v; the last one: %v", oldest, ok)
	}
	again, leave := join(keys - 1) // one that is waited for stays
	eventually(t, "the idle watches to end", func() bool { return s.watches.Len() == 1 })
	if took := time.Since(begin); again != newest || took < linger {
		t.Errorf("the idle watches ended after %v, want %v; the one that is waited for is %p, was %p", took, linger, again, newest)
	}
	leave()
}

// Waits are cheap, and said to be, where the client notices soon that a connection has died in silence.
func TestCheapWaitNeedsKeepAlives(t *testing.T) {
	for name, c := range map[string]struct {
		every, timeout time.Duration
		want           bool
	}{
		"none":             {0, 0, false},
		"a timeout alone":  {0, 5 * time.Second, false},
		"as recommended":   {10 * time.Second, 5 * time.Second, true},
		"grpc's timeout":   {40 * time.Second, 0, true},
		"too long with it": {41 * time.Second, 0, false},
		"a minute":         {time.Minute - time.Second, time.Second, true},
		"more":             {time.Minute, time.Second, false},
		"for ever":         {1<<63 - 1, 1<<63 - 1, false},
	} {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}, DialKeepAliveTime: c.every, DialKeepAliveTimeout: c.timeout})
		if err != nil {
			t.Fatal(err)
		}
		if got := open(t, client, "").Properties().CheapWait; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}
