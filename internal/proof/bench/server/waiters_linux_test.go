package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// crowd is how many wait at a time; LEASEHOLD_WAITERS says otherwise.
const crowd = 2000

// mostMemory is what 50,000 of them may take, resident; garbage is what of it a server lets lie, whoever waits.
const (
	mostMemory = 2 << 30
	garbage    = 32 << 20
)

// mostFor returns how much n may take that wait at so many servers, which took before without them.
func mostFor(servers, n int, before int64) int64 {
	return before + int64(servers)*garbage + int64(n)*(mostMemory-256<<20)/50_000
}

// TestWaiters has a crowd of connections wait, and looks at what that costs the server, whether those of one queue are served in
// order, whether waits end when they should, and how long a waiter who has gone stays in the queue.
func TestWaiters(t *testing.T) {
	n := crowd
	if text := os.Getenv("LEASEHOLD_WAITERS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("LEASEHOLD_WAITERS=%s: %v", text, err)
		}
	}
	allowFiles(t, uint64(n)+1000)
	s := serve(t, t.TempDir(), "127.0.0.1:0")
	c := &audience{t: t, s: s, client: newClient(4)}
	t.Run("memory", func(t *testing.T) { c.fill(t, n) })
	t.Run("order", func(t *testing.T) { c.order(t, n) })
	t.Run("deadline", func(t *testing.T) {
		stalltest.Run(t, func(t testing.TB) { c.deadlines(t, n) })
	})
	t.Run("gone", func(t *testing.T) {
		stalltest.Run(t, func(t testing.TB) { c.gone(t, n) })
	})
}

// allowFiles raises the number of files that this process and its children may have open.
func allowFiles(t *testing.T, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur, limit.Max = max(limit.Cur, n), max(limit.Max, n)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatalf("%d open files: %v: raise the hard limit, or have fewer wait: LEASEHOLD_WAITERS", n, err)
	}
}

// audience is all who wait.
type audience struct {
	t      *testing.T
	s      *served
	client *http.Client
	crowd  []*seat
	names  int // that were made up
}

// name returns one of its own for each attempt at a test.
func (c *audience) name(what string) string {
	c.names++
	return fmt.Sprintf("%s-%d", what, c.names)
}

// seat is one who waits, on a connection of its own.
type seat struct {
	conn                     net.Conn
	status                   int
	token, sequencer, secret string
	sent, done               time.Time
}

// take sends a request that waits. The connections come from several addresses, since one has not ports enough.
func (c *audience) take(t testing.TB, i int, name string, wait time.Duration) *seat {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i/10_000))}, Timeout: time.Minute}
	conn, err := d.DialContext(t.Context(), "tcp", c.s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := &seat{conn: conn, sent: time.Now()}
	body := fmt.Sprintf(`{"holder": "%d", "ttl": 3600, "wait": %v}`, i, wait.Seconds())
	if _, err := fmt.Fprintf(conn, "POST /v1/leases/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", name, len(body), body); err != nil {
		t.Fatal(err)
	}
	return p
}

