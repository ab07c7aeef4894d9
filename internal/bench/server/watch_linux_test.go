package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// watchHelper says that this process is a crowd of watchers, of which server and how many.
const watchHelper = "LEASEHOLD_BENCH_WATCH"

// The crowd of TestWatchers, beside the watchers.
const (
	namesWatched     = 10_000
	scrapersOfServer = 20
	watchesDropped   = 300
	workersBeside    = 8
	pairsBeside      = 1600 // of each part
)

// TestWatchers measures acquisitions and renewals with and without a crowd that watches 10,000 leases: 1,000 watchers that come at once, and
// again, 20 who read /metrics all the time, and 300 watches that are opened and dropped. With them the p99 is to be below twice what it is
// without.
func TestWatchers(t *testing.T) {
	text := os.Getenv("LEASEHOLD_WATCHERS")
	if text == "" {
		t.Skip("it needs a machine to itself: LEASEHOLD_WATCHERS=1000 has that many watch")
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("LEASEHOLD_WATCHERS=%s: %v", text, err)
	}
	allowFiles(t, uint64(n+scrapersOfServer+watchesDropped)+1000)
	s := serve(t, t.TempDir(), "127.0.0.1:0", "--max-waiting", "100000")
	fill(t, s.addr)
	measure(t, s.addr, "warm") // the first figures are those of an empty log
	without := measure(t, s.addr, "without")
	crowd := gatherWatchers(t, s.addr, n)
	if err := crowd.connected(); err != nil {
		t.Fatal(err)
	}
	calm := measure(t, s.addr, "watched")
	crowd.again()
	with := measure(t, s.addr, "with")
	told, err := crowd.whenTold()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d watchers of %d names came back at once, beside %d scrapers and %d watches that were dropped: all had been told everything after %v",
		n, namesWatched, scrapersOfServer, watchesDropped, told.Round(time.Millisecond))
	for _, op := range []string{"acquire", "renew"} {
		t.Logf("%s: p99 without them %v, with them there %v, while they come back %v (%.2f times)",
			op, without[op], calm[op], with[op], float64(with[op])/float64(without[op]))
		if with[op] > 2*without[op] {
			t.Errorf("the p99 of %s rises to more than twice", op)
		}
	}
}

// fill has a client hold the names that are watched.
func fill(t *testing.T, addr string) {
	t.Helper()
	eachOf(t, addr, workersBeside, func(w *wire, i int) error {
		for k := i; k < namesWatched; k += workersBeside {
			if _, err := w.ask("POST", fmt.Sprintf("/v1/leases/watched-%05d", k), "", `{"holder": "worker", "ttl": 86400, "info": {"host": "node-17", "op": "nightly"}}`); err != nil {
				return err
			}
		}
		return nil
	})
}

func eachOf(t *testing.T, addr string, n int, do func(w *wire, i int) error) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			w, err := dial(t.Context(), addr)
			if err == nil {
				defer w.close()
				err = do(w, i)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// measure has some acquire, renew and release names of their own, and returns the p99 of an acquisition and a renewal.
func measure(t *testing.T, addr, part string) map[string]time.Duration {
	t.Helper()
	var mu sync.Mutex
	took := map[string][]time.Duration{}
	eachOf(t, addr, workersBeside, func(w *wire, i int) error {
		own := map[string][]time.Duration{}
		path := fmt.Sprintf("/v1/leases/%s-%d", part, i)
		for range pairsBeside / workersBeside {
			begun := time.Now()
			g, err := w.ask("POST", path, "", `{"ttl": 60}`)
			if err != nil {
				return err
			}
			own["acquire"] = append(own["acquire"], time.Since(begun))
			header := "Leasehold-Sequencer: " + g.sequencer + "\r\nLeasehold-Secret: " + g.secret + "\r\n"
			begun = time.Now()
			if _, err := w.ask("PUT", path, header, ""); err != nil {
				return err
			}
			own["renew"] = append(own["renew"], time.Since(begun))
			if _, err := w.ask("DELETE", path, header, ""); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond) // a service isn't asked without a pause
		}
		mu.Lock()
		defer mu.Unlock()
		for op, all := range own {
			took[op] = append(took[op], all...)
		}
		return nil
	})
	p99 := map[string]time.Duration{}
	for op, all := range took {
		slices.Sort(all)
		p99[op] = all[len(all)*99/100].Round(10 * time.Microsecond)
		t.Logf("%s, %s: p50 %v, p99 %v, most %v", part, op, all[len(all)/2].Round(10*time.Microsecond), p99[op], all[len(all)-1].Round(10*time.Microsecond))
	}
	return p99
}

