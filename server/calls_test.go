package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

func (s *site) client(t *testing.T, base string) *client.Client {
	t.Helper()
	c, err := client.New(base, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestCalls(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL+"/"), t.Context()
	sent := clock.System().Now()
	g, err := c.Acquire(ctx, "billing/eu", client.AcquireOptions{Holder: "ci-42", TTL: 30 * time.Second, Info: map[string]string{"op": "close"}})
	if err != nil {
		t.Fatal(err)
	}
	// The server takes off what has passed since the write, which is less than the call took.
	took := clock.System().Now().Sub(sent) + time.Millisecond
	if g.Name != "billing/eu" || g.State != client.Held || !strings.HasPrefix(g.Holder, "ci-42/") || g.Info["op"] != "close" || g.RenewEvery != 10*time.Second ||
		g.ValidUntil > sent.Add(24*time.Second+took) || g.ValidUntil < sent.Add(24*time.Second-took) || g.Left() <= 0 || g.Left() > 24*time.Second {
		t.Errorf("%+v", g)
	}
	var held *lease.HeldError
	if _, err := c.Acquire(ctx, "billing/eu", client.AcquireOptions{}); !errors.As(err, &held) || held.Holder != g.Holder || held.Token != g.Token {
		t.Errorf("%v", err)
	}
	if seq, err := fence.ParseSequencer(g.Sequencer); err != nil || seq.Token != g.Token || seq.Holder != g.Holder {
		t.Errorf("%+v, %v", seq, err)
	}
	if v, err := c.Verify(ctx, g.Sequencer); err != nil || !v.Current || v.Now != nil {
		t.Errorf("%+v, %v", v, err)
	}
	again, err := c.Renew(ctx, g, time.Minute)
	if err != nil || again.Token != g.Token || again.TTL != time.Minute || again.ValidUntil <= g.ValidUntil {
		t.Errorf("%+v, %v", again, err)
	}
	if l, err := c.Get(ctx, "billing/eu"); err != nil || l.Holder != g.Holder || l.ExpiresIn == nil || l.Acquired.IsZero() {
		t.Errorf("%+v, %v", l, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Release(gone, g); err != nil { // an end is worth telling whatever becomes of the caller
		t.Error(err)
	}
	if err := c.Release(ctx, g); !errors.Is(err, fence.ErrStale) {
		t.Errorf("released twice: %v", err)
	}
	if _, err := c.Renew(ctx, g, 0); !errors.Is(err, fence.ErrStale) {
		t.Errorf("renewed after its end: %v", err)
	}
	if v, err := c.Verify(ctx, g.Sequencer); err != nil || v.Current || v.Now == nil || v.Now.State != client.Free || v.Reason == "" {
		t.Errorf("%+v, %v", v, err)
	}
	terms, err := c.History(ctx, "billing/eu")
	if err != nil || len(terms) != 1 || terms[0].Holder != g.Holder || terms[0].Until.IsZero() || terms[0].Ended != "released" {
		t.Errorf("%+v, %v", terms, err)
	}
	var invalid *store.InvalidError
	if _, err := c.Acquire(ctx, "a", client.AcquireOptions{TTL: time.Microsecond}); !errors.As(err, &invalid) || invalid.Field != "ttl" {
		t.Errorf("%v", err)
	}
	if _, err := c.Get(ctx, ".a"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if l, err := c.Get(ctx, ".."); err == nil {
		t.Errorf("%+v", l)
	}
}

// A grant counts from before its request was sent, however long the answer was on its way.
func TestPitfall_T1_GrantOverHTTP(t *testing.T) {
	s := newSite(t, server.Options{})
	network := servers.Proxy(t, s.Listener.Addr().String())
	c := s.client(t, "http://"+network.Addr)
	ses, err := c.OpenSession(t.Context(), client.SessionOptions{TTL: time.Minute}) // over a connection that is open
	if err != nil {
		t.Fatal(err)
	}
	const delay = 500 * time.Millisecond
	network.Delay(delay)
	until := func(what string, call func() (clock.Instant, error)) {
		valid, err := call()
		answered := clock.System().Now() // whatever held the call up before it was sent, this is at least a delay after that
		if latest := answered.Add(48*time.Second - delay); err != nil || valid > latest {
			t.Errorf("%s: valid %v too long, %v", what, valid.Sub(latest), err)
		}
	}
	var g client.Grant
	until("acquire", func() (clock.Instant, error) {
		g, err = c.Acquire(t.Context(), "job", client.AcquireOptions{TTL: time.Minute})
		return g.ValidUntil, err
	})
	until("renew", func() (clock.Instant, error) {
		g, err = c.Renew(t.Context(), g, 0)
		return g.ValidUntil, err
	})
	until("renew a session", func() (clock.Instant, error) {
		ses, err = c.RenewSession(t.Context(), ses, 0)
		return ses.ValidUntil, err
	})
}

// Who has waited for longer than a grant is valid gets one that is, and those behind it are in order.
func TestCallsWait(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	first, err := c.Acquire(ctx, "job", client.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan client.Grant, 1)
	go func() {
		g, err := c.Acquire(ctx, "job", client.AcquireOptions{Holder: "second", TTL: 300 * time.Millisecond, Wait: time.Minute})
		if err != nil {
			t.Error(err)
		}
		got <- g
	}()
	s.waiting(t, "job", 1)
	waiters, err := c.Waiters(ctx, "job")
	if err != nil || len(waiters) != 1 || !strings.HasPrefix(waiters[0].Holder, "second/") || waiters[0].Left < 50*time.Second {
		t.Errorf("%+v, %v", waiters, err)
	}
	time.Sleep(300 * time.Millisecond) // its validity, counted from before it was sent, would be over
	released := clock.System().Now()
	if err := c.Release(ctx, first); err != nil {
		t.Fatal(err)
	}
	g := <-got
	if g.ValidUntil <= released || g.Waited < 300*time.Millisecond || g.Token <= first.Token {
		t.Errorf("%+v: valid until %v after the release", g, g.ValidUntil.Sub(released))
	}
}

// Whoever gives up waiting has no place in the queue any more.
func TestCallsGiveUp(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	s.acquired(t, "job", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	gaveUp := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, "job", client.AcquireOptions{Wait: time.Minute})
		gaveUp <- err
	}()
	s.waiting(t, "job", 1)
	why := errors.New("no use any more")
	cancel(why)
	if err := <-gaveUp; !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	s.waiting(t, "job", 0)
}

func TestCallsOfOperators(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	g, err := c.Acquire(ctx, "plain", client.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Break(ctx, "plain", client.Eviction{Token: g.Token, Note: "stuck"})
	if err != nil || l.State != client.Broken || !strings.HasSuffix(l.Note, ": stuck") {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := c.Renew(ctx, g, 0); !errors.Is(err, lease.ErrLost) {
		t.Errorf("%v", err)
	}
	if _, err := c.HandOver(ctx, "plain", client.Handover{}); !errors.Is(err, election.ErrNotElected) && !errors.Is(err, election.ErrNoLeader) {
		t.Errorf("%v", err)
	}
	if _, err := c.Resume(ctx, "job", ""); !errors.Is(err, election.ErrNotPaused) {
		t.Errorf("%v", err)
	}
	s.stand(t, "east")
	east := s.standing(t, func(l api.Lease) bool { return l.Holder != "" && len(l.Candidates) == 1 })
	if _, err := c.HandOver(ctx, "job", client.Handover{To: "west"}); !errors.Is(err, election.ErrNoCandidate) {
		t.Errorf("%v", err)
	}
	s.stand(t, "west")
	s.standing(t, func(l api.Lease) bool { return len(l.Candidates) == 2 })
	if _, err := c.HandOver(ctx, "job", client.Handover{To: "west", Token: 1}); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v", err)
	}
	l, err = c.HandOver(ctx, "job", client.Handover{To: "west", Token: east.Token, Wait: time.Minute})
	if err != nil || !strings.HasPrefix(l.Holder, "west/") || len(l.Candidates) != 2 || l.Candidates[0].Name != "east" ||
		l.Candidates[0].Leads || !l.Candidates[1].Leads {
		t.Errorf("%+v, %v", l, err)
	}
	l, err = c.Pause(ctx, "job", client.PauseOptions{Reason: "a move", Wait: time.Minute})
	if err != nil || l.Holder != "" || l.Pause == nil || l.Pause.Reason != "a move" {
		t.Errorf("%+v, %v", l, err)
	}
	l, err = c.Pause(ctx, "job", client.PauseOptions{Reason: "a drill", For: time.Hour})
	if err != nil || l.Pause == nil || l.Pause.Reason != "a move" || len(l.Pauses) != 2 || l.Pauses[1].Until.Sub(l.Pauses[1].Since) != time.Hour {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err = c.Pause(ctx, "job", client.PauseOptions{Reason: "a drill", For: time.Millisecond}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if _, err := c.Resume(ctx, "job", ""); !errors.Is(err, election.ErrPauses) {
		t.Error(err)
	}
	if l, err = c.Resume(ctx, "job", election.AllPauses); err != nil || l.Pause != nil || l.Name != "job" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestCallsOfSessions(t *testing.T) {
	s := newSite(t, server.Options{})
	c, ctx := s.client(t, s.URL), t.Context()
	ses, err := c.OpenSession(ctx, client.SessionOptions{Holder: "worker", TTL: time.Minute})
	if err != nil || ses.Left() <= 0 || ses.RenewEvery != 20*time.Second {
		t.Fatalf("%+v, %v", ses, err)
	}
	g, err := c.Acquire(ctx, "shard-1", client.AcquireOptions{Session: ses})
	if err != nil || g.ValidUntil != clock.NoDeadline || g.Holder != ses.Holder || g.RenewEvery != 0 {
		t.Errorf("%+v, %v", g, err)
	}
	if _, err := c.Break(ctx, "shard-1", client.Eviction{Token: g.Token}); err != nil {
		t.Error(err)
	}
	// Twice the TTL: what is left is told as of the answer, so of two answers with one TTL the later one may say less.
	again, err := c.RenewSession(ctx, ses, 2*time.Minute)
	if err != nil || again.Broken["shard-1"] != g.Token || again.TTL != 2*time.Minute || again.ValidUntil <= ses.ValidUntil {
		t.Errorf("%+v, %v", again, err)
	}
	// It is said until the holder has let go: an answer may be lost.
	if again, err = c.RenewSession(ctx, ses, 0); err != nil || again.Broken["shard-1"] != g.Token || again.TTL != 2*time.Minute {
		t.Errorf("%+v, %v", again, err)
	}
	if err := c.Release(ctx, g); err != nil {
		t.Error(err)
	}
	if again, err = c.RenewSession(ctx, ses, 0); err != nil || again.Broken != nil {
		t.Errorf("%+v, %v", again, err)
	}
	if err := c.CloseSession(ctx, ses); err != nil {
		t.Error(err)
	}
	if _, err := c.RenewSession(ctx, ses, 0); !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v", err)
	}
}

// A list of more than a page is whole, and in order.
func TestCallsList(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	st := s.db.Open()
	defer func() { _ = st.Close() }()
	for i := range 2100 {
		rec := store.Record{Key: "n/" + string(rune('0'+i/1000)) + string(rune('0'+i/100%10)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)), Token: 1, Nonce: "n"}
		if _, err := st.Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	before, n := "", 0
	for l, err := range c.List(t.Context(), "n/") {
		if err != nil || l.Name <= before {
			t.Fatalf("%s after %s: %v", l.Name, before, err)
		}
		before = l.Name
		n++
	}
	if n != 2100 {
		t.Errorf("%d", n)
	}
	for l, err := range c.List(t.Context(), "n/") { // who wants no more isn't sent more
		if err != nil || l.Name != "n/0000" {
			t.Errorf("%s: %v", l.Name, err)
		}
		break
	}
	bad, _ := newRotten(t, "b,")
	bad.put(t, store.Record{Key: "b", Token: 1})
	for l, err := range bad.client(t, bad.URL).List(t.Context(), "") {
		if err != nil || l.State != client.Unreadable || !errors.Is(l.Err, store.ErrCorrupt) {
			t.Errorf("%+v, %v", l, err)
		}
	}
}

// What is refused is the same error on both sides.
func TestCallsRefused(t *testing.T) {
	var err error
	who := server.Anybody
	s := newSite(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return who, err }})
	c := s.client(t, s.URL)
	who = allBut(server.Acquire)
	if _, err := c.Acquire(t.Context(), "a", client.AcquireOptions{}); !errors.Is(err, client.ErrForbidden) {
		t.Errorf("%v", err)
	}
	who, err = nil, errors.New("the bearer token is not known")
	if _, err := c.Get(t.Context(), "a"); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("%v", err)
	}
	for _, err := range c.Watch(t.Context(), "") { // it ends: asking again would change nothing
		if !errors.Is(err, client.ErrUnauthenticated) {
			t.Errorf("%v", err)
		}
	}
	stray := s.client(t, s.URL+"/elsewhere")
	if _, err := stray.Acquire(t.Context(), "a", client.AcquireOptions{}); err == nil || !strings.Contains(err.Error(), "nothing at this path") {
		t.Errorf("%v", err)
	}
}

// A watch goes on where it was when its stream breaks off, and begins anew at another server.
func TestCallsWatch(t *testing.T) {
	s := newSite(t, server.Options{})
	network := servers.Proxy(t, s.Listener.Addr().String())
	c := s.client(t, "http://"+network.Addr)
	a := s.acquired(t, "a", "")
	events := make(chan client.Event, 1000)
	ctx, stop := context.WithCancel(t.Context())
	ended, broken := make(chan struct{}), make(chan error, 1000)
	go func() {
		defer close(ended)
		for e, err := range c.Watch(ctx, "a") {
			if err != nil {
				broken <- err
			} else if e.Freshness == nil {
				events <- e
			}
		}
	}()
	if e := <-events; !e.Reset {
		t.Errorf("%+v", e)
	}
	if e := <-events; e.Lease == nil || e.Lease.Name != "a" || e.Lease.State != client.Held {
		t.Errorf("%+v", e)
	}
	network.Refuse()
	if err := <-broken; err == nil {
		t.Error("no error when the stream broke off")
	}
	want(t, s.ask(t, "DELETE", "/v1/leases/a", "", nil, "Leasehold-Sequencer", a.Sequencer, "Leasehold-Secret", a.Secret), http.StatusNoContent)
	network.Heal()
	// The board rests while nobody watches: it may tell what was missed, or all anew.
	e := <-events
	if e.Reset {
		e = <-events
	}
	if e.Lease == nil || e.Lease.State != client.Free {
		t.Errorf("%+v", e)
	}
	stop()
	<-ended
}

// A client that closes ends its calls, and says that what they asked for may have been done.
func TestCallsClose(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	s.acquired(t, "job", "")
	ended := make(chan error, 2)
	go func() {
		_, err := c.Acquire(t.Context(), "job", client.AcquireOptions{Wait: time.Minute})
		ended <- err
	}()
	s.waiting(t, "job", 1)
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) || !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("%v", err)
	}
	if _, err := c.Get(t.Context(), "job"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("%v", err)
	}
}
