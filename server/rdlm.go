package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/store"
)

// newRDLM returns what speaks RDLM's protocol, on the same queues, and tells of its requests as of
// the others.
func (s *Server) newRDLM(opts rdlm.Options) *rdlm.Handler {
	opts.Quotas = rdlmQuotas{s}
	opts.OnDone = s.rdlmDone
	return rdlm.New(s.reg, s.st, s.clk, opts)
}

// rdlmQuotas count what RDLM's clients have with all that their callers have.
type rdlmQuotas struct{ s *Server }

// Ask implements [rdlm.Quotas].
func (q rdlmQuotas) Ask(r *http.Request, name string, info map[string]string, waits bool) (func(store.Record), error) {
	who, leave := passedOf(r).payer, func() {}
	if waits {
		passedOf(r).patience.lift() // the wait has its own end
		var err error
		if leave, err = q.s.waiting.enter(who); err != nil {
			return nil, err
		}
	}
	asked, err := q.s.tally.reserve(who, name, "", share(false, name, info))
	if err != nil {
		leave()
		return nil, err
	}
	return func(rec store.Record) {
		leave()
		if rec.Owner == "" {
			q.s.tally.giveUp(asked)
			return
		}
		q.s.tally.keep(asked, rec)
	}, nil
}

// Renewed implements [rdlm.Quotas].
func (q rdlmQuotas) Renewed(r *http.Request, rec store.Record) {
	q.s.tally.keep(claim{who: passedOf(r).payer, what: share(false, rec.Key, rec.Info)}, rec)
}

// Over implements [rdlm.Quotas].
func (q rdlmQuotas) Over(name string) { q.s.tally.over(name) }

// passed is what is known of a request that is passed on.
type passed struct {
	caller Caller
	payer  string
	begun  time.Time

	patience *patience
}

// passedKey is of that in the context of the request.
type passedKey struct{}

func passedOf(r *http.Request) passed {
	if p, ok := r.Context().Value(passedKey{}).(passed); ok {
		return p
	}
	return passed{caller: Anybody}
}

// rdlmAction is what a request of RDLM's is about to do, and to what; name ends in "*" when that is
// to all.
func rdlmAction(r *http.Request) (action Action, name string) {
	if locked, ok := strings.CutPrefix(r.URL.Path, "/locks/"); ok {
		name, _, _ = strings.Cut(locked, "/")
		return Acquire, name
	}
	name = "*"
	if one, ok := strings.CutPrefix(r.URL.Path, "/resources/"); ok {
		name = one
	}
	if r.Method == http.MethodDelete {
		return Break, name // it ends the holds of others
	}
	return Read, name
}

// speakRDLM passes a request on if its caller may do that. RDLM's clients can't say who they are
// but by a certificate, or a bearer token that a proxy adds.
func (s *Server) speakRDLM(w http.ResponseWriter, r *http.Request) {
	begun := s.clk.Wall()
	p := s.patienceOf(route{method: r.Method}, r)
	defer p.end()
	c := &call{s: s, w: w, r: r.WithContext(p.ctx), patience: p, event: Event{Remote: s.remote(r)}}
	err := s.admit(route{}, c)
	action, name := rdlmAction(r)
	if err == nil && r.URL.Path != "/" {
		err = c.may(action, name)
	}
	if err != nil {
		p := s.failure(r, err)
		fail(w, p)
		s.told(Event{
			Caller: c.event.Caller, Action: action, Op: "rdlm", Name: strings.TrimSuffix(name, "*"), Outcome: string(p.Code), Remote: c.event.Remote,
		}, begun)
		return
	}
	s.rdlm.ServeHTTP(w, r.WithContext(context.WithValue(p.ctx, passedKey{}, passed{c.caller, c.payer, begun, p})))
}

// rdlmDone tells of a request of RDLM's that was answered.
func (s *Server) rdlmDone(r *http.Request, d rdlm.Done) {
	p := passedOf(r)
	action, _ := rdlmAction(r)
	e := Event{
		Caller: p.caller.Name(), Action: action, Op: d.Op, Name: d.Name, Holder: d.Holder, Token: d.Token,
		Outcome: outcomeOK, Waited: d.Waited, Remote: s.remote(r), Note: "by RDLM's protocol",
	}
	if d.Op == "show" {
		e.Action = Read
	}
	if d.Err != nil {
		e.Outcome = string(s.failure(r, d.Err).Code)
	}
	if e.Action != Read && e.Outcome == outcomeOK {
		s.board.touch(e.Name)
	}
	s.told(e, p.begun)
}
