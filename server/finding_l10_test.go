package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/compat/rdlm"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// hung is a server whose store answers a number of operations, and then none.
type hung struct {
	*Server
	net   *faulty.Store
	left  atomic.Int64 // how many more are answered; negative for any number
	held  api.Grant
	open  api.Session
	value api.Assigned
	lock  string // path of a lock of RDLM's
	rec   string // a record, as it is written
	ver   string
}

func newHung(t *testing.T) *hung {
	t.Helper()
	h := &hung{net: faulty.Wrap(memory.New(memory.Options{}), nil)}
	admin, err := rdlm.ParseAdmin("yes")
	if err != nil {
		t.Fatal(err)
	}
	clk := clocktest.New(0)
	clk.StepWall(30 * 365 * 24 * time.Hour) // ids count from a date after the one in bubbles
	if h.Server, err = New(h.net, Options{Clock: clk, RDLM: &rdlm.Options{Admin: admin}}); err != nil {
		t.Fatal(err)
	}
	h.answered(t, "POST", "/v1/leases/held", `{"ttl": 86400}`, &h.held)
	h.answered(t, "POST", "/v1/sessions", `{"ttl": 3600}`, &h.open)
	h.answered(t, "POST", "/v1/leases/kept", `{"session": "`+h.open.Session+`"}`, nil, api.HeaderSecret, h.open.Secret)
	h.answered(t, "POST", "/v1/identities/pool", `{"range": "1-9", "as": "me"}`, &h.value)
	w := h.do("POST", "/locks/lock", `{"title": "me", "wait": 0, "lifetime": 3600}`)
	u, err := url.Parse(w.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	h.lock = u.Path
	if err := election.SetPause(t.Context(), h.net, "paused", election.Pause{By: "ops", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, rec := range []store.Record{
		{Key: pairs.Calls + "pair", Nonce: "n"}, {Key: pairs.Calls + "passive", Nonce: "n"},
		{Key: "pair", Owner: "east/x", Token: 7, TTL: time.Hour, Info: map[string]string{pairs.InfoPod: "east"}, Nonce: "n"},
		{Key: "passive", Owner: pairs.SkipOwner, Token: 7, TTL: time.Hour, Info: map[string]string{pairs.InfoSettled: "true"}, Nonce: "n"},
	} {
		if _, err := h.net.Put(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	worker := shard.Remote{Store: h.net, Space: "jobs", Session: h.open.Session}
	if err := worker.Join(t.Context(), shard.Space{Hashed: true, Slices: 2}, shard.Worker{Name: "w"}); err != nil {
		t.Fatal(err)
	}
	rec, err := h.net.Put(t.Context(), store.Record{Key: "record", Nonce: "n"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := driver.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	h.rec, h.ver = string(text), rec.Version
	h.left.Store(-1)
	h.net.SetPlan(func(faulty.Op) faulty.Fault {
		for {
			switch n := h.left.Load(); {
			case n < 0:
				return faulty.Fault{}
			case n == 0:
				return faulty.Fault{Drop: true}
			default:
				if h.left.CompareAndSwap(n, n-1) {
					return faulty.Fault{}
				}
			}
		}
	})
	return h
}

func (h *hung) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (h *hung) answered(t *testing.T, method, path, body string, v any, header ...string) {
	t.Helper()
	w := h.do(method, path, body, header...)
	if w.Code/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// request is one that is answered with success while the store answers.
type request struct {
	path, body string
	header     []string
	wait       time.Duration // that it asks for
	local      bool          // it asks the store for nothing
}

// requests has one for each route, by method and path.
func (h *hung) requests() map[string]request {
	term := []string{"Leasehold-Sequencer", h.held.Sequencer, api.HeaderSecret, h.held.Secret}
	secret := []string{api.HeaderSecret, h.open.Secret}
	session := "/v1/sessions/" + url.PathEscape(h.open.Session)
	return map[string]request{
		"POST /v1/leases/{name}":               {path: "/v1/leases/new", header: []string{api.HeaderKey, "once"}},
		"PUT /v1/leases/{name}":                {path: "/v1/leases/held", header: term},
		"DELETE /v1/leases/{name}":             {path: "/v1/leases/held", header: term},
		"GET /v1/leases/{name}":                {path: "/v1/leases/kept"},
		"GET /v1/leases/{name}/history":        {path: "/v1/leases/held/history"},
		"GET /v1/leases/{name}/waiters":        {path: "/v1/leases/held/waiters", local: true},
		"POST /v1/leases/{name}/break":         {path: "/v1/leases/held/break", body: `{"token": ` + h.held.Token.String() + `}`},
		"POST /v1/leases/{name}/handoff":       {path: "/v1/leases/held/handoff", body: `{"any": true}`},
		"POST /v1/leases/{name}/pause":         {path: "/v1/leases/kept/pause", body: `{"reason": "x", "wait": 3}`, wait: 3 * time.Second},
		"POST /v1/leases/{name}/resume":        {path: "/v1/leases/paused/resume"},
		"GET /v1/pairs":                        {path: "/v1/pairs"},
		"GET /v1/pairs/{name}":                 {path: "/v1/pairs/pair"},
		"POST /v1/pairs/{name}/switchover":     {path: "/v1/pairs/pair/switchover", body: `{"to": "west", "wait": 2}`, wait: 2 * time.Second},
		"POST /v1/pairs/{name}/hold":           {path: "/v1/pairs/pair/hold", body: `{"reason": "x", "wait": 3}`, wait: 3 * time.Second},
		"POST /v1/pairs/{name}/resume":         {path: "/v1/pairs/passive/resume"},
		"GET /v1/leases":                       {path: "/v1/leases"},
		"POST /v1/sessions":                    {path: "/v1/sessions"},
		"PUT /v1/sessions/{id}":                {path: session, header: secret},
		"DELETE /v1/sessions/{id}":             {path: session, header: secret},
		"POST /v1/identities/{pool}":           {path: "/v1/identities/pool", body: `{"as": "other"}`},
		"PUT /v1/identities/{pool}":            {path: "/v1/identities/pool", body: `{"range": "1-99"}`},
		"GET /v1/identities/{pool}":            {path: "/v1/identities/pool"},
		"DELETE /v1/identities/{pool}/{value}": {path: "/v1/identities/pool/" + h.value.Value + "?as=me"},
		"GET /v1/ids/{layout}":                 {path: "/v1/ids/twitter"},
		"POST /v1/verify":                      {path: "/v1/verify", body: `{"sequencer": "` + h.held.Sequencer + `"}`},
		"GET /v1/shards":                       {path: "/v1/shards"},
		"GET /v1/shards/{space}":               {path: "/v1/shards/jobs"},
		"GET /v1/shards/{space}/lookup":        {path: "/v1/shards/jobs/lookup?key=x"},
		"GET /v1/shards/{space}/history":       {path: "/v1/shards/jobs/history"},
		"POST /v1/shards/{space}/move":         {path: "/v1/shards/jobs/move", body: `{"slice": "0x0", "to": "w"}`},
		"POST /v1/shards/{space}/drain":        {path: "/v1/shards/jobs/drain", body: `{"worker": "w"}`},
		"POST /v1/shards/{space}/split":        {path: "/v1/shards/jobs/split", body: `{"slice": "0x0", "wait": 3}`, wait: 3 * time.Second},
		"POST /v1/shards/{space}/merge":        {path: "/v1/shards/jobs/merge", body: `{"slice": "0x0"}`},
		"POST /v1/shards/{space}/workers":      {path: "/v1/shards/jobs/workers", body: `{"session": "` + h.open.Session + `"}`, header: secret},
		"PUT /v1/shards/{space}/workers/{id}":  {path: "/v1/shards/jobs/workers/" + url.PathEscape(h.open.Session), body: `{"wait": 3}`, header: secret, wait: 3 * time.Second},
		"GET /v1/history":                      {local: true}, // it asks the journal, not the store
		"GET /v1/history/report":               {local: true},
		"GET /v1/watch":                        {local: true},
		"GET /v1/openapi.yaml":                 {path: "/v1/openapi.yaml", local: true},
		"GET /v1/whoami":                       {path: "/v1/whoami", local: true},
		"GET /v1/login":                        {path: "/v1/login", local: true},
		"GET /v1/store":                        {path: "/v1/store", local: true},
		"GET /v1/records":                      {path: "/v1/records"},
		"GET /v1/records/{key}":                {path: "/v1/records/record"},
		"PUT /v1/records/{key}":                {path: "/v1/records/record?version=" + url.QueryEscape(h.ver), body: h.rec},
		"DELETE /v1/records/{key}":             {path: "/v1/records/record?version=" + url.QueryEscape(h.ver)},
	}
}

// rdlmRequests are those of RDLM's protocol.
func (h *hung) rdlmRequests() map[string]request {
	return map[string]request{
		"POST /locks/{}":       {path: "/locks/free", body: `{"title": "me", "wait": 0, "lifetime": 3600}`},
		"GET /locks/{}/{}":     {path: h.lock},
		"PUT /locks/{}/{}":     {path: h.lock},
		"DELETE /locks/{}/{}":  {path: h.lock},
		"GET /resources":       {path: "/resources"},
		"GET /resources/{}":    {path: "/resources/lock"},
		"DELETE /resources":    {path: "/resources"},
		"DELETE /resources/{}": {path: "/resources/lock"},
		"GET /readyz":          {path: "/readyz"},
		"GET /metrics":         {path: "/metrics"},
	}
}

// Every route is answered within its bound by a server whose store hangs, with whichever of its requests that begins: with 503, or with 504
// when a write may have been done.
func TestFinding_L10_EachRouteIsBounded(t *testing.T) {
	var all []string
	synctest.Test(t, func(t *testing.T) {
		h := newHung(t)
		known := h.requests()
		for _, rt := range routes {
			route := rt.method + " " + rt.path
			if q, ok := known[route]; !ok {
				t.Errorf("%s has no request here: what bounds it?", route)
			} else if q.path != "" {
				all = append(all, route)
			}
		}
		for route := range h.rdlmRequests() {
			all = append(all, route)
		}
		h.shut(t)
	})
	for _, route := range all {
		t.Run(strings.NewReplacer("/", "_", " ", "").Replace(route), func(t *testing.T) {
			for hangs, done := 0, false; !done; hangs++ {
				synctest.Test(t, func(t *testing.T) { done = hangsAfter(t, route, hangs) })
				if hangs > 100 || t.Failed() {
					t.Fatalf("it fails, or asks the store for more than %d things", hangs)
				}
			}
		})
	}
}

// hangsAfter sends the request of a route to a server whose store answers so many operations. It reports whether those were all.
func hangsAfter(t *testing.T, route string, answered int) bool {
	h := newHung(t)
	defer h.shut(t)
	q, ours := h.requests()[route]
	if !ours {
		q = h.rdlmRequests()[route]
	}
	method, _, _ := strings.Cut(route, " ")
	h.left.Store(int64(answered))
	begun := time.Now()
	w := h.do(method, q.path, q.body, q.header...)
	took := time.Since(begun)
	if most := DefaultStoreTimeout + q.wait; took > most+time.Millisecond {
		t.Errorf("the store hangs after %d operations: answered after %v with %d %s, want %v at most", answered, took, w.Code, w.Body, most)
	}
	var p api.Problem
	switch {
	case h.left.Load() > 0 || w.Code/100 == 2:
		return h.left.Load() > 0 || q.local
	case !ours:
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("after %d operations: %d %s", answered, w.Code, w.Body)
		}
		return false
	case json.Unmarshal(w.Body.Bytes(), &p) != nil:
		t.Errorf("after %d operations: %d %s", answered, w.Code, w.Body)
	case p.Code == api.CodeNotElected, p.Code == api.CodeNoInstance: // a hand-over of a lease that is no candidate's, and to nobody: it was answered
		return true
	case p.Code != api.CodeUnavailable && p.Code != api.CodeUnknown || w.Header().Get("Retry-After") == "":
		t.Errorf("after %d operations: %d %s", answered, w.Code, w.Body)
	case p.Code == api.CodeUnavailable && p.Detail != "the store has not answered within 5s" && p.Detail != "the store does not answer":
		t.Errorf("after %d operations: %s", answered, p.Detail)
	case p.Code == api.CodeUnknown && (!strings.HasPrefix(p.Detail, "the write may have happened: the store ") || strings.Contains(p.Detail, "context")):
		t.Errorf("after %d operations: %s", answered, p.Detail)
	}
	return false
}

// shut ends the server and all that it has begun.
func (h *hung) shut(t *testing.T) {
	t.Helper()
	h.left.Store(-1)
	if err := h.Close(); err != nil && !errors.Is(err, store.ErrUnknownOutcome) {
		t.Error(err)
	}
	if err := h.net.Close(); err != nil {
		t.Error(err)
	}
}

// Many changes of one name are each answered within the bound, though one has to come after the other, and all after somebody who waits
// for the name for longer.
func TestFinding_L10_WhoIsBehindOthersIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHung(t)
		defer h.shut(t)
		h.left.Store(0)
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			h.do("POST", "/v1/leases/unknown", `{"wait": 60, "ttl": 86400}`)
		}()
		answers := make(chan string)
		for i := range 20 {
			go func() {
				time.Sleep(time.Duration(i+1) * 100 * time.Millisecond)
				begun := time.Now()
				w := h.do("PUT", "/v1/leases/"+[]string{"held", "unknown"}[i%2]+"?holder="+h.held.Holder+"&token="+h.held.Token.String(), "", api.HeaderSecret, h.held.Secret)
				answers <- fmt.Sprint(w.Code, " ", time.Since(begun) <= DefaultStoreTimeout+time.Millisecond)
			}()
		}
		for range 20 {
			if a := <-answers; a != "503 true" && a != "504 true" {
				t.Errorf("status, and within the bound: %s", a)
			}
		}
		<-waited
	})
}

// While the store hangs /healthz is answered at once, and asks it nothing; /readyz and the page say why in words.
func TestFinding_L10_HealthAndReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHung(t)
		defer h.shut(t)
		h.left.Store(0)
		asked, begun := h.net.Count(faulty.Get), time.Now()
		if w := h.do("GET", "/healthz", ""); w.Code != http.StatusOK || time.Since(begun) > 0 || h.net.Count(faulty.Get) != asked {
			t.Errorf("%d %s after %v, with %d reads", w.Code, w.Body, time.Since(begun), h.net.Count(faulty.Get)-asked)
		}
		if w := h.do("GET", "/readyz", ""); w.Code != http.StatusServiceUnavailable || w.Body.String() != "the store has not answered within 2s\n" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/v1/watch", nil))
		if text := w.Body.String(); !strings.Contains(text, `"error":"the store has not answered within 5s"`) {
			t.Errorf("the page is told: %s", text)
		}
	})
}

