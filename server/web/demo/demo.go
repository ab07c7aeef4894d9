// Package demo peoples a lock server with actors: programs that hold, renew, contend, pause, crash,
// are broken and are elected, so that there is something to look at and to test with. Every two and
// a half minutes they play an incident: a host that serves names freezes, others take over, an
// operator acts, and the host comes back.
package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
)

// habit is how an actor treats what it holds.
type habit int

const (
	tidy habit = iota // renews, and releases
	// Stops for most of a TTL now and then, as a process does whose machine is too busy.
	pauses
	crash // vanishes, and is started again long after its lease ran out
	hangs // an operator breaks its hold, and it doesn't let go
)

// shards is how many names the session keeps.
const shards = 3

// role is one actor.
type role struct {
	name, holder string
	habit        habit
	ttl          time.Duration
	first        time.Duration // before its first scene
	hold, rest   time.Duration // with the name, and after it
	doing        string
}

// cast returns the actors.
func cast() []role {
	const ttl = 12 * time.Second
	all := []role{
		{"billing/close-month", "billing@app-3", tidy, ttl, 0, 150 * time.Second, 12 * time.Second, "closing October"},
		{"billing/invoices", "billing@app-1", tidy, ttl, 0, 40 * time.Second, 25 * time.Second, "numbering invoices"},
		{"ingest/leader", "ingest-0", pauses, ttl, 0, 120 * time.Second, 4 * time.Second, "leading"},
		{"backup/photos", "restic@nas", pauses, ttl, 2 * time.Second, 90 * time.Second, 6 * time.Second, "pruning"},
		{"db/migrations", "migrate-7f9c", crash, 8 * time.Second, 0, 20 * time.Second, 40 * time.Second, "0042_add_index"},
		{"mail/outbox", "mailer-2", hangs, ttl, 0, 10 * time.Second, 30 * time.Second, "sending"},
		{"reports/nightly", "cron@app-2", tidy, ttl, 0, 8 * time.Second, 90 * time.Second, "nightly report"},
	}
	for i := range 4 {
		all = append(all, role{
			"deploy/production", fmt.Sprintf("ci-%d", 4711+i), tidy, ttl, time.Duration(i) * time.Second, 25 * time.Second, 5 * time.Second, "deploying",
		})
	}
	return all
}

// Play has the actors act at the server with that URL, which lets anybody do anything, until ctx is
// done. It blocks until then, and returns when all have left.
func Play(ctx context.Context, base string, clk clock.Clock) {
	s := &stage{base: base, caller: newCaller(base), clk: clk}
	defer s.caller.close()
	var wg sync.WaitGroup
	for _, r := range cast() {
		wg.Go(func() {
			if s.sleep(ctx, r.first) {
				s.act(ctx, r)
			}
		})
	}
	for _, c := range contests() {
		wg.Go(func() { s.elect(ctx, c) })
	}
	wg.Go(func() { s.consume(ctx) })
	wg.Go(func() { s.incident(ctx) })
	wg.Wait()
}

type stage struct {
	base   string
	caller *caller
	clk    clock.Clock
}

// sleep reports whether the play goes on.
func (s *stage) sleep(ctx context.Context, d time.Duration) bool {
	return clock.Sleep(ctx, s.clk, d) == nil
}

// act plays a role over and over. What goes wrong is part of the play: the actor rests, and tries
// again.
func (s *stage) act(ctx context.Context, r role) {
	for scene := 1; ctx.Err() == nil; scene++ {
		s.scene(ctx, r, scene)
		if !s.sleep(ctx, r.rest) {
			return
		}
	}
}

// scene plays a role once.
func (s *stage) scene(ctx context.Context, r role, n int) {
	wait, ttl := api.Seconds(10*time.Minute), api.Seconds(r.ttl)
	var g api.Grant
	err := s.caller.do(ctx, http.MethodPost, path(r.name), api.AcquireRequest{
		Holder: r.holder, TTL: &ttl, Wait: &wait, Info: map[string]string{"doing": r.doing, "scene": strconv.Itoa(n)},
	}, &g, nil)
	if err == nil {
		s.held(ctx, r, g)
	}
}

// held plays the time with the name.
func (s *stage) held(ctx context.Context, r role, g api.Grant) {
	begun := s.clk.Now()
	for n := 1; s.clk.Now().Sub(begun) < r.hold; n++ {
		every := r.ttl / 3
		if r.habit == pauses && n%3 == 0 {
			every = r.ttl * 9 / 10
		}
		if !s.sleep(ctx, every) || s.caller.do(ctx, http.MethodPut, path(r.name), nil, nil, proofOf(g.Sequencer, g.Secret)) != nil {
			return // the play is over, or a visitor has broken the hold
		}
	}
	switch r.habit {
	case crash: // without a word
	case hangs:
		_ = s.caller.do(ctx, http.MethodPost, path(r.name)+"/break", api.BreakRequest{Token: g.Token, Note: "it hangs"}, nil, nil)
	default:
		// One that isn't its own any more is not to be released.
		_ = s.caller.do(ctx, http.MethodDelete, path(r.name), nil, nil, proofOf(g.Sequencer, g.Secret))
	}
}

// consume plays a program that keeps several names by one session.
func (s *stage) consume(ctx context.Context) {
	ttl := api.Seconds(12 * time.Second)
	for ctx.Err() == nil {
		var session api.Session
		err := s.caller.do(ctx, http.MethodPost, "/v1/sessions", api.SessionRequest{Holder: "consumer-0", TTL: &ttl}, &session, nil)
		for i := 0; err == nil && i < shards; i++ {
			err = s.caller.do(ctx, http.MethodPost, path(fmt.Sprintf("orders/shard-%d", i)), api.AcquireRequest{Session: session.Session}, nil, proofOf("", session.Secret))
		}
		for err == nil && s.sleep(ctx, time.Duration(session.RenewEvery)) {
			err = s.caller.do(ctx, http.MethodPut, "/v1/sessions/"+url.PathEscape(session.Session), nil, nil, proofOf("", session.Secret))
		}
		s.sleep(ctx, time.Duration(ttl)) // a visitor may have broken one
	}
}