// watchers are a process of those who watch.
type watchers struct {
	in  io.Writer
	out *bufio.Reader
}

func gatherWatchers(t *testing.T, addr string, n int) *watchers {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	people := exec.CommandContext(context.Background(), self)
	people.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", watchHelper, addr, n))
	people.Stderr = os.Stderr
	people.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := people.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := people.StdoutPipe()
	if err == nil {
		err = people.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = people.Wait()
	})
	return &watchers{in, bufio.NewReader(out)}
}

func (w *watchers) connected() error {
	_, err := w.out.ReadString('\n')
	return err
}

// again has all of them come back at once.
func (w *watchers) again() { _, _ = fmt.Fprintln(w.in, "again") }

// whenTold returns how long it took until all had been told everything.
func (w *watchers) whenTold() (time.Duration, error) {
	line, err := w.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(line[:len(line)-1])
}

// watchersOf is the process of those who watch. It ends when its standard input does.
func watchersOf(what string) error {
	var addr string
	var many int
	if _, err := fmt.Sscan(what, &addr, &many); err != nil {
		return err
	}
	all, err := watchAll(addr, many)
	if err != nil {
		return err
	}
	all.told.Wait()
	fmt.Println("connected")
	orders := bufio.NewReader(os.Stdin)
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	all.close()
	begun := time.Now()
	if all, err = watchAll(addr, many); err != nil {
		return err
	}
	dropped, err := watchAll(addr, watchesDropped)
	if err != nil {
		return err
	}
	dropped.close()
	for range scrapersOfServer {
		go scrape(addr)
	}
	all.told.Wait()
	fmt.Println(time.Since(begun))
	_, err = io.Copy(io.Discard, orders)
	all.close()
	return err
}

// scrape reads /metrics until the process ends.
func scrape(addr string) {
	w, err := dial(context.Background(), addr)
	for err == nil {
		_, err = w.ask("GET", "/metrics", "", "")
		time.Sleep(time.Second)
	}
	fmt.Fprintln(os.Stderr, "a scraper:", err)
}

// watching are connections that watch.
type watching struct {
	conns []net.Conn
	told  sync.WaitGroup // all have been told everything
	over  atomic.Bool
}

func (w *watching) close() {
	w.over.Store(true)
	for _, c := range w.conns {
		_ = c.Close()
	}
}

func watchAll(addr string, many int) (*watching, error) {
	all := &watching{}
	for range many {
		conn, err := net.Dial("tcp", addr) //nolint:noctx // the server is there
		if err != nil {
			return nil, err
		}
		all.conns = append(all.conns, conn)
		if _, err := fmt.Fprint(conn, "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return nil, err
		}
		all.told.Add(1)
		go all.read(conn)
	}
	return all, nil
}

// read reads a stream until it ends. The first beat ends everything that is told first.
func (w *watching) read(conn net.Conn) {
	first := sync.OnceFunc(w.told.Done)
	defer first()
	buf, last := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			if !w.over.Load() {
				fmt.Fprintln(os.Stderr, "a watcher was cut off:", err)
			}
			return
		}
		if bytes.Contains(append(last, buf[:n]...), []byte("event: beat")) {
			first()
		}
		last = append(last[:0], buf[max(0, n-16):n]...)
	}
}
