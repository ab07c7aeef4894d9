package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func isNoLeader(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrNoLeader) }

// soon is how long a test waits for what should come at once.
const soon = 20 * time.Second

type waited struct {
	rec store.Record
	err error
}

// startWait begins a Wait, and returns when the store has a watch for it.
func startWait(t testing.TB, s *Store, key, version string) <-chan waited {
	t.Helper()
	result := make(chan waited, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*soon)
	t.Cleanup(cancel)
	go func() {
		rec, err := s.Wait(ctx, key, version)
		result <- waited{rec, err}
	}()
	eventually(t, "a watch for "+key, func() bool {
		w, ok := s.watches.Get(key)
		return ok && w.Began()
	})
	return result
}

// eventually fails the test unless ok soon returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, soon)
		}
	}
}

// awaitReads blocks until n reads were answered in all.
func (w *wire) awaitReads(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " reads"), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.reads >= n
	})
}

func mustWake(t testing.TB, what string, result <-chan waited, want store.Record) {
	t.Helper()
	select {
	case got := <-result:
		if got.err != nil || got.rec.Version != want.Version || got.rec.Token != want.Token {
			t.Fatalf("%s: Wait returned version %q, token %v and %v, want version %q, token %v", what, got.rec.Version, got.rec.Token, got.err, want.Version, want.Token)
		}
	case <-time.After(soon):
		t.Fatalf("%s: Wait returned nothing within %v", what, soon)
	}
}

// A watch that begins at the revision of a read begins in the past once anybody has written anything, and etcd tells it nothing
// before its next round, up to 100 ms later.
func TestWatchesBeginAtThePresent(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	prefix, traffic := newPrefix(t), &wire{}
	s := open(t, dial(t, srv.Addr, traffic.options()...), prefix)
	other := open(t, dial(t, srv.Addr), prefix)
	for i := range 20 {
		rec := storetest.MustPut(t, s, held(fmt.Sprint("k", i), 1)) // of its own, or the last watch would be there still
		storetest.MustPut(t, other, held(fmt.Sprint("noise", i), 1))
		waiting := startWait(t, s, rec.Key, rec.Version)
		rec.Token++
		rec = storetest.MustPut(t, other, rec)
		mustWake(t, "after a write", waiting, rec)
	}
	traffic.mu.Lock()
	defer traffic.mu.Unlock()
	if len(traffic.creations) < 20 {
		t.Errorf("%d watches were begun, want at least 20", len(traffic.creations))
	}
	for _, revision := range traffic.creations {
		if revision != 0 {
			t.Fatalf("a watch was begun at revision %d, want 0, the present", revision)
		}
	}
}

// All Waits for a key share a watch, and all watches share a stream.
func TestWaitsShareWatches(t *testing.T) {
	const keys, waiters = 50, 10
	srv := servers.Etcd(t, servers.Shared())
	traffic := &wire{}
	s := open(t, dial(t, srv.Addr, traffic.options()...), newPrefix(t))
	var waiting []<-chan waited
	stored := make([]store.Record, keys)
	for i := range stored {
		stored[i] = storetest.MustPut(t, s, held(fmt.Sprint("k", i), 1))
		for range waiters {
			waiting = append(waiting, startWait(t, s, stored[i].Key, stored[i].Version))
		}
		eventually(t, "all to wait", func() bool { // one that comes when the others have gone begins a watch
			return s.watches.Waiters(stored[i].Key) == waiters
		})
	}
	for i := range stored {
		stored[i] = storetest.MustPut(t, s, stored[i])
	}
	for i, w := range waiting {
		mustWake(t, fmt.Sprint("waiter ", i), w, stored[i/waiters])
	}
	traffic.mu.Lock()
	defer traffic.mu.Unlock()
	if len(traffic.creations) != keys || traffic.streams != 1 {
		t.Errorf("%d watches on %d streams, want %d on 1", len(traffic.creations), traffic.streams, keys)
	}
}

// A watch that can't be resumed because its revision has been compacted is begun anew, and whoever waits reads what it missed.
func TestCompactionDuringWait(t *testing.T) {
	srv := servers.Etcd(t)
	network, prefix, traffic := servers.Proxy(t, srv.Addr), newPrefix(t), &wire{}
	cut := open(t, dial(t, network.Addr, traffic.options()...), prefix)
	client := dial(t, srv.Addr)
	direct := open(t, client, prefix)
	changed, unchanged := storetest.MustPut(t, direct, held("changed", 1)), storetest.MustPut(t, direct, held("unchanged", 1))
	gone := storetest.MustPut(t, direct, held("gone", 1))
	waits := map[string]<-chan waited{}
	for _, rec := range []store.Record{changed, unchanged, gone} {
		waits[rec.Key] = startWait(t, cut, rec.Key, rec.Version)
	}
	traffic.awaitReads(t, 3) // or one of them tells the news, and not its watch
	network.Refuse()
	for range 10 {
		changed.Token++
		changed = storetest.MustPut(t, direct, changed)
	}
	if err := direct.Delete(t.Context(), "gone", gone.Version); err != nil {
		t.Fatal(err)
	}
	last := storetest.MustPut(t, direct, held("other", 1))
	revision, _ := revisionOf(last.Version)
	if _, err := client.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	network.Heal()
	mustWake(t, "a key that changed before the compaction", waits["changed"], changed)
	mustWake(t, "a key that was deleted before the compaction", waits["gone"], store.Record{})
	eventually(t, "watches that ended by compaction", func() bool {
		traffic.mu.Lock()
		defer traffic.mu.Unlock()
		return traffic.compactions == 3
	})
	unchanged.Token++
	unchanged = storetest.MustPut(t, direct, unchanged)
	mustWake(t, "a key that changed after the compaction", waits["unchanged"], unchanged)
}

