package consul

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// asking waits until a query of the handle for the key was answered, and told it that version.
func asking(t testing.TB, s *Store, rec store.Record) {
	t.Helper()
	storetest.Eventually(t, func() error {
		if r, ok := opened.Load(s); ok && !r.(*requests).answered("/v1/kv/"+s.prefix+encode(rec.Key)) {
			return errors.New("no query has been answered yet")
		}
		if w, ok := s.watches.Get(rec.Key); !ok || !w.Knows(rec.Version) {
			return errors.New("it doesn't know the version")
		}
		return nil
	})
}

// waiting begins a Wait that has nothing to read any more: a read of its own that fails ends a Wait, and what becomes of the one before
// it, which had the query sent, doesn't matter.
func waiting(t testing.TB, s *Store, rec store.Record) storetest.Waiting {
	storetest.StartWait(t, s, rec)
	asking(t, s, rec)
	return storetest.StartWait(t, s, rec)
}

func TestAWaitGoesOnWhenTheConnectionBreaks(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	prefix := aPrefix()
	s, _ := open(t, api.Config{Address: network.Addr}, Options{Prefix: prefix})
	other, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	rec := storetest.MustPut(t, other, held("k"))
	for range 5 {
		w := waiting(t, s, rec)
		network.Refuse()
		rec = storetest.MustPut(t, other, rec)
		network.Heal()
		w.End(t)
	}
}

// TestTheServerIsKilled: no acknowledged write is lost, and every waiter is woken, when the server is killed and started
// again in the middle of everything.
func TestTheServerIsKilled(t *testing.T) {
	srv := servers.Consul(t)
	s, _ := open(t, api.Config{Address: srv.Addr}, Options{})
	rec := storetest.MustPut(t, s, held("waited"))
	w := waiting(t, s, rec)
	const writers = 4
	var acknowledged [writers]store.Record
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range writers {
		acknowledged[i] = storetest.MustPut(t, s, held(fmt.Sprintf("k/%d", i)))
		all.Go(func() { acknowledged[i] = writeOn(ctx, t, s, acknowledged[i]) })
	}
	time.Sleep(300 * time.Millisecond) // in the middle of their work
	srv.Kill()
	srv.Restart()
	storetest.Eventually(t, func() error {
		try, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.Put(try, rec)
		if errors.Is(err, store.ErrConflict) { // a try before was done
			err = nil
		}
		return err
	})
	w.End(t)
	stop()
	all.Wait()
	for _, last := range acknowledged {
		got, err := s.Get(t.Context(), last.Key)
		if err != nil || got.Token < last.Token {
			t.Errorf("%s: token %d, %v; %d was acknowledged", last.Key, got.Token, err, last.Token)
		}
	}
}

// writeOn writes rec again and again, raising its token, and returns the last version that was acknowledged. It checks that no
// write was done that was reported as not done.
func writeOn(ctx context.Context, t *testing.T, s *Store, rec store.Record) store.Record {
	perhaps := map[string]bool{} // nonces of writes whose outcomes were unknown, which may come late
	for ctx.Err() == nil {
		next := rec
		next.Token++
		next.Nonce = time.Now().String()
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		written, putErr := s.Put(try, next)
		cancel()
		if putErr == nil {
			rec = written
			continue
		}
		perhaps[next.Nonce] = isUnknown(putErr)
		var got store.Record
		err := errors.New("not tried")
		for end := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
			read, cancel := context.WithTimeout(context.Background(), time.Second)
			got, err = s.Get(read, rec.Key)
			cancel()
		}
		if err != nil {
			t.Errorf("Get: %v", err)
			return rec
		}
		if happened := got.Version != rec.Version; happened && !perhaps[got.Nonce] {
			t.Errorf("Put: %v; stored is %+v; last acknowledged was %+v, last tried %+v", putErr, got, rec, next)
			return rec
		}
		rec = got
	}
	return rec
}

// TestAServerThatIsStopped: calls end with their contexts, and Close ends the queries.
func TestAServerThatIsStopped(t *testing.T) { stalltest.Run(t, aServerThatIsStopped) }

