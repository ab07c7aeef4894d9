package accept

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
)

// crowd is a listener on which somebody always waits to be accepted.
type crowd struct{ net.Listener }

func (crowd) Accept() (net.Conn, error) { return somebody{}, nil }

func (crowd) Close() error { return nil }

type somebody struct{ net.Conn }

func (somebody) RemoteAddr() net.Addr { return nil }

func (somebody) Close() error { return nil }

// let has the listener accept for that long, and returns how many it has accepted.
func let(t *testing.T, l *Listener, d time.Duration, each func(net.Conn)) (n int) {
	t.Helper()
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() && n < 100_000 {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			n++
			each(c)
		}
	}()
	time.Sleep(d)
	synctest.Wait()
	over.Store(true)
	<-done
	return n
}

// A crowd that comes at once is accepted over time: requests that are under way don't wait for all
// of it. What the server did not use up of that time is a burst of the next crowd, and no more.
func TestFinding_V1_ACrowdIsAcceptedOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(crowd{}, Options{Clock: clocktest.New(0)})
		perSecond := int(time.Second/paceEach) * runtime.GOMAXPROCS(0)
		for _, idle := range []time.Duration{0, time.Hour} {
			time.Sleep(idle)
			if n, want := let(t, l, time.Second, func(net.Conn) {}), paceBurst+perSecond; n < want || n > want+1 {
				t.Errorf("after %v idle: %d connections in a second, want %d", idle, n, want)
			}
		}
	})
}

// A client with a connection for each request is not slowed: one that is closed makes place.
func TestFinding_V1_WhatIsClosedMakesPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(crowd{}, Options{Clock: clocktest.New(0)})
		all, err := 0, error(nil)
		for all < 100*paceBurst && err == nil {
			var c net.Conn
			if c, err = l.Accept(); err == nil {
				err = c.Close()
			}
			all++
		}
		if now := l.opts.Clock.Now(); err != nil || now != 0 {
			t.Errorf("%d connections, each closed before the next, took %v (%v), want no time", all, now, err)
		}
		kept := make(chan net.Conn, paceBurst+1)
		go func() {
			for range paceBurst + 1 {
				if c, err := l.Accept(); err == nil {
					kept <- c
				}
			}
			close(kept)
		}()
		synctest.Wait()
		if len(kept) != paceBurst {
			t.Fatalf("%d were accepted at once, want %d", len(kept), paceBurst)
		}
		_ = (<-kept).Close()
		synctest.Wait()
		if now := l.opts.Clock.Now(); len(kept) != paceBurst || now != 0 {
			t.Errorf("nobody was accepted for the one that was closed (at %v)", now)
		}
		for range kept { // until the goroutine has ended
		}
	})
}

// Many short connections that end at once, as one commit ends them, are followed by as many. What stays unused of their places
// is gone after a while. The places of long ones are a burst, so that a crowd that comes back at once is still let in one by one.
func TestFinding_V1_ManyThatEndAtOnceMakePlaceForAsMany(t *testing.T) {
	const many = 10 * paceBurst
	for _, c := range []struct {
		lived, later time.Duration
		want         int
	}{
		{paceShort, 0, many},
		{paceShort + 1, 0, paceBurst},
		{paceShort, time.Minute, paceBurst},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPace(clocktest.New(0))
			free := func() (n int) {
				for p.try() == 0 {
					n++
				}
				return n
			}
			free()
			for range many {
				p.give(c.lived)
			}
			time.Sleep(c.later)
			if n := free(); n != c.want {
				t.Errorf("after %v, %d places of connections that lived for %v are left, want %d", c.later, n, c.lived, c.want)
			}
		})
	}
}

// A listener that finishes takes all that have come, without a pause.
func TestFinding_V1_WhoHasComeIsAcceptedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(crowd{}, Options{Clock: clocktest.New(0)})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l.Finish(ctx)
		for range 10 * paceBurst {
			if _, err := l.Accept(); err != nil {
				t.Fatal(err)
			}
		}
		if now := l.opts.Clock.Now(); now != 0 {
			t.Errorf("it took %v, want no time", now)
		}
	})
}

// A client that hangs up before its answer, or in the middle of it, gives no place, so that a crowd that comes and goes is spread,
// too. One that has had its answer, or was closed by the server, gives its place at once.
func TestFinding_V1_WhoHangsUpGivesNoPlace(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after int // answers, or pieces of one, that are sent before Read fails and after that
		err           error
		place         bool
	}{
		{"before its answer", 0, 0, io.EOF, false},
		{"reset before its answer", 0, 0, syscall.ECONNRESET, false},
		{"in the middle of it", 1, 1, io.EOF, false},
		{"after its answer", 1, 0, io.EOF, true},
		{"closed by the server", 0, 0, net.ErrClosed, true},
		{"timed out by the server", 0, 0, os.ErrDeadlineExceeded, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := New(crowd{}, Options{Clock: clocktest.New(0)})
				send := func(on net.Conn, times int) {
					for range times {
						if _, err := on.Write([]byte("answer")); err != nil {
							t.Error(err)
						}
					}
				}
				for range paceBurst {
					mine, err := l.Accept()
					if err != nil {
						t.Fatal(err)
					}
					mine.(*conn).Conn = &ending{err: c.err}
					if _, err := mine.Read(make([]byte, 8)); err != nil {
						t.Fatal(err)
					}
					send(mine, c.before)
					if _, err := mine.Read(make([]byte, 8)); !errors.Is(err, c.err) {
						t.Errorf("Read returns %v, want %v", err, c.err)
					}
					send(mine, c.after)
					if err := mine.Close(); err != nil {
						t.Error(err)
					}
				}
				if place := l.pace.try() == 0; place != c.place {
					t.Errorf("a place is given: %v, want %v", place, c.place)
				}
			})
		})
	}
}

// ending is a connection on which one request comes, and then an error.
type ending struct {
	net.Conn
	err  error
	sent bool
}

func (e *ending) Read(p []byte) (int, error) {
	if e.sent {
		return 0, e.err
	}
	e.sent = true
	return copy(p, "request"), nil
}

func (*ending) Write(p []byte) (int, error) { return len(p), nil }

func (*ending) SetWriteDeadline(time.Time) error { return nil }

func (*ending) Close() error { return nil }
