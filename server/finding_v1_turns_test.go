package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// pipes is a server in virtual time, whose connections are pipes: what is sent is taken when it is read.
type pipes struct {
	t     *testing.T
	st    *memory.Store
	srv   *server.Server
	conns chan net.Conn
	done  chan struct{}
}

func newPipes(t *testing.T, names int) *pipes {
	t.Helper()
	clk := clocktest.New(0)
	p := &pipes{t: t, st: memory.New(memory.Options{Clock: clk}), conns: make(chan net.Conn), done: make(chan struct{})}
	for i := range names {
		p.put(i, "")
	}
	srv, err := server.New(p.st, server.Options{Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	p.srv = srv
	hs := &http.Server{Handler: srv} //nolint:gosec // nobody else is there
	served := make(chan error, 1)
	go func() { served <- hs.Serve(p) }()
	t.Cleanup(func() {
		_ = srv.Close()
		_ = hs.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		_ = p.st.Close()
	})
	return p
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) Close() error   { close(p.done); return nil }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// put writes a name: version is that of its record, "" for none.
func (p *pipes) put(i int, version string) string {
	p.t.Helper()
	rec, err := p.st.Put(p.t.Context(), store.Record{
		Key: fmt.Sprintf("name-%05d", i), Owner: "worker/abc", Token: 1, TTL: time.Hour, Acquired: time.Unix(1, 0),
		Info: map[string]string{"host": "a"}, Version: version, Nonce: "n" + version,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return rec.Version
}

// ask sends a request on a connection of its own, and returns the status and what is to be read: no more than the header has been.
func (p *pipes) ask(method, path, lastEvent string) (status int, body io.Reader) {
	p.t.Helper()
	ours, theirs := net.Pipe()
	p.conns <- theirs
	p.t.Cleanup(func() { _ = ours.Close() })
	header := ""
	if lastEvent != "" {
		header = "Last-Event-ID: " + lastEvent + "\r\n"
	}
	if _, err := fmt.Fprintf(ours, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path, header); err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(ours), nil) //nolint:bodyclose // it ends with the connection
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, resp.Body
}

// watch asks for the board.
func (p *pipes) watch(lastEvent string) io.Reader {
	p.t.Helper()
	_, body := p.ask("GET", "/v1/watch", lastEvent)
	return body
}

// heard is what a watcher has been told.
type heard struct {
	kinds    map[string]int
	bytes    int
	silence  time.Duration // the longest
	comments int
	id       string
}

// hear reads a stream until the first beat, and calls at with each kind of event.
func hear(t *testing.T, r io.Reader, at func(kind string)) heard {
	t.Helper()
	h, last := heard{kinds: map[string]int{}}, time.Now()
	lines := bufio.NewScanner(r)
	for h.kinds["beat"] == 0 && lines.Scan() {
		h.bytes += len(lines.Bytes()) + 1
		h.silence, last = max(h.silence, time.Since(last)), time.Now()
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			h.kinds[value]++
			at(value)
		case "id":
			h.id = value
		case ":":
			h.comments++
		}
	}
	if err := lines.Err(); err != nil || h.kinds["beat"] == 0 {
		t.Errorf("the stream ended after %v: %v", h.kinds, err)
	}
	return h
}

// telling counts who is being told everything.
type telling struct {
	mu        sync.Mutex
	now, most int
}

func (c *telling) at(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case "reset":
		c.now++
		c.most = max(c.most, c.now)
	case "beat":
		c.now--
	}
}

// A crowd that comes at once is told everything one after the other, within the time that its bytes take. Who has to wait hears that the
// stream lives, and an acquisition waits for nobody.
func TestFinding_V1_ACrowdIsToldInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, crowd, bytesPerSecond = 10_000, 100, 32 << 20
		p := newPipes(t, names)
		var told telling
		var all sync.WaitGroup
		var mu sync.Mutex
		bytes, comments := 0, 0
		begun := time.Now()
		for range crowd {
			body := p.watch("")
			all.Go(func() {
				h := hear(t, body, told.at)
				if h.kinds["lease"] < names || h.kinds["reset"] != 1 || h.silence > 5500*time.Millisecond {
					t.Errorf("a watcher heard %v, and nothing for %v", h.kinds, h.silence)
				}
				mu.Lock()
				bytes, comments = bytes+h.bytes, comments+h.comments
				mu.Unlock()
			})
		}
		time.Sleep(time.Second)
		at := time.Now()
		if status, _ := p.ask("POST", "/v1/leases/job", ""); status != http.StatusCreated || time.Since(at) > 0 {
			t.Errorf("an acquisition: %d after %v", status, time.Since(at))
		}
		all.Wait()
		took, least := time.Since(begun), time.Duration(float64(bytes)/bytesPerSecond*float64(time.Second))
		if took > least*11/10+time.Second {
			t.Errorf("%d watchers were told %d bytes in %v, want about %v", crowd, bytes, took, least)
		}
		if told.most != 1 {
			t.Errorf("%d were told everything at a time, want one after the other", told.most)
		}
		if comments == 0 {
			t.Errorf("nobody who waited for %v heard anything", took)
		}
	})
}