func aServerThatIsStopped(t testing.TB) {
	srv := servers.Consul(t)
	client, _, hangUp, err := dial(api.Config{Address: srv.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer hangUp()
	s, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := storetest.MustPut(t, s, held("k"))
	w := waiting(t, s, rec)
	srv.Pause()
	if _, err := s.Put(storetest.Within(t, time.Second), rec); !isUnknown(err) {
		t.Errorf("Put: %v, want an unknown outcome", err)
	}
	if _, err := s.Get(storetest.Within(t, 50*time.Millisecond), "k"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Get: %v", err)
	}
	start := time.Now()
	if err := s.Close(); err != nil || time.Since(start) > 2*time.Second {
		t.Errorf("Close: %v after %v", err, time.Since(start))
	}
	if n := len(s.slots); n != 0 {
		t.Errorf("%d queries are under way after Close", n)
	}
	w.Closed(t)
}

// TestCloseEndsAWaitThatStillReads: it needs no answer from the server for that.
func TestCloseEndsAWaitThatStillReads(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	s, r := open(t, api.Config{Address: network.Addr}, Options{Prefix: aPrefix()})
	network.Cut()
	var w storetest.Waiting
	r.during(func() {
		w = storetest.StartWait(t, s, store.Record{Key: "k"})
		storetest.Eventually(t, func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.sent) < 2 {
				return fmt.Errorf("the Wait's read and the query: sent were %q", r.sent)
			}
			return nil
		})
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	w.Closed(t)
}

// deposed answers as a server without a leader does while it is told to.
type deposed struct {
	http.RoundTripper
	on  atomic.Bool
	met atomic.Int64
}

func (d *deposed) RoundTrip(req *http.Request) (*http.Response, error) {
	if !d.on.Load() {
		return d.RoundTripper.RoundTrip(req)
	}
	d.met.Add(1)
	return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(noLeader)), Request: req}, nil
}

// TestAWaitGoesOnWithoutALeader though a query is answered that there is none, as some are after ten seconds.
func TestAWaitGoesOnWithoutALeader(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	prefix := aPrefix()
	s, r := open(t, api.Config{Address: network.Addr}, Options{Prefix: prefix})
	d := &deposed{RoundTripper: r.RoundTripper}
	r.RoundTripper = d
	other, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	rec := storetest.MustPut(t, other, held("k"))
	w := waiting(t, s, rec)
	d.on.Store(true)
	network.Refuse() // so that it asks again
	storetest.Eventually(t, func() error {
		if n := d.met.Load(); n < 3 {
			return fmt.Errorf("%d queries were told that there is no leader", n)
		}
		return nil
	})
	network.Heal()
	d.on.Store(false)
	storetest.MustPut(t, other, rec)
	w.End(t)
}

// TestMoreKeysThanQueries: they take turns, and each waiter is woken.
func TestMoreKeysThanQueries(t *testing.T) {
	const keys, queries = 30, 4
	srv := servers.Consul(t, servers.Shared())
	prefix := aPrefix()
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix, MaxQueries: queries})
	other, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	var recs []store.Record
	var waits []storetest.Waiting
	for i := range keys {
		rec := storetest.MustPut(t, other, held(fmt.Sprintf("k/%d", i)))
		recs, waits = append(recs, rec), append(waits, storetest.StartWait(t, s, rec))
	}
	for _, rec := range recs {
		asking(t, s, rec)
	}
	// Each query takes a second, and one that told nothing new is followed by one that doesn't wait.
	start := time.Now()
	sent := r.during(func() { time.Sleep(3 * time.Second) })
	if took := time.Since(start); len(sent) > int(3*queries*took.Seconds()) {
		t.Errorf("%d requests in %v while nothing happened", len(sent), took)
	}
	for _, rec := range recs {
		storetest.MustPut(t, other, rec)
	}
	for _, w := range waits {
		w.End(t)
	}
}

