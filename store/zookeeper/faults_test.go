package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestAnExpiredSessionCostsNothing(t *testing.T) { stalltest.Run(t, anExpiredSessionCostsNothing) }

func anExpiredSessionCostsNothing(t testing.TB) {
	srv := servers.ZooKeeper(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	root := aRoot()
	s, _ := openFor(t, network.Addr, root, shortSession)
	other, _ := open(t, srv.Addr, root)
	rec, changed := storetest.MustPut(t, s, held("kept")), storetest.MustPut(t, s, held("changed"))
	session := s.conn.SessionID()
	w, w2 := storetest.StartWait(t, s, rec), storetest.StartWait(t, s, changed)
	if _, err := s.Get(t.Context(), "kept"); err != nil { // the Waits have begun
		t.Fatal(err)
	}
	var readIn int64
	reads := 0
	_, err := fresh(t.Context(), s, &readIn, func(*zk.Conn) (bool, error) {
		if reads++; reads > 1 {
			return true, nil
		}
		network.Refuse()
		time.Sleep(shortSession + 2*time.Second) // the server is to forget the session: no event tells when
		storetest.MustPut(t, other, changed)     // while nobody watches
		network.Heal()
		s.awaitState(t, false)
		s.awaitState(t, true)
		return true, nil
	})
	if err != nil || reads != 2 {
		t.Errorf("a read in two sessions was done %d times, %v; want it done again in one", reads, err)
	}
	w2.End(t)
	if s.conn.SessionID() == session {
		t.Fatal("the session did not expire, so this shows nothing")
	}
	if got, err := s.Get(t.Context(), "kept"); err != nil || got.Version != rec.Version {
		t.Errorf("Get: version %q, error %v; want what the expired session wrote, %q", got.Version, err, rec.Version)
	}
	storetest.MustPut(t, other, rec)
	w.End(t)
}

func TestAWaitGoesOnWhenTheConnectionBreaks(t *testing.T) {
	stalltest.Run(t, aWaitGoesOnWhenTheConnectionBreaks)
}

func aWaitGoesOnWhenTheConnectionBreaks(t testing.TB) {
	srv := servers.ZooKeeper(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	root := aRoot()
	s, r := openFor(t, network.Addr, root, shortSession)
	other, _ := open(t, srv.Addr, root)
	rec := storetest.MustPut(t, other, held("k"))
	s.awaitState(t, true)

	// While the watch is being set.
	network.SwallowReplies(true)
	var w storetest.Waiting
	sent := r.during(func() {
		w = storetest.StartWait(t, s, rec)
		storetest.Eventually(t, func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.count[opGetData] == 0 {
				return errors.New("the Wait has not asked the server")
			}
			return nil
		})
	})
	network.SwallowReplies(false)
	rec = storetest.MustPut(t, other, rec)
	if w.End(t); sent[opGetData] != 1 {
		t.Errorf("before the connection broke, %v was sent", sent)
	}

	for round := range 10 {
		w := storetest.StartWait(t, s, rec)
		if round%2 == 0 {
			if _, err := s.Get(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}
		network.Refuse()
		rec = storetest.MustPut(t, other, rec)
		network.Heal()
		w.End(t)
	}
}

// TestOutcomesInABadNetwork: what may have happened is unknown, and what was never sent is not.
func TestOutcomesInABadNetwork(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	for _, c := range []struct {
		name          string
		fault         func(testing.TB, *servers.Network, *Store)
		unknown, done bool
	}{
		{"reply lost", func(_ testing.TB, n *servers.Network, _ *Store) { n.SwallowReplies(true) }, true, true},
		{"request lost", func(_ testing.TB, n *servers.Network, _ *Store) { n.DropRequests(true) }, true, false},
		{"no server", func(t testing.TB, n *servers.Network, s *Store) { n.Refuse(); s.awaitState(t, false) }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			stalltest.Run(t, func(t testing.TB) {
				network := servers.Proxy(t, srv.Addr)
				root := aRoot()
				s, _ := open(t, network.Addr, root)
				other, _ := open(t, srv.Addr, root)
				s.awaitState(t, true)
				there := storetest.MustPut(t, other, held("there/"+c.name))
				gone := storetest.MustPut(t, other, held("gone/"+c.name))
				c.fault(t, network, s)
				ctx := storetest.Within(t, 2*time.Second)
				_, putErr := s.Put(ctx, there)
				ctx = storetest.Within(t, 2*time.Second)
				deleteErr := s.Delete(ctx, gone.Key, gone.Version)
				network.Heal()
				for call, err := range map[string]error{"Put": putErr, "Delete": deleteErr} {
					if !errors.Is(err, context.DeadlineExceeded) || isUnknown(err) != c.unknown {
						t.Errorf("%s: %v; want an unknown outcome: %v", call, err, c.unknown)
					}
					if !c.unknown && !strings.Contains(err.Error(), "no session with ZooKeeper") {
						t.Errorf("%s: %v, want that there is no session", call, err)
					}
				}
				if !c.unknown {
					return
				}
				got, err := other.Get(t.Context(), there.Key)
				if err != nil || (got.Version != there.Version) != c.done {
					t.Errorf("Put: version %q after %q, %v; want it done: %v", got.Version, there.Version, err, c.done)
				}
				if _, err := other.Get(t.Context(), gone.Key); errors.Is(err, store.ErrNotFound) != c.done {
					t.Errorf("Delete: %v; want it done: %v", err, c.done)
				}
			})
		})
	}
}

// endsBetween is a context that ends after it was first asked, and whose end nobody hears of.
type endsBetween struct {
	context.Context
	asked bool
}

func (c *endsBetween) Done() <-chan struct{} { return nil }
func (c *endsBetween) Value(any) any         { return nil } // else its cause would be its parent's

func (c *endsBetween) Err() error {
	if !c.asked {
		c.asked = true
		return nil
	}
	return context.DeadlineExceeded
}

// TestAContextThatEndsBetweenTwoLooksForASession: its error says what was waited for, as at any other moment.
func TestAContextThatEndsBetweenTwoLooksForASession(t *testing.T) {
	s, _ := open(t, "127.0.0.1:1", aRoot())
	_, err := s.Put(&endsBetween{Context: t.Context()}, held("k"))
	if !errors.Is(err, context.DeadlineExceeded) || isUnknown(err) || !strings.Contains(err.Error(), "no session with ZooKeeper") {
		t.Errorf("Put: %v, want the context's cause and that there is no session", err)
	}
}

// awaitState waits until the client noticed that it has a session, or none.
func (s *Store) awaitState(t testing.TB, session bool) {
	t.Helper()
	storetest.Eventually(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.session(ctx); (err == nil) != session {
			return fmt.Errorf("session: %v", err)
		}
		return nil
	})
}

