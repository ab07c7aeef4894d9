package nats

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

type waited struct {
	rec store.Record
	err error
}

// startWait begins a Wait, and returns when the store has a consumer for it.
func startWait(t testing.TB, s *Store, key, version string) <-chan waited {
	t.Helper()
	result := make(chan waited, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*soon)
	t.Cleanup(cancel)
	go func() {
		rec, err := s.Wait(ctx, key, version)
		result <- waited{rec, err}
	}()
	eventually(t, "a consumer for "+key, func() bool {
		w, ok := s.watches.Get(key)
		return ok && w.Began()
	})
	return result
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

// consumers returns how many the bucket has.
func consumers(t testing.TB, s *Store) int {
	t.Helper()
	info, err := s.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Consumers
}

// Thousands of keys don't mean thousands of consumers, and none stays behind.
func TestWaitsShareConsumers(t *testing.T) {
	const keys, waiters = 100, 5
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	s := open(t, js, bucket)
	var waiting []<-chan waited
	stored := make([]store.Record, keys)
	for i := range stored {
		stored[i] = storetest.MustPut(t, s, held(fmt.Sprint("k", i), 1))
		for range waiters {
			waiting = append(waiting, startWait(t, s, stored[i].Key, stored[i].Version))
		}
	}
	if n := consumers(t, s); n != narrow+1 {
		t.Errorf("%d consumers, want one for each of %d keys and one for all others", n, narrow)
	}
	for i := range stored {
		stored[i].Token++
		stored[i] = storetest.MustPut(t, s, stored[i])
	}
	for i, w := range waiting {
		mustWake(t, fmt.Sprint("waiter ", i), w, stored[i/waiters])
	}
	eventually(t, "no consumers", func() bool { return consumers(t, s) == 0 })
}

// A consumer that is taken away is begun anew, and whoever waits reads what it missed.
func TestConsumerTakenAway(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	s := open(t, js, newBucket(t, js, 1))
	rec := storetest.MustPut(t, s, held("k", 1))
	waiting := startWait(t, s, "k", rec.Version)
	for name := range s.stream.ConsumerNames(t.Context()).Name() {
		if err := s.stream.DeleteConsumer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	rec.Token++
	rec = storetest.MustPut(t, s, rec)
	select {
	case got := <-waiting:
		if got.err != nil || got.rec.Version != rec.Version {
			t.Errorf("%+v", got)
		}
	case <-time.After(2 * soon): // two heartbeats, which come every 5 s, have to be missing
		t.Error("Wait returned nothing")
	}
}

// After a lost connection the consumer is begun anew at once. By itself it would notice after two heartbeats, which is 10 s.
func TestReconnectDuringWait(t *testing.T) { stalltest.Run(t, reconnectDuringWait) }

func reconnectDuringWait(t testing.TB) {
	const atOnce = 5 * time.Second
	srv := servers.NATS(t, servers.Shared())
	network := servers.Proxy(t, srv.Addr)
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	s, direct := open(t, dial(t, network.Addr), bucket), open(t, js, bucket)
	rec := storetest.MustPut(t, s, held("k", 1))
	before := s.conn.Stats().InMsgs
	waiting := startWait(t, s, "k", rec.Version)
	eventually(t, "its first read", func() bool { return s.conn.Stats().InMsgs >= before+2 }) // and the consumer's beginning
	network.Refuse()
	eventually(t, "a client that knows", func() bool { return !s.conn.IsConnected() })
	rec.Token++
	rec = storetest.MustPut(t, direct, rec)
	network.Heal()
	eventually(t, "a connection", s.conn.IsConnected)
	start := time.Now()
	mustWake(t, "after a lost connection", waiting, rec)
	if took := time.Since(start); took > atOnce {
		t.Errorf("it took %v, want at most %v", took, atOnce)
	}
}

// A leader that lags behind what a replica told is asked until it has caught up.
func TestLaggingLeader(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	s, writer := open(t, dial(t, srv.Addr), bucket), open(t, js, bucket)
	rec := storetest.MustPut(t, writer, held("k", 1))
	sequence, _ := sequenceOf(rec.Version)
	for i, later := range []uint64{sequence + 1, sequence + 2} {
		before := s.conn.Stats().OutMsgs
		result := make(chan waited, 1)
		go func() {
			rec, _, err := s.loadFrom(t.Context(), "k", later)
			result <- waited{rec, err}
		}()
		eventually(t, "a read", func() bool { return s.conn.Stats().OutMsgs > before })
		if i == 0 {
			rec.Token++
			rec = storetest.MustPut(t, writer, rec)
		} else if err := writer.Delete(t.Context(), "k", rec.Version); err != nil {
			t.Fatal(err)
		} else {
			rec = store.Record{}
		}
		mustWake(t, "a leader that caught up", result, rec)
	}
}

// A client that was closed for good is an error, not a wait without an end.
func TestConnectionClosedDuringWait(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	js := dial(t, srv.Addr)
	s := open(t, js, newBucket(t, js, 1))
	waiting := startWait(t, s, "k", "")
	js.Conn().Close()
	select {
	case got := <-waiting:
		if got.err == nil {
			t.Errorf("%+v", got)
		}
	case <-time.After(soon):
		t.Error("Wait returned nothing")
	}
	if _, err := s.Put(t.Context(), held("k", 1)); err == nil {
		t.Error("a write over a closed connection succeeded")
	}
}

// reader dials connections that say when a record is about to be read.
type reader struct{ reads func() }

func (r reader) Dial(network, addr string) (net.Conn, error) {
	conn, err := net.Dial(network, addr)
	return &readerConn{conn, r}, err
}

type readerConn struct {
	net.Conn
	reader
}

func (c *readerConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("STREAM.MSG.GET")) {
		c.reads()
	}
	return c.Conn.Write(b)
}

// A Wait that still reads needs no answer from the server to end with the store.
func TestCloseEndsAWaitThatStillReads(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	network, reading := servers.Proxy(t, srv.Addr), make(chan struct{})
	r := reader{sync.OnceFunc(func() { network.Cut(); close(reading) })}
	s := open(t, dial(t, network.Addr, natsgo.SetCustomDialer(r)), newBucket(t, dial(t, srv.Addr), 1))
	waiting := storetest.StartWait(t, s, store.Record{Key: "k"})
	<-reading
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waiting.Closed(t)
}

// BenchmarkHandOver is the time from a write to the return of a Wait over another connection.
func BenchmarkHandOver(b *testing.B) {
	srv := servers.NATS(b, servers.Shared())
	js := dial(b, srv.Addr)
	bucket := newBucket(b, js, 1)
	waiter, writer := open(b, js, bucket), open(b, dial(b, srv.Addr), bucket)
	rec := storetest.MustPut(b, writer, held("k", 1))
	var total time.Duration
	for b.Loop() {
		waiting := startWait(b, waiter, "k", rec.Version)
		start := time.Now()
		rec = storetest.MustPut(b, writer, rec)
		<-waiting
		total += time.Since(start)
	}
	b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ms/hand-over")
	b.ReportMetric(0, "ns/op")
}
