package servers

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// echo is a server that answers each line with the same line. It counts the connections and the lines that came.
type echo struct {
	addr        string
	came, ended atomic.Int64 // connections
	lines       atomic.Int64
}

func newEcho(t *testing.T) *echo {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{addr: listener.Addr().String()}
	var running sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				e.came.Add(1)
				defer e.ended.Add(1)
				defer conn.Close()
				for in := bufio.NewScanner(conn); in.Scan(); {
					e.lines.Add(1)
					fmt.Fprintln(conn, in.Text())
				}
			})
		}
	})
	return e
}

// caller is a client of an echo.
type caller struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func call(t *testing.T, addr string) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &caller{t, conn, bufio.NewReader(conn)}
}

// proxied returns an echo, a proxy before it, and a connection through that.
func proxied(t *testing.T) (*echo, *Network, *caller) {
	t.Helper()
	e := newEcho(t)
	p := Proxy(t, e.addr)
	return e, p, call(t, p.Addr)
}

func (c *caller) send(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.conn, line); err != nil {
		c.t.Fatal(err)
	}
}

// within bounds what is read next.
func (c *caller) within(d time.Duration) {
	if err := c.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.t.Fatal(err)
	}
}

// hear waits for a line.
func (c *caller) hear(want string) {
	c.t.Helper()
	c.within(within)
	if got, err := c.in.ReadString('\n'); got != want+"\n" {
		c.t.Fatalf("got %q, %v, want %q", got, err, want)
	}
}

// silent waits for a while, in which nothing must come, and the connection must stay open.
func (c *caller) silent() {
	c.t.Helper()
	c.within(100 * time.Millisecond)
	if got, err := c.in.ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v, want nothing", got, err)
	}
}

// over waits for the end of the connection.
func (c *caller) over() {
	c.t.Helper()
	c.within(within)
	if got, err := c.in.ReadString('\n'); got != "" || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v, want the end", got, err)
	}
}