// TestWaitersShareAQuery: many who wait for a key, one after another too, cost one query.
func TestWaitersShareAQuery(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	rec := storetest.MustPut(t, s, held("k"))
	if _, err := s.Wait(storetest.Within(t, 50*time.Millisecond), "k", rec.Version); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v", err)
	}
	asking(t, s, rec)
	first := storetest.StartWait(t, s, rec) // which needs no read any more
	sent := r.during(func() {
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, err := s.Wait(ctx, "k", rec.Version); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Wait: %v", err)
					}
				})
			}
			all.Wait()
			cancel()
		}
	})
	if len(sent) > 1 { // the query itself, if it was not sent before
		t.Errorf("200 waits that nothing ended sent %q", sent)
	}
	waits := []storetest.Waiting{first}
	for range 30 {
		waits = append(waits, storetest.StartWait(t, s, rec))
	}
	storetest.Eventually(t, func() error {
		if n := s.watches.Waiters("k"); n < len(waits) {
			return fmt.Errorf("%d of %d wait", n, len(waits))
		}
		return nil
	})
	sent = r.during(func() {
		storetest.MustPut(t, s, rec)
		for _, w := range waits {
			w.End(t)
		}
	})
	// A Wait that only looks after the write asks by itself.
	if len(sent) > 4+len(waits)/2 {
		t.Errorf("a write that woke %d waiters sent %d requests", len(waits), len(sent))
	}
}

// TestQueriesEndSomeTimeAfterTheLastWaiter: a key that nobody waits for any more costs nothing.
func TestQueriesEndSomeTimeAfterTheLastWaiter(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	s, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: aPrefix()})
	rec := storetest.MustPut(t, s, held("k"))
	if _, err := s.Wait(storetest.Within(t, 50*time.Millisecond), "k", rec.Version); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	storetest.Eventually(t, func() error {
		if n := s.watches.Len(); n > 0 || len(s.slots) > 0 {
			return fmt.Errorf("%d watches, %d queries", n, len(s.slots))
		}
		return nil
	})
}

// TestWaitingForWhatIsNotThereIsNotBusy though the index of what isn't there is that of the last write to any key.
func TestWaitingForWhatIsNotThereIsNotBusy(t *testing.T) {
	srv := servers.Consul(t, servers.Shared())
	prefix := aPrefix()
	s, r := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	other, _ := open(t, api.Config{Address: srv.Addr}, Options{Prefix: prefix})
	w := storetest.StartWait(t, s, store.Record{Key: "none"})
	asking(t, s, store.Record{Key: "none"})
	start := time.Now()
	sent := r.during(func() {
		var all sync.WaitGroup
		for i := range 16 {
			rec := storetest.MustPut(t, other, held(fmt.Sprintf("busy/%d", i)))
			all.Go(func() {
				for time.Since(start) < 2*time.Second {
					var err error
					if rec, err = other.Put(t.Context(), rec); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
	// The pause before each is half of quietMax at least, once there were four or five.
	if took := time.Since(start); len(sent) > 8+int(took/(quietMax/2)) {
		t.Errorf("%d requests in %v", len(sent), took)
	}
	storetest.MustPut(t, other, held("none"))
	w.End(t)
}

// TestIndexesThatBeginAnew: after the data of the server were put back to a copy, a waiter is told, and goes on.
func TestIndexesThatBeginAnew(t *testing.T) {
	srv := servers.Consul(t)
	s, _ := open(t, api.Config{Address: srv.Addr}, Options{})
	rec := storetest.MustPut(t, s, held("k"))
	copied, _, err := s.client.Snapshot().Save(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	for range 20 {
		rec = storetest.MustPut(t, s, rec)
	}
	w := waiting(t, s, rec)
	if err := s.client.Snapshot().Restore(nil, copied); err != nil {
		t.Fatal(err)
	}
	w.End(t)
	back, err := s.Get(t.Context(), "k")
	if err != nil || back.Version == rec.Version {
		t.Fatalf("version %q, %v: the copy was not restored, so this shows nothing", back.Version, err)
	}
	w = storetest.StartWait(t, s, back)
	storetest.MustPut(t, s, back)
	w.End(t)
}
