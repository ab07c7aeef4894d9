package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// doorRest is how long after a watcher the next one is let in.
const doorRest = 4 * time.Millisecond

// comes sends a request for the board on a connection of its own, and counts it in come once that is let in.
func (p *pipes) comes(come *atomic.Int64) (conn net.Conn) {
	p.t.Helper()
	ours, theirs := net.Pipe()
	p.conns <- theirs
	p.t.Cleanup(func() { _ = ours.Close() })
	go func() {
		if _, err := fmt.Fprint(ours, "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return
		}
		in := bufio.NewReader(ours)
		if resp, err := http.ReadResponse(in, nil); err == nil && resp.StatusCode == http.StatusOK { //nolint:bodyclose // it ends with the connection
			come.Add(1)
			for err == nil {
				_, err = in.Discard(1)
			}
		}
	}()
	return ours
}

// A crowd of watchers that comes at once is let in one by one. An acquisition behind it, on a connection of its own, waits for nobody.
// Watchers that have gone before their turn keep nobody waiting.
func TestFinding_V1_ACrowdIsLetInOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, gone = 1000, 300
		p := newPipes(t, 0)
		time.Sleep(time.Second)
		begun := time.Now()
		var come, drop atomic.Int64
		var dropped []net.Conn
		for range gone {
			dropped = append(dropped, p.comes(&drop))
		}
		synctest.Wait()
		if n := drop.Load(); n != 1 {
			t.Errorf("%d watchers were let in at once, want 1", n)
		}
		for range crowd {
			p.comes(&come)
		}
		if status, _ := p.ask("POST", "/v1/leases/job", ""); status != http.StatusCreated || time.Since(begun) != 0 {
			t.Errorf("an acquisition behind the crowd: %d after %v", status, time.Since(begun))
		}
		for _, c := range dropped {
			_ = c.Close()
		}
		for _, in := range []int64{crowd / 2, crowd} {
			time.Sleep(time.Until(begun.Add(time.Duration(in)*doorRest + doorRest/2)))
			synctest.Wait()
			if n := come.Load(); n != in {
				t.Errorf("%d of the crowd were let in within %v, want %d: those before them had gone", n, time.Duration(in)*doorRest, in)
			}
		}
	})
}

// However many come at once, each is let in within 5 s, and still one by one.
func TestFinding_V1_NobodyIsLeftAtTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 6000
		p := newPipes(t, 0)
		var come atomic.Int64
		for range crowd {
			p.comes(&come)
		}
		var last, most int64
		for range 499 {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			n := come.Load()
			last, most = n, max(most, n-last)
		}
		if fair := int64(crowd / 500); most > 3*fair {
			t.Errorf("up to %d were let in within 10 ms, want about %d", most, fair)
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		if n := come.Load(); n != crowd {
			t.Errorf("%d watchers were let in within 5 s, want all %d", n, crowd)
		}
	})
}

// A server that closes answers those that have not been let in yet.
func TestFinding_V1_WhoIsNotLetInIsAnsweredAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes(t, 0)
		time.Sleep(time.Second)
		var come atomic.Int64
		for range 100 {
			p.comes(&come)
		}
		synctest.Wait()
		status := make(chan int, 1)
		go func() {
			s, _ := p.ask("GET", "/v1/watch", "")
			status <- s
		}()
		synctest.Wait()
		begun := time.Now()
		_ = p.srv.Close()
		if s := <-status; s != http.StatusServiceUnavailable || time.Since(begun) != 0 {
			t.Errorf("it was answered with %d after %v", s, time.Since(begun))
		}
	})
}
