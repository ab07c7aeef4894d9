package demo

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/leasehold/leasehold/internal/api"
)

// The incident: a host that serves names freezes, others take over, an operator acts, and the host
// comes back.
const (
	failing  = "web-3"
	leader   = "checkout/leader"
	export   = "checkout/export"
	oncall   = "INC-4711: web-3 has frozen"
	hostTTL  = 12 * time.Second
	cycle    = 150 * time.Second
	lookLong = 10 * time.Minute // for which those who stand by wait
)

var served = []string{"checkout/shard-0", "checkout/shard-1", "checkout/shard-2", "checkout/shard-3"}

// beat is what happens in the incident at a time after its beginning.
type beat struct {
	at time.Duration
	do func()
}

// incident plays it over and over.
func (s *stage) incident(ctx context.Context) {
	for ctx.Err() == nil {
		s.outage(ctx)
	}
}

// outage plays it once. It returns when all who took part have left.
func (s *stage) outage(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	well, freeze := context.WithCancel(ctx)
	defer freeze()
	relief, relieved := context.WithCancel(ctx)
	defer relieved()
	again, done := context.WithCancel(ctx)
	defer done()
	begun := s.clk.Now()
	for _, b := range []beat{
		{0, func() {
			wg.Go(func() { s.host(well, failing, served, false) })
			wg.Go(func() { s.stuck(again) })
		}},
		{6 * time.Second, func() {
			wg.Go(func() { s.host(relief, "web-4", served[:2], true) })
			wg.Go(func() { s.host(relief, "web-5", served[2:], true) })
			wg.Go(func() { s.standby(relief) })
		}},
		{14 * time.Second, freeze},
		{22 * time.Second, func() { s.order(ctx, leader, "pause", api.PauseRequest{Reason: oncall}) }},
		{32 * time.Second, func() { s.breakExport(ctx) }},
		{75 * time.Second, func() {
			s.order(ctx, leader, "resume", nil)
			wg.Go(func() { s.host(again, failing, served, true) })
		}},
		{95 * time.Second, relieved},
		{120 * time.Second, func() {
			s.order(ctx, leader, "handoff", api.HandoffRequest{Any: true, Reason: failing + " is well again"})
		}},
		{cycle, done},
	} {
		if !s.sleep(ctx, b.at-s.clk.Now().Sub(begun)) {
			return
		}
		b.do()
	}
}

// host keeps names by one session until ctx is done. Then it gives them back, or vanishes.
func (s *stage) host(ctx context.Context, name string, names []string, leaves bool) {
	ttl, wait := api.Seconds(hostTTL), api.Seconds(lookLong)
	info := map[string]string{"host": name, "doing": "serving checkout"}
	var session api.Session
	if s.caller.do(ctx, http.MethodPost, "/v1/sessions", api.SessionRequest{Holder: name, TTL: &ttl, Info: info}, &session, nil) != nil {
		return // the play is over
	}
	proof, at := proofOf("", session.Secret), "/v1/sessions/"+url.PathEscape(session.Session)
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() {
			_ = s.caller.do(ctx, http.MethodPost, path(n), api.AcquireRequest{Session: session.Session, Wait: &wait}, nil, proof)
		})
	}
	for s.sleep(ctx, time.Duration(session.RenewEvery)) && s.caller.do(ctx, http.MethodPut, at, nil, nil, proof) == nil {
	}
	wg.Wait()
	if leaves {
		// The server may have gone before.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.caller.do(ctx, http.MethodDelete, at, nil, nil, proof)
	}
}

// stuck plays a job of the failing host that renews and does nothing, until its hold is broken.
func (s *stage) stuck(ctx context.Context) {
	ttl, wait := api.Seconds(hostTTL), api.Seconds(lookLong)
	var g api.Grant
	err := s.caller.do(ctx, http.MethodPost, path(export), api.AcquireRequest{
		Holder: "export@" + failing, TTL: &ttl, Wait: &wait, Info: map[string]string{"host": failing, "doing": "exporting orders"},
	}, &g, nil)
	for err == nil && s.sleep(ctx, hostTTL/3) {
		err = s.caller.do(ctx, http.MethodPut, path(export), nil, nil, proofOf(g.Sequencer, g.Secret))
	}
}

// standby plays the job that stands by for the one that is stuck.
func (s *stage) standby(ctx context.Context) {
	s.scene(ctx, role{name: export, holder: "export@web-5", ttl: hostTTL, hold: 30 * time.Second, doing: "exporting orders"}, 1)
}

// breakExport ends the hold of the job that is stuck, as an operator does who has looked at it.
func (s *stage) breakExport(ctx context.Context) {
	var l api.Lease
	if s.caller.do(ctx, http.MethodGet, path(export), nil, &l, nil) == nil {
		s.order(ctx, export, "break", api.BreakRequest{Token: l.Token, Note: oncall})
	}
}

// order sends an operator's order. One that is refused is a visitor's doing.
func (s *stage) order(ctx context.Context, name, what string, body any) {
	_ = s.caller.do(ctx, http.MethodPost, path(name)+"/"+what, body, nil, nil)
}