// TestTheServerIsKilled: no acknowledged write is lost, and every waiter is woken, when the server is killed and started
// again in the middle of everything.
func TestTheServerIsKilled(t *testing.T) {
	srv := servers.ZooKeeper(t)
	root := aRoot()
	s, _ := open(t, srv.Addr, root)
	rec := storetest.MustPut(t, s, held("waited"))
	w := storetest.StartWait(t, s, rec)
	const writers = 4
	var acknowledged [writers]store.Record
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range writers {
		key := fmt.Sprintf("k/%d", i)
		acknowledged[i] = storetest.MustPut(t, s, held(key))
		all.Go(func() { acknowledged[i] = writeOn(ctx, t, s, acknowledged[i]) })
	}
	time.Sleep(300 * time.Millisecond) // in the middle of their work
	srv.Kill()
	srv.Restart()
	storetest.Eventually(t, func() error {
		try, cancel := context.WithTimeout(t.Context(), time.Second)
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
	for ctx.Err() == nil {
		next := rec
		next.Token++
		next.Nonce = newBirth()
		written, putErr := s.Put(ctx, next)
		if putErr == nil {
			rec = written
			continue
		}
		var got store.Record
		var err error
		for try := range 1000 {
			read, cancel := context.WithTimeout(context.Background(), time.Second)
			got, err = s.Get(read, rec.Key)
			cancel()
			if err == nil {
				break
			}
			if try == 999 {
				t.Errorf("Get: %v", err)
				return rec
			}
		}
		if happened := got.Version != rec.Version; happened && (got.Nonce != next.Nonce || !isUnknown(putErr)) {
			t.Errorf("Put: %v", putErr)
			t.Errorf("%s: stored is %+v; last acknowledged was %+v, last tried %+v", rec.Key, got, rec, next)
			return rec
		}
		rec = got
	}
	return rec
}

func TestCloseWaitsForRequests(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	conn, _ := connect(t, srv.Addr, sessionTimeout)
	s, err := New(conn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	var answered atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := call(ctx, s, func(*zk.Conn) (bool, error) { cancel(); <-release; answered.Store(true); return true, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context ended: %v", err)
	}
	time.AfterFunc(100*time.Millisecond, func() { close(release) })
	if err := s.Close(); err != nil || !answered.Load() {
		t.Errorf("Close: %v; the request was answered before: %v", err, answered.Load())
	}
}

func TestCloseDoesNotWaitForeverForAServerThatIsStopped(t *testing.T) {
	stalltest.Run(t, closeDoesNotWaitForeverForAServerThatIsStopped)
}

func closeDoesNotWaitForeverForAServerThatIsStopped(t testing.TB) {
	srv := servers.ZooKeeper(t)
	conn, _ := connect(t, srv.Addr, shortSession)
	s, err := New(conn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rec := storetest.MustPut(t, s, held("k"))
	srv.Pause()
	if _, err := s.Put(storetest.Within(t, 50*time.Millisecond), rec); !isUnknown(err) {
		t.Errorf("Put: %v, want an unknown outcome", err)
	}
	// With sessions as short as here the client ends its requests sooner than Close gives up.
	answer := make(chan struct{})
	s.begin(func() { <-answer })
	start := time.Now()
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("Close: %v, want that something was not answered", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("Close took %v", took)
	}
	close(answer)
	srv.Resume()
}

// TestCloseEndsAWaitThatStillReads: it needs no answer from the server for that.
func TestCloseEndsAWaitThatStillReads(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	conn, r := connect(t, network.Addr, sessionTimeout)
	s, err := New(conn, Options{Root: aRoot()})
	if err != nil {
		t.Fatal(err)
	}
	stale := storetest.MustPut(t, s, held("k"))
	watched(t, s, stale) // there is nothing left to do for a Wait but to read
	stale.Version = newBirth() + ".0"
	network.Cut()
	w := waitThatReads(t, s, r, stale)
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("Close: %v, want that something was not answered", err)
	}
	w.Closed(t)
	network.Heal()
}

// waitThatReads returns a Wait that has asked the server what is stored.
func waitThatReads(t *testing.T, s *Store, r *requests, stale store.Record) (w storetest.Waiting) {
	t.Helper()
	r.during(func() {
		w = storetest.StartWait(t, s, stale)
		storetest.Eventually(t, func() error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.count[opMulti] == 0 {
				return errors.New("the Wait has not asked the server")
			}
			return nil
		})
	})
	return w
}

// TestAWaitReadsAgainWhenTheConnectionBreaks as it reads: that is no reason to end.
func TestAWaitReadsAgainWhenTheConnectionBreaks(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	s, r := open(t, network.Addr, aRoot())
	stale := storetest.MustPut(t, s, held("k"))
	watched(t, s, stale) // there is nothing left to do for a Wait but to read
	stale.Version = newBirth() + ".0"
	network.Cut()
	w := waitThatReads(t, s, r, stale)
	network.Reset()
	network.Heal()
	w.End(t)
}

// TestAMissedEventIsMadeUpFor: a watch that doesn't fire, as the client's may after it reconnected, keeps a waiter no
// longer than until its next look.
func TestAMissedEventIsMadeUpFor(t *testing.T) {
	srv := servers.ZooKeeper(t, servers.Shared())
	s, _ := open(t, srv.Addr, aRoot())
	rec := storetest.MustPut(t, s, held("k"))
	_, leave, err := s.watches.Join("k") // as a Wait does
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	was := row{rec: rec}
	rec = storetest.MustPut(t, s, rec)
	start := time.Now()
	s.silence(storetest.Within(t, 2*checkMax), "k", was, nil)
	if took := time.Since(start); took > checkMax+5*time.Second {
		t.Errorf("it was noticed after %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	silent := make(chan struct{})
	go func() {
		s.silence(ctx, "k", row{rec: rec}, nil)
		close(silent)
	}()
	select {
	case <-silent:
		t.Error("a row that stayed was taken for another one")
	case <-time.After(checkMax + time.Second):
	}
	cancel()
	<-silent
}

// watched waits until the handle has a watch that knows the record.
func watched(t testing.TB, s *Store, rec store.Record) {
	t.Helper()
	w, leave, err := s.watches.Join(rec.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	storetest.Eventually(t, func() error {
		if !w.Knows(rec.Version) {
			return errors.New("the watch is not set")
		}
		return nil
	})
}