// What a library says is told without its own words.
func TestFinding_L10_Plainly(t *testing.T) {
	for said, want := range map[string]string{
		`etcd: rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`: "the store can't be reached: no connection to 127.0.0.1:1: connection refused",
		"rpc error: code = DeadlineExceeded desc = context deadline exceeded":                                                                                     "the store does not answer",
		"rpc error: code = Canceled desc = context canceled":                                                                                                      "the connection to the store broke off",
		"rpc error: code = Unavailable desc = etcdserver: no leader":                                                                                              "etcdserver: no leader",
		"leases.db was removed": "leases.db was removed",
	} {
		if got := plainly(errors.New(said)); got != want {
			t.Errorf("%s\nis told as %q, want %q", said, got, want)
		}
	}
}

// What a library said of a write is left out, as of a read, and nothing is said twice.
func TestFinding_L10_AnUnknownOutcomeIsSaidPlainly(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/v1/leases/job", nil)
	for err, want := range map[error]string{
		fmt.Errorf("open a session: %w", driver.Unknown("job", driver.Unknown("job", errors.New("rpc error: code = Unavailable desc = no leader")))): "no leader",
		driver.Unknown("job", context.DeadlineExceeded): "the store does not answer",
	} {
		if got := (&Server{}).failure(r, err); got.Code != api.CodeUnknown || got.Detail != mayHave+want {
			t.Errorf("%v: %s, %q", err, got.Code, got.Detail)
		}
	}
}