// answer reads the answer.
func (p *seat) answer() error {
	resp, err := http.ReadResponse(bufio.NewReaderSize(p.conn, 512), nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	p.done, p.status = time.Now(), resp.StatusCode
	p.token, p.sequencer = resp.Header.Get("Leasehold-Token"), resp.Header.Get("Leasehold-Sequencer")
	p.secret = resp.Header.Get("Leasehold-Secret")
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// release releases what was granted to p, on its connection, and returns when it began to.
func (p *seat) release(name string) (time.Time, error) {
	begun := time.Now()
	if _, err := fmt.Fprintf(p.conn, "DELETE /v1/leases/%s HTTP/1.1\r\nHost: localhost\r\nLeasehold-Sequencer: %s\r\nLeasehold-Secret: %s\r\n\r\n", name, p.sequencer, p.secret); err != nil {
		return begun, err
	}
	err := p.answer()
	if err == nil && p.status != http.StatusNoContent {
		err = fmt.Errorf("status %d", p.status)
	}
	return begun, err
}

// waiting returns how many wait for any name.
func (c *audience) waiting() int { return c.figure("/metrics", "\nleasehold_waiters ") }

// queued returns how many wait for a name.
func (c *audience) queued(name string) int { return c.figure("/v1/leases/"+name, `"waiters":`) }

// figure reads the number behind a word.
func (c *audience) figure(path, word string) int {
	resp, err := c.client.Get(c.s.url() + path) //nolint:noctx // the server is there
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	_, number, _ := strings.Cut(string(text), word)
	var n int
	if _, err := fmt.Sscan(number, &n); err != nil {
		c.t.Fatalf("%s: no %s: %s", path, word, text)
	}
	return n
}

// hold takes a name that others are to wait for.
func (c *audience) hold(t testing.TB, name string) *seat {
	t.Helper()
	p := c.take(t, 0, name, 0)
	if err := p.answer(); err != nil || p.status != http.StatusCreated {
		t.Fatalf("%s: %d %v", name, p.status, err)
	}
	return p
}

const namesOfCrowd = 100

// crowdName is the name that the i-th of the crowd of a server waits for.
func crowdName(site, i int) string { return fmt.Sprintf("crowd-%d-%d", site, i%namesOfCrowd) }

// fill has n wait, in the queues of 100 names, and compares the memory of the server before and after.
func (c *audience) fill(t *testing.T, n int) {
	for i := range min(n, namesOfCrowd) {
		c.hold(c.t, crowdName(0, i))
	}
	before := c.s.memory(t, "VmRSS")
	begun := time.Now()
	for i := range n {
		c.crowd = append(c.crowd, c.take(c.t, i, crowdName(0, i), time.Hour))
	}
	eventually(t, "all wait", time.Minute, func() bool { return c.waiting() == n })
	took := time.Since(begun)
	time.Sleep(2 * time.Second) // what was needed to get in line is given back, or not
	after := c.s.memory(t, "VmRSS")
	t.Logf("%d waiters in %v: %d MiB resident, %d at most; %d KiB a waiter", n, took.Round(time.Millisecond), after>>20,
		c.s.memory(t, "VmHWM")>>20, (after-before)/int64(n)>>10)
	if most := mostFor(1, n, before); after > most {
		t.Errorf("%d MiB for %d waiters: want at most %d", after>>20, n, most>>20)
	}
}

// order has some wait in one queue, and each release when it has been granted the name.
func (c *audience) order(t *testing.T, n int) {
	const many = 200
	holder := c.hold(t, "order")
	var queue []*seat
	for i := range many {
		queue = append(queue, c.take(t, i, "order", time.Hour))
		eventually(t, "it waits", 10*time.Second, func() bool { return c.queued("order") == i+1 })
	}
	var took []time.Duration
	for i, p := range queue {
		before := holder.token
		begun, err := holder.release("order")
		if err != nil {
			t.Fatal(err)
		}
		_ = p.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if err := p.answer(); err != nil || p.status != http.StatusCreated {
			t.Fatalf("number %d was not the next: %d %v", i, p.status, err)
		}
		if p.token <= before { // of as many digits
			t.Errorf("token %s after %s", p.token, before)
		}
		took = append(took, p.done.Sub(begun))
		holder = p
	}
	slices.Sort(took)
	t.Logf("hand-over among %d waiters: p50 %v, p99 %v", n, took[many/2], took[many*99/100])
}

// deadlines has some wait for times that end, and sees when they are told.
func (c *audience) deadlines(t testing.TB, n int) {
	const many = 200
	name := c.name("deadline")
	c.hold(t, name)
	late := make([]time.Duration, many)
	var group sync.WaitGroup
	for i := range many {
		wait := 2*time.Second + time.Duration(i)*5*time.Millisecond
		p := c.take(t, i, name, wait)
		group.Go(func() {
			if err := p.answer(); err != nil || p.status != http.StatusConflict {
				t.Errorf("%d %v", p.status, err)
			}
			late[i] = p.done.Sub(p.sent.Add(wait))
		})
	}
	group.Wait()
	slices.Sort(late)
	t.Logf("end of a wait among %d waiters: at the earliest %v after its time, p50 %v, p99 %v", n, late[0], late[many/2], late[many*99/100])
	if late[0] < 0 || late[many/2] > 500*time.Millisecond {
		t.Error("waits don't end when they should")
	}
}

// gone has half of the crowd go, and sees how long the server thinks that they wait.
func (c *audience) gone(t testing.TB, n int) {
	for i := len(c.crowd); i < n; i++ { // after an attempt that says nothing
		c.crowd = append(c.crowd, c.take(c.t, i, crowdName(0, i), time.Hour))
	}
	eventually(t, "all wait", time.Minute, func() bool { return c.waiting() == n })
	for _, p := range c.crowd[:n/2] {
		_ = p.conn.Close()
	}
	c.crowd = c.crowd[n/2:]
	took := eventually(t, "they are dropped", 30*time.Second, func() bool { return c.waiting() == n-n/2 })
	t.Logf("%d of %d waiters close their connections: dropped within %v", n/2, n, took.Round(time.Millisecond))
	if n <= crowd && took > time.Second { // to notice tens of thousands at a time takes what it takes
		t.Errorf("dropped after %v: want 1s", took)
	}
}