func (e *echo) heard(t *testing.T, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the server gets %d lines", want), func() bool { return e.lines.Load() == want })
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(tick) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestProxyPassesOn(t *testing.T) {
	_, _, c := proxied(t)
	c.send("one")
	c.hear("one")
	long := strings.Repeat("x", 1<<16-2)
	c.send(long)
	c.hear(long)
	c.conn.Close()
}

func TestProxyCut(t *testing.T) {
	e := newEcho(t)
	p := Proxy(t, e.addr)
	old := call(t, p.Addr)
	old.send("one")
	old.hear("one")
	p.Cut()
	fresh := call(t, p.Addr)
	old.send("two")
	fresh.send("three")
	old.silent()
	fresh.silent()
	if lines, came := e.lines.Load(), e.came.Load(); lines != 1 || came != 1 {
		t.Fatalf("the server got %d lines on %d connections, want only what was before", lines, came)
	}
	p.Heal()
	old.hear("two")
	fresh.hear("three")
}

// TestProxyCutHidesTheEnd closes a connection that is cut: the server must not hear of it before the network is healed.
func TestProxyCutHidesTheEnd(t *testing.T) {
	e, p, c := proxied(t)
	c.send("one")
	c.hear("one")
	p.Cut()
	c.conn.Close()
	time.Sleep(100 * time.Millisecond) // in which nothing must happen
	if e.ended.Load() != 0 {
		t.Error("the server saw the end of a connection that was cut")
	}
	p.Heal()
	eventually(t, "the server hears that the client is gone", func() bool { return e.ended.Load() == 1 })
}

func TestProxyCutCutsAnswersUnderWay(t *testing.T) {
	e := newEcho(t)
	p := Proxy(t, e.addr)
	const delay = 200 * time.Millisecond
	for lines := int64(1); ; lines++ {
		p.Delay(delay)
		c := call(t, p.Addr)
		start := time.Now()
		c.send("one")
		e.heard(t, lines)
		p.Cut()
		if time.Since(start) < 2*delay { // else the answer has come perhaps, and this shows nothing
			p.Delay(0)
			time.Sleep(delay + delay/2) // until the answer would have come
			c.silent()
			p.Heal()
			c.hear("one")
			return
		}
		p.Heal()
	}
}

func TestProxyRefuse(t *testing.T) {
	_, p, c := proxied(t)
	c.send("one")
	c.hear("one")
	p.Refuse()
	c.over()
	p.Refuse() // twice is once
	if conn, err := net.Dial("tcp", p.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("got %v, %v, want it refused", conn, err)
	}
	p.Heal()
	p.Heal()
	c = call(t, p.Addr)
	c.send("two")
	c.hear("two")
}

func TestProxyReset(t *testing.T) {
	_, p, c := proxied(t)
	c.send("one")
	c.hear("one")
	p.Reset()
	c.over()
	c = call(t, p.Addr)
	c.send("two")
	c.hear("two")
}

func TestProxyDelay(t *testing.T) {
	_, p, c := proxied(t)
	const delay = 150 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	const lines = 10
	for i := range lines {
		c.send(fmt.Sprint(i))
		time.Sleep(tick) // so that each is a chunk of its own
	}
	for i := range lines {
		c.hear(fmt.Sprint(i))
		if d := time.Since(start); i == 0 && d < 2*delay {
			t.Errorf("the first answer came after %v, want %v each way", d, delay)
		}
	}
	p.Heal()
	c.send("soon")
	c.hear("soon")
}

// TestProxyDelayIsNoQueue sends much at once: the delays must not add up.
func TestProxyDelayIsNoQueue(t *testing.T) {
	_, p, c := proxied(t)
	const delay, lines = 300 * time.Millisecond, 40
	p.Delay(delay)
	start := time.Now()
	for i := range lines {
		c.send(fmt.Sprint(i))
		time.Sleep(2 * time.Millisecond)
	}
	for i := range lines {
		c.hear(fmt.Sprint(i))
	}
	if d := time.Since(start); d > lines*delay/2 {
		t.Errorf("%d lines took %v: one after the other", lines, d)
	}
}

func TestProxySwallowReplies(t *testing.T) {
	e := newEcho(t)
	p := Proxy(t, e.addr)
	torn, idle := call(t, p.Addr), call(t, p.Addr)
	idle.send("one")
	idle.hear("one")
	p.SwallowReplies(true)
	torn.send("two")
	eventually(t, "it is thrown away", func() bool { return p.Lost() > 0 })
	torn.silent()
	p.SwallowReplies(false)
	torn.over()
	idle.send("three")
	idle.hear("three")
}

func TestProxyDropRequests(t *testing.T) {
	e := newEcho(t)
	p := Proxy(t, e.addr)
	torn, idle := call(t, p.Addr), call(t, p.Addr)
	idle.send("one")
	idle.hear("one")
	p.DropRequests(true)
	torn.send("two")
	eventually(t, "it is thrown away", func() bool { return p.Lost() > 0 })
	torn.silent()
	p.Heal()
	torn.over()
	idle.send("three")
	idle.hear("three")
	if n := e.lines.Load(); n != 2 {
		t.Errorf("the server got %d lines, want 2", n)
	}
}

func TestProxyWithoutServer(t *testing.T) {
	p, err := reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer p.release()
	conn, err := net.Dial("tcp", Proxy(t, p.addr()).Addr)
	if err != nil {
		return // it was reset before Dial returned
	}
	defer conn.Close()
	(&caller{t, conn, bufio.NewReader(conn)}).over()
}

func TestProxyPassesOnTheEnd(t *testing.T) {
	e := newEcho(t)
	p := Proxy(t, e.addr)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	last := Proxy(t, listener.Addr().String())
	c := call(t, last.Addr)
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(server, "last words")
	server.Close()
	c.hear("last words")
	if _, err := c.in.ReadByte(); err != io.EOF {
		t.Errorf("got %v, want the end of the connection", err)
	}
	p.Close()
}

// TestProxyFromManyGoroutines is for the race detector and for Close, which must not hang.
func TestProxyFromManyGoroutines(t *testing.T) {
	e := newEcho(t)
	p := Proxy(t, e.addr)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for range 20 {
				conn, err := net.Dial("tcp", p.Addr)
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(20 * time.Millisecond)) // it may have been reset
				fmt.Fprintln(conn, "line")
				_, _ = bufio.NewReader(conn).ReadString('\n')
				conn.Close()
			}
		})
		running.Go(func() {
			for n := range 30 {
				[]func(){
					p.Cut, p.Refuse, p.Heal, p.Reset, func() { p.Delay(time.Millisecond) }, func() { p.SwallowReplies(n%2 == 0) },
					func() { p.DropRequests(n%2 == 1) }, p.Heal,
				}[(i+n)%8]()
				time.Sleep(time.Millisecond)
			}
		})
	}
	running.Wait()
	p.Heal()
	c := call(t, p.Addr)
	c.send("after all")
	c.hear("after all")
	p.Cut() // and closed with connections that hang
	for range 50 {
		call(t, p.Addr).send("lost")
	}
	all := make([]byte, 4<<20)
	p.Close()
	if all = all[:runtime.Stack(all, true)]; bytes.Contains(all, []byte("servers.(*Network)")) {
		t.Errorf("Close did not wait for the goroutines:\n%s", all)
	}
	p.Close()
	p.Heal()
	if conn, err := net.Dial("tcp", p.Addr); err == nil {
		conn.Close()
		t.Error("a closed proxy accepted a connection")
	}
}
