package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/server/web"
)

// route is one operation of the API.
type route struct {
	method, path string
	op           string
	action       Action
	serve        func(*Server, *call) (any, error)
	query        []string // the query parameters that it knows
}

// routes is the API. The OpenAPI description has the same.
var routes = append([]route{
	{http.MethodPost, "/v1/leases/{name}", "acquire", Acquire, (*Server).acquire, nil},
	{http.MethodPut, "/v1/leases/{name}", "renew", Acquire, (*Server).renew, termQuery},
	{http.MethodDelete, "/v1/leases/{name}", "release", Acquire, (*Server).release, termQuery},
	{http.MethodGet, "/v1/leases/{name}", "show", Read, (*Server).show, nil},
	{http.MethodGet, "/v1/leases/{name}/history", "history", Read, (*Server).history, nil},
	{http.MethodGet, "/v1/leases/{name}/waiters", "waiters", Read, (*Server).waiters, nil},
	{http.MethodPost, "/v1/leases/{name}/break", "break", Break, (*Server).breakHold, nil},
	{http.MethodPost, "/v1/leases/{name}/handoff", "hand over", Handoff, (*Server).handoff, nil},
	{http.MethodPost, "/v1/leases/{name}/pause", "pause", Pause, (*Server).pause, nil},
	{http.MethodPost, "/v1/leases/{name}/resume", "resume", Pause, (*Server).resume, nil},
	{http.MethodGet, "/v1/leases", "list", Read, (*Server).list, []string{"prefix", "after", "limit"}},
	{http.MethodGet, "/v1/pairs", "list pairs", Read, (*Server).listPairs, nil},
	{http.MethodGet, "/v1/pairs/{name}", "show pair", Read, (*Server).showPair, nil},
	{http.MethodPost, "/v1/pairs/{name}/switchover", "switch over", Handoff, (*Server).switchover, nil},
	{http.MethodPost, "/v1/pairs/{name}/hold", "hold passive", Pause, (*Server).holdPair, nil},
	{http.MethodPost, "/v1/pairs/{name}/resume", "end hold", Pause, (*Server).resumePair, nil},
	{http.MethodPost, "/v1/sessions", "open session", Acquire, (*Server).openSession, nil},
	{http.MethodPut, "/v1/sessions/{id}", "renew session", Acquire, (*Server).renewSession, nil},
	{http.MethodDelete, "/v1/sessions/{id}", "close session", Acquire, (*Server).closeSession, nil},
	{http.MethodPost, "/v1/identities/{pool}", "assign", Assign, (*Server).assign, nil},
	{http.MethodPut, "/v1/identities/{pool}", "widen pool", Assign, (*Server).widen, nil},
	{http.MethodGet, "/v1/identities/{pool}", "list identities", Read, (*Server).identities, nil},
	{http.MethodDelete, "/v1/identities/{pool}/{value}", "release identity", Assign, (*Server).unassign, []string{"as", "holder", "token", "used"}},
	{http.MethodGet, "/v1/ids/{layout}", "make ids", Assign, (*Server).ids, []string{"n", "metadata"}},
	{http.MethodPost, "/v1/verify", "verify", Read, (*Server).verify, nil},
	{http.MethodGet, "/v1/history", "read journal", Read, (*Server).readJournal, []string{"since", "until", "prefix", "name", "holder", "limit", "after"}},
	{http.MethodGet, "/v1/history/report", "report journal", Read, (*Server).reportJournal, []string{"since", "until", "prefix", "name", "holder"}},
	{http.MethodGet, "/v1/watch", "watch", Read, (*Server).watch, []string{"prefix"}},
	{http.MethodGet, "/v1/openapi.yaml", "openapi", Read, (*Server).openapi, nil},
	{http.MethodGet, "/v1/whoami", "whoami", Read, (*Server).whoami, []string{"name"}},
	{http.MethodGet, "/v1/login", opLogins, Read, (*Server).logins, nil},
	{http.MethodGet, "/v1/store", "describe store", Read, (*Server).describe, nil},
	{http.MethodGet, "/v1/records", "list records", Records, (*Server).listRecords, []string{"prefix"}},
	{http.MethodGet, "/v1/records/{key}", "read record", Records, (*Server).getRecord, []string{"version", "wait", "confirm"}},
	{http.MethodPut, "/v1/records/{key}", "write record", Records, (*Server).putRecord, []string{"version"}},
	{http.MethodDelete, "/v1/records/{key}", "delete record", Records, (*Server).deleteRecord, []string{"version"}},
}, shardRoutes...)