// Who reads nothing loses its turn, has another one when it reads again, and keeps nobody from theirs.
func TestFinding_V1_WhoReadsNothingLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, mute, crowd = 2_000, 10, 10
		p := newPipes(t, names)
		var slow []io.Reader
		for range mute {
			slow = append(slow, p.watch(""))
		}
		time.Sleep(100 * time.Millisecond)
		var told telling
		var all sync.WaitGroup
		begun := time.Now()
		for range crowd {
			body := p.watch("")
			all.Go(func() { hear(t, body, told.at) })
		}
		all.Wait()
		if took := time.Since(begun); took > time.Second || told.most != 1 {
			t.Errorf("beside %d watchers that read nothing, %d others were told everything after %v, %d at a time", mute, crowd, took, told.most)
		}
		for _, body := range slow {
			all.Go(func() {
				if h := hear(t, body, told.at); h.kinds["lease"] != names {
					t.Errorf("one that reads late heard %v", h.kinds)
				}
			})
		}
		all.Wait()
	})
}

// Of changes that a watcher has missed it is told the last of each name, however many there were.
func TestFinding_V1_ManyChangesOfANameAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, rounds = 200, 25 // more changes than are remembered
		p := newPipes(t, 0)
		all := p.watch("")
		go func() { _, _ = io.Copy(io.Discard, all) }() // somebody has to watch, or the board rests
		first := hear(t, p.watch(""), func(string) {})
		versions := make([]string, names)
		for range rounds {
			for i := range names {
				versions[i] = p.put(i, versions[i])
			}
			time.Sleep(1100 * time.Millisecond)
		}
		h := hear(t, p.watch(first.id), func(string) {})
		if h.kinds["reset"] != 0 || h.kinds["lease"] != names {
			t.Errorf("after %d changes of %d names: %v", names*rounds, names, h.kinds)
		}
	})
}

// Whoever reads all names for nobody in particular, the board and the count for /metrics, rests now and then: 5 ms after each 256.
func TestFinding_V1_LooksRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, least = 2_600, 10 * 5 * time.Millisecond
		p := newPipes(t, names)
		begun := time.Now()
		hear(t, p.watch(""), func(string) {})
		if took := time.Since(begun); took < least || took > 4*least {
			t.Errorf("a look at %d names took %v, want %v and what it takes to tell them", names, took, least)
		}
		begun = time.Now()
		_, text := p.ask("GET", "/metrics", "")
		if _, err := io.Copy(io.Discard, text); err != nil || time.Since(begun) < least || time.Since(begun) > least+time.Millisecond {
			t.Errorf("a count of %d names took %v, want %v; %v", names, time.Since(begun), least, err)
		}
		begun = time.Now()
		if status, _ := p.ask("GET", "/v1/leases", ""); status != http.StatusOK || time.Since(begun) != 0 {
			t.Errorf("a list that is asked for: %d after %v", status, time.Since(begun))
		}
	})
}
