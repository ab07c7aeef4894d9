package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// caller is a client of a server on a file, behind a network that can fail.
type caller struct {
	*client.Client
	direct  *client.Client // which sees what the network hides
	network *servers.Network
}

func (s *served) caller() caller {
	s.place.t.Helper()
	network := servers.Proxy(s.place.t, strings.TrimPrefix(s.url, "http://"))
	c := caller{network: network}
	for to, url := range map[**client.Client]string{&c.Client: "http://" + network.Addr, &c.direct: s.url} {
		var err error
		if *to, err = client.New(url, client.Options{}); err != nil {
			s.place.t.Fatal(err)
		}
		s.place.t.Cleanup(func() { _ = (*to).Close() })
	}
	return c
}

// until blocks until the name is as ok says, as the server sees it.
func (c caller) until(t testing.TB, what, name string, ok func(client.Lease) bool) (l client.Lease) {
	t.Helper()
	eventually(t, what, func() bool {
		var err error
		l, err = c.direct.Get(t.Context(), name)
		return err == nil && ok(l)
	})
	return l
}

// An answer that is lost is asked for again, and what was done is not done twice.
func TestCallsWhoseAnswersAreLost(t *testing.T) {
	p := newPlace(t)
	c := p.serve().caller()
	var g client.Grant
	call := func(what string, f func() error, done func(client.Lease) bool) client.Lease {
		t.Helper()
		c.network.SwallowReplies(true)
		returned := make(chan error, 1)
		go func() { returned <- f() }()
		l := c.until(t, what+" is done", "job", done)
		c.network.SwallowReplies(false)
		if err := <-returned; err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return l
	}
	l := call("acquire", func() (err error) {
		g, err = c.Acquire(t.Context(), "job", client.AcquireOptions{TTL: time.Minute})
		return err
	}, func(l client.Lease) bool { return l.State == client.Held })
	if g.Token != l.Token || g.Holder != l.Holder {
		t.Errorf("granted %+v, and the first try %+v", g, l)
	}
	call("renew", func() (err error) {
		g, err = c.Renew(t.Context(), g, time.Hour)
		return err
	}, func(l client.Lease) bool { return l.TTL == time.Hour })
	call("break", func() (err error) {
		_, err = c.Break(t.Context(), "job", client.Eviction{Token: g.Token})
		return err
	}, func(l client.Lease) bool { return l.State == client.Broken })
	call("release", func() error { return c.Release(t.Context(), g) }, func(l client.Lease) bool { return l.State == client.Free })
	call("pause", func() (err error) {
		_, err = c.Pause(t.Context(), "job", client.PauseOptions{Reason: "a drill"})
		return err
	}, func(l client.Lease) bool { return l.Pause != nil })
	call("resume", func() (err error) {
		l, err = c.Resume(t.Context(), "job", "")
		return err
	}, func(l client.Lease) bool { return l.Pause == nil })
	if l.Name != "job" || l.Pause != nil {
		t.Errorf("resumed: %+v", l)
	}
	ses, err := c.OpenSession(t.Context(), client.SessionOptions{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	l = call("acquire with a session", func() (err error) {
		g, err = c.Acquire(t.Context(), "job", client.AcquireOptions{Session: ses})
		return err
	}, func(l client.Lease) bool { return l.State == client.Held })
	if g.Token != l.Token || g.Holder != ses.Holder {
		t.Errorf("granted %+v, and the first try %+v", g, l)
	}
	call("close the session", func() error { return c.CloseSession(t.Context(), ses) },
		func(client.Lease) bool { _, err := c.direct.RenewSession(t.Context(), ses, 0); return err != nil })
	if terms, err := c.History(t.Context(), "job"); err != nil || len(terms) != 2 {
		t.Errorf("%d terms, want two: %+v, %v", len(terms), terms, err)
	}
}

// A call that is given up without an answer says whether it may have been done.
func TestCallsThatAreGivenUp(t *testing.T) {
	p := newPlace(t)
	c := p.serve().caller()
	ctx, cancel := context.WithCancel(t.Context())
	c.network.SwallowReplies(true)
	returned := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, "job", client.AcquireOptions{})
		returned <- err
	}()
	c.until(t, "it is held", "job", func(l client.Lease) bool { return l.State == client.Held })
	cancel()
	if err := <-returned; !errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
		t.Errorf("sent, and not answered: %v", err)
	}
	c.network.SwallowReplies(false)
	c.network.Refuse()
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := c.Acquire(ctx, "other", client.AcquireOptions{}); err == nil || errors.Is(err, store.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing was sent: %v", err)
	}
}