// ServeHTTP implements [http.Handler].
//
// It finds the route by the path as it was sent. A slash that is written %2F is part of a name.
// [http.ServeMux] doesn't accept that for every name.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hurry(w, r, s.clk)
	path := r.URL.EscapedPath()
	switch path {
	case "/healthz", "/readyz":
		s.health(w, r)
		return
	case "/metrics":
		s.serveMetrics(w, r)
		return
	}
	if p := s.checkOrigin(r); p != nil {
		fail(w, p)
		s.told(Event{Action: Acquire, Op: "cross-origin", Name: r.URL.Path, Outcome: string(p.Code), Remote: s.remote(r)}, s.clk.Wall())
		return
	}
	switch {
	case web.Serves(r):
		s.servePage(w, r)
		return
	case s.rdlm != nil && (path == "/" || rdlm.Serves(path)):
		s.speakRDLM(w, r)
		return
	}
	segments := strings.Split(path, "/")
	var allow []string
	for i, rt := range routes {
		switch ok := match(r, patterns[i], segments); {
		case ok && (rt.method == r.Method || rt.method == http.MethodGet && r.Method == http.MethodHead && rt.op != "watch"):
			s.handle(rt, w, r)
			return
		case ok:
			allow = append(allow, rt.method)
		}
	}
	if allow == nil {
		fail(w, api.NewProblem(api.CodeNoRoute, "%s: there is nothing at this path; a slash within a name is written %%2F", r.URL.EscapedPath()))
		return
	}
	methods := strings.Join(allow, ", ")
	w.Header().Set("Allow", methods)
	fail(w, api.NewProblem(api.CodeMethod, "%s %s: this path takes %s", r.Method, r.URL.EscapedPath(), methods))
}

// patterns are the segments of the routes' paths.
var patterns = func() (all [][]string) {
	for _, rt := range routes {
		all = append(all, strings.Split(rt.path, "/"))
	}
	return all
}()

// match reports whether a path fits a pattern, and notes the values in it.
func match(r *http.Request, pattern, segments []string) bool {
	if len(pattern) != len(segments) {
		return false
	}
	for i, p := range pattern {
		variable, ok := strings.CutPrefix(p, "{")
		if !ok {
			if p != segments[i] {
				return false
			}
			continue
		}
		value, err := url.PathUnescape(segments[i])
		if err != nil || value == "" {
			return false
		}
		r.SetPathValue(strings.TrimSuffix(variable, "}"), value)
	}
	return true
}

// call is a request on its way through the server.
type call struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	caller Caller
	payer  string // whom it is counted for
	status int    // of an answer that is not 200
	event  Event

	patience *patience // with the store

	came clock.Instant // of a renewal: when it came
	// What was asked for is done: what is left is to see what comes of it, and to answer.
	ordered bool
}

// errAnswered is what a handler returns when it has answered by itself.
var errAnswered = errors.New("answered")

func (s *Server) handle(rt route, w http.ResponseWriter, r *http.Request) {
	begun := s.clk.Wall()
	p := s.patienceOf(rt, r)
	defer p.end()
	r.Body = http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	c := &call{s: s, w: w, r: r.WithContext(p.ctx), patience: p, status: http.StatusOK}
	c.event = Event{Action: rt.action, Op: rt.op, Name: r.PathValue("name"), Outcome: outcomeOK, Remote: s.remote(r)}
	var body any
	err := s.admit(rt, c)
	if err == nil {
		err = checkQuery(rt, r.URL.RawQuery)
	}
	if err == nil {
		body, err = rt.serve(s, c)
	}
	switch {
	case errors.Is(err, errAnswered):
	case err != nil:
		p := s.failure(c.r, err)
		if p.Code != api.CodeGone || !c.ordered {
			c.event.Outcome = string(p.Code)
		}
		if c.event.Token == 0 {
			c.event.Token = p.Got
		}
		fail(w, p)
	default:
		reply(w, c.status, body)
	}
	if rt.action != Read && rt.method != http.MethodGet && c.event.Outcome == outcomeOK {
		s.board.touch(c.event.Name)
	}
	s.told(c.event, begun)
}