// What changes after a watch ended, and before the next one has begun, is read after that.
func TestChangeBetweenTwoWatches(t *testing.T) {
	srv := servers.Etcd(t)
	network, prefix, traffic := servers.Proxy(t, srv.Addr), newPrefix(t), &wire{}
	cut := open(t, dial(t, network.Addr, traffic.options()...), prefix)
	client := dial(t, srv.Addr)
	direct := open(t, client, prefix)
	rec := storetest.MustPut(t, direct, held("k", 1))
	waiting := startWait(t, cut, "k", rec.Version)
	traffic.awaitReads(t, 1)
	network.Refuse()
	for i := range fence.Token(5) {
		storetest.MustPut(t, direct, held(fmt.Sprint("other", i), 1))
	}
	revision, _ := revisionOf(storetest.MustPut(t, direct, held("other", 1)).Version)
	if _, err := client.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	next := make(chan store.Record, 1)
	once := sync.OnceFunc(func() {
		traffic.awaitReads(t, 2) // the second when the watch had ended
		rec.Token++
		next <- storetest.MustPut(t, direct, rec)
	})
	traffic.note(func() {
		traffic.beforeWatch = func(revision int64) {
			if revision == 0 { // not the client's own attempt to resume
				once()
			}
		}
	})
	network.Heal()
	mustWake(t, "a key that changed between two watches", waiting, <-next)
}

// A Wait that still reads needs no answer from the server to end with the store.
func TestCloseEndsAWaitThatStillReads(t *testing.T) {
	srv := servers.Etcd(t, servers.Shared())
	network, reading := servers.Proxy(t, srv.Addr), make(chan struct{})
	traffic := &wire{beforeRead: sync.OnceFunc(func() { network.Cut(); close(reading) })}
	s := open(t, dial(t, network.Addr, traffic.options()...), newPrefix(t))
	waiting := storetest.StartWait(t, s, store.Record{Key: "k"})
	<-reading
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waiting.Closed(t)
}

// Pages are read one after the other. A compaction between them changes nothing.
func TestCompactionDuringList(t *testing.T) {
	srv := servers.Etcd(t)
	client := dial(t, srv.Addr)
	s := open(t, client, newPrefix(t))
	const records = 2*page + 10
	for i := range records {
		storetest.MustPut(t, s, held(fmt.Sprintf("k/%04d", i), 1))
	}
	n := 0
	for rec, err := range s.List(t.Context(), "k/") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%page == 1 {
			written := storetest.MustPut(t, s, rec)
			revision, _ := revisionOf(written.Version)
			if _, err := client.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != records {
		t.Errorf("%d records were yielded, want %d", n, records)
	}
}

// BenchmarkHandOver is the time from a write to the return of a Wait in another client, while a third one writes all the time.
// "from a read" is the way that a watch is mostly begun: at the revision after that of the read.
func BenchmarkHandOver(b *testing.B) {
	srv := servers.Etcd(b, servers.Shared())
	prefix := newPrefix(b)
	client := dial(b, srv.Addr)
	waiter, writer, third := open(b, client, prefix), open(b, dial(b, srv.Addr), prefix), open(b, dial(b, srv.Addr), prefix)
	for name, wait := range map[string]func(version string) error{
		"Wait": func(version string) error {
			_, err := waiter.Wait(b.Context(), "k", version)
			return err
		},
		"from a read": func(version string) error {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			resp, err := client.Get(ctx, prefix+"k")
			if err != nil || versionOf(resp.Kvs[0].ModRevision) != version {
				return err
			}
			time.Sleep(time.Millisecond)
			<-client.Watch(ctx, prefix+"k", clientv3.WithRev(resp.Header.Revision+1))
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) { handOver(b, writer, third, wait) })
	}
}

func handOver(b *testing.B, writer, third *Store, wait func(version string) error) {
	rec, err := store.Load(b.Context(), writer, "k")
	if err != nil {
		b.Fatal(err)
	}
	rec = storetest.MustPut(b, writer, store.Record{Key: "k", Version: rec.Version})
	var done atomic.Bool
	var noise sync.WaitGroup
	noise.Go(func() {
		for i := 0; !done.Load(); i++ {
			storetest.MustPut(b, third, held(fmt.Sprint("noise", b.Name(), b.N, "/", i), 1))
		}
	})
	var total time.Duration
	for b.Loop() {
		woken := make(chan time.Time, 1)
		version := rec.Version
		go func() {
			if err := wait(version); err != nil {
				b.Error(err)
			}
			woken <- time.Now()
		}()
		time.Sleep(10 * time.Millisecond) // the waiter is there
		start := time.Now()
		rec = storetest.MustPut(b, writer, rec)
		total += (<-woken).Sub(start)
	}
	done.Store(true)
	noise.Wait()
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/hand-over")
	b.ReportMetric(0, "ns/op")
}