// workplace is where callers work that hold a name, one at a time.
type workplace struct {
	t    testing.TB
	mu   sync.Mutex
	now  client.Grant // who works
	last fence.Token  // the highest there was
	seen map[fence.Token]bool
}

// enter begins a piece of work under a grant. One who was held up until its grant was over may come after the next.
func (w *workplace) enter(g client.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now.Left() > 0 && g.Left() > 0 {
		w.t.Errorf("token %d is granted, and token %d is valid for %v", g.Token, w.now.Token, w.now.Left())
	}
	if left := g.Left(); g.Token < w.last && left > 0 {
		w.t.Errorf("token %d is valid for %v, and %d was granted", g.Token, left, w.last)
	}
	if w.seen[g.Token] {
		w.t.Errorf("token %d is granted twice", g.Token)
	}
	w.seen[g.Token] = true
	if g.Token > w.last {
		w.now, w.last = g, g.Token
	}
}

// enough reports whether enough work has been done.
func (w *workplace) enough() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen) >= 75
}

// leave ends it.
func (w *workplace) leave(g client.Grant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now.Token == g.Token {
		w.now = client.Grant{}
	}
}

// Callers that want one name, a network that does what networks do, and a server that is killed: no two have a valid grant at a time,
// and no token comes twice.
func TestCallsOverABadNetwork(t *testing.T) {
	p := newPlace(t)
	addr := servers.FreeAddr(t) // which nobody else gets while nobody listens there
	s := p.serveAt(addr)
	c := s.caller()
	w := &workplace{t: t, seen: map[fence.Token]bool{}}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for !w.enough() {
				c.work(t, w)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		workers.Wait()
	}()
	faults := []func(){
		c.network.Reset,
		func() { c.network.SwallowReplies(true) },
		func() { c.network.DropRequests(true) },
		func() { c.network.Cut() },
		func() { c.network.Delay(30 * time.Millisecond) },
		c.network.Refuse,
	}
	for i := 0; ; i++ {
		select {
		case <-over:
			c.network.Heal()
			return
		case <-time.After(time.Duration(rand.IntN(200)) * time.Millisecond):
		}
		faults[i%len(faults)]()
		_ = clock.Sleep(t.Context(), clock.System(), time.Duration(rand.IntN(100))*time.Millisecond)
		if i == 3 { // its successor has the same address
			s.signal(syscall.SIGKILL)
			s.code()
			p.start("serve", "--listen", addr)
		}
		c.network.Heal()
	}
}

// work takes the name, works for a moment, and lets it go.
func (c caller) work(t testing.TB, w *workplace) {
	g, err := c.Acquire(t.Context(), "job", client.AcquireOptions{TTL: time.Second, Wait: 20 * time.Second})
	if err != nil {
		var held *lease.HeldError
		if !errors.Is(err, store.ErrUnknownOutcome) && !errors.Is(err, fence.ErrStale) && !errors.As(err, &held) {
			t.Errorf("acquire: %v", err)
		}
		return
	}
	w.enter(g)
	_ = clock.Sleep(t.Context(), clock.System(), 5*time.Millisecond)
	if next, err := c.Renew(t.Context(), g, 0); err == nil {
		w.mu.Lock()
		if w.now.Token == g.Token {
			w.now = next
		}
		w.mu.Unlock()
	} else if !errors.Is(err, store.ErrUnknownOutcome) && !errors.Is(err, fence.ErrStale) {
		t.Errorf("renew: %v", err)
	}
	w.leave(g)
	if err := c.Release(t.Context(), g); err != nil && !errors.Is(err, store.ErrUnknownOutcome) && !errors.Is(err, fence.ErrStale) {
		t.Errorf("release: %v", err)
	}
}