// told tells whoever listens of a request that was answered. How long it took is for people only:
// the time of day, whose reading costs an eighth of the other clock's and tells differences without
// its steps, is good enough for that.
func (s *Server) told(e Event, begun time.Time) {
	e.Time = s.clk.Wall()
	e.Duration = e.Time.Sub(begun)
	s.metrics.note(e)
	if s.opts.OnEvent != nil {
		s.opts.OnEvent(e)
	}
}

// reserved is the problem of a name that is none.
func reserved(name string) error {
	return api.Invalid("name", name, "a name that does not begin with a dot: those are Leasehold's own")
}

func (s *Server) problem(err error) *api.Problem {
	switch {
	case errors.Is(err, lessor.ErrClosed):
		return api.NewProblem(api.CodeClosing, "the server is closing: ask another one, or again later")
	case errors.Is(err, lessor.ErrReplaced):
		return api.NewProblem(api.CodeReplaced, "%v", err)
	case errors.Is(err, lessor.ErrRemoved):
		return api.NewProblem(api.CodeRemoved, "%v", err)
	case errors.Is(err, lessor.ErrSecret), errors.Is(err, lessor.ErrNoSecret):
		p := api.NewProblem(api.CodeSecret, "%v", err)
		p.Field = api.HeaderSecret
		return p
	}
	if p := pairProblem(err); p != nil {
		return p
	}
	return api.ProblemOf(err)
}

// failure is the problem of a request that was not done. A store does not fail that gives up since
// whoever asked has hung up, or was cut off by a server that ends.
func (s *Server) failure(r *http.Request, err error) *api.Problem {
	p := s.problem(err)
	switch {
	case p.Code == api.CodeUnknown:
		p.Detail = mayHave + unanswered(r, err)
		return p
	case p.Code != api.CodeUnavailable:
		return p
	case late(r.Context()) != nil:
		p.Detail = late(r.Context()).Error()
		return p
	case r.Context().Err() == nil || !errors.Is(err, context.Canceled):
		p.Detail = plainly(err)
		return p
	case s.closing.Err() != nil:
		return s.problem(lessor.ErrClosed)
	}
	return api.NewProblem(api.CodeGone, "the client closed its connection, or its side of it, before there was an answer")
}

// term returns the term that a request names.
func (s *Server) term(c *call) (holder string, token fence.Token, err error) {
	if text := c.r.Header.Get(fence.Header); text != "" {
		seq, err := s.sequencer(text)
		if err != nil {
			return "", 0, err
		}
		if err := seq.Of(c.r.PathValue("name")); err != nil {
			return "", 0, api.Invalid(fence.Header, text, "the sequencer of "+c.r.PathValue("name"))
		}
		c.event.Holder, c.event.Token = seq.Holder, seq.Token
		return seq.Holder, seq.Token, nil
	}
	if s.opts.Keys != nil { // who holds a name under which token is no secret
		return "", 0, api.Invalid(fence.Header, "", "the signed sequencer that came with the grant")
	}
	q := c.r.URL.Query()
	if holder = q.Get("holder"); holder == "" {
		return "", 0, api.Invalid("holder", "", "the term: the header "+fence.Header+", or the parameters holder and token, as the grant said them")
	}
	if token, err = fence.ParseToken(q.Get("token")); err != nil {
		return "", 0, api.Invalid("token", q.Get("token"), "the token that the grant said")
	}
	c.event.Holder, c.event.Token = holder, token
	return holder, token, nil
}

// proof is what a request proves by its secret.
func (c *call) proof() lessor.Proof { return lessor.Secret(c.r.Header.Get(api.HeaderSecret)) }

func (s *Server) sequencer(text string) (seq fence.Sequencer, err error) {
	if s.opts.Keys != nil {
		seq, err = s.opts.Keys.Verify(text)
	} else {
		seq, err = fence.ParseSequencer(text)
	}
	if err != nil {
		p := api.Invalid(fence.Header, text, "a sequencer of this server's")
		p.Detail = err.Error()
		return seq, p
	}
	return seq, nil
}
