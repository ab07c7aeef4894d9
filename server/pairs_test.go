package server_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// pairWait is the waitTimeInSeconds of pairs here, and pairTTL their TTL: a machine that stalls for some seconds ends no term.
const (
	pairWait     = time.Second
	pairFailures = 8
	pairTTL      = pairFailures * pairWait
)

// instance runs an instance of a pair until the test ends, or until stop is called.
func (s *site) instance(t *testing.T, lease, pod, region string) (state *admiral.State, stop func()) {
	t.Helper()
	cfg := admiral.Config{LeaseName: lease, PodIdentifier: pod, PodRegion: region, WaitTime: pairWait, FailureThreshold: pairFailures}
	checker, err := admiral.New(func(context.Context) (store.Store, error) { return s.db.Open(), nil }, cfg, admiral.Options{})
	if err != nil {
		t.Fatal(err)
	}
	state = admiral.NewState(nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- checker.Run(ctx, state) }()
	var once atomic.Bool
	stop = func() {
		if cancel(); once.CompareAndSwap(false, true) {
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", pod, err)
			}
		}
	}
	t.Cleanup(stop)
	return state, stop
}

// pairIs asks until the pair is as ok wants it.
func pairIs(t *testing.T, c *client.Client, what string, ok func(client.Pair) bool) client.Pair {
	t.Helper()
	for begun := time.Now(); ; {
		p, err := c.Pair(t.Context(), "prod")
		if err == nil && ok(p) {
			return p
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("never %s: %+v, %v", what, p, err)
		}
	}
}

func activeIs(pod string) func(client.Pair) bool {
	return func(p client.Pair) bool { return p.State == "active" && p.Pod == pod }
}

// An operator sees a pair, switches it over, holds it passive and ends the hold.
func TestPairs(t *testing.T) {
	events := make(chan server.Event, 1000)
	s := newSite(t, server.Options{OnEvent: func(e server.Event) {
		if e.Action != server.Read {
			events <- e
		}
	}})
	c, ctx := s.client(t, s.URL), t.Context()
	s.instance(t, "prod", "east", "us-east-2")
	pairIs(t, c, "east is active", activeIs("east"))
	west, _ := s.instance(t, "prod", "west", "us-west-2")
	p := pairIs(t, c, "both have answered since east has become active", func(p client.Pair) bool {
		return len(p.Instances) == 2 && slices.ContainsFunc(p.Instances, func(i client.Instance) bool { return i.Status == "active" })
	})
	if p.Region != "us-east-2" || p.TTL != pairTTL || p.Asked.IsZero() || p.Token == 0 || p.Since.IsZero() {
		t.Errorf("%+v", p)
	}
	for _, i := range p.Instances {
		if want := map[string]string{"east": "active", "west": "passive"}[i.Pod]; i.Status != want || (i.Waits == "") != (i.Pod == "east") {
			t.Errorf("%+v", i)
		}
	}
	if all, err := c.Pairs(ctx); err != nil || len(all) != 1 || all[0].Lease != "prod" || all[0].Pod != "east" {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := c.SwitchOver(ctx, "prod", client.Switchover{To: "west", Token: p.Token - 1}); !errors.Is(err, fence.ErrStale) {
		t.Errorf("of another term: %v", err)
	}
	if _, err := c.SwitchOver(ctx, "prod", client.Switchover{To: "north", Token: p.Token, Wait: time.Second}); !errors.Is(err, client.ErrNoInstance) || !strings.Contains(err.Error(), "east (active)") {
		t.Errorf("to nobody: %v", err)
	}
	if now, err := c.Pair(ctx, "prod"); err != nil || now.Token != p.Token {
		t.Errorf("what was refused has changed it: %+v, %v", now, err)
	}
	did, err := c.SwitchOver(ctx, "prod", client.Switchover{To: "west", Token: p.Token})
	if err != nil || !activeIs("west")(did) || did.Token <= p.Token || len(did.Changes) < 2 || did.Changes[0].Gap == nil || *did.Changes[0].Gap > 2*pairWait {
		t.Fatalf("%+v, %v", did, err)
	}
	if _, err := c.HoldPassive(ctx, "prod", client.PassiveOptions{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("without a reason: %v", err)
	}
	if _, err := c.HoldPassive(ctx, "prod", client.PassiveOptions{Reason: "late", Token: p.Token}); !errors.Is(err, fence.ErrStale) {
		t.Errorf("of another term: %v", err)
	}
	held, err := c.HoldPassive(ctx, "prod", client.PassiveOptions{Reason: "a move", Token: did.Token, Wait: time.Minute})
	if err != nil || held.State != "held passive" || !held.Settled || !strings.HasSuffix(held.Note, "a move") {
		t.Fatalf("%+v, %v", held, err)
	}
	for _, i := range held.Instances {
		if i.Status == "active" {
			t.Errorf("an instance is shown as active under a hold that is settled: %+v", held)
		}
	}
	if st := west.Status(); !st.ReadOnly {
		t.Errorf("west is active under a hold that is settled: %+v", st)
	}
	if _, err := c.SwitchOver(ctx, "prod", client.Switchover{To: "east"}); !errors.Is(err, client.ErrNobodyActive) {
		t.Errorf("switched over while it is held: %v", err)
	}
	if _, err := c.EndHold(ctx, "prod"); err != nil {
		t.Fatal(err)
	}
	pairIs(t, c, "somebody is active", func(p client.Pair) bool { return p.State == "active" })
	if _, err := c.EndHold(ctx, "prod"); !errors.Is(err, client.ErrNotHeldPassive) {
		t.Errorf("ended again: %v", err)
	}
	var did2 []string
	for len(events) > 0 {
		if e := <-events; e.Outcome == "ok" {
			did2 = append(did2, e.Op+" "+e.Name+" "+e.Note)
		}
	}
	if got := strings.Join(did2, "; "); got != "switch over prod to west; hold passive prod a move; end hold prod " {
		t.Errorf("audited: %s", got)
	}
}

// The server settles a hold that nobody waits for, so that its end takes effect at once.
func TestHoldIsSettledByTheServer(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	s.instance(t, "prod", "east", "")
	pairIs(t, c, "east is active", activeIs("east"))
	held, err := c.HoldPassive(t.Context(), "prod", client.PassiveOptions{Reason: "a move"})
	if err != nil || held.Settled {
		t.Fatalf("%+v, %v", held, err)
	}
	pairIs(t, c, "the hold is settled", func(p client.Pair) bool { return p.Settled })
}

// After a switchover nobody says what instances said before it: who was active then is not. One that is asked in the very moment in which
// it takes the lease may say that it isn't active yet, but not later.
func TestPairAfterAChange(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	s.instance(t, "prod", "east", "")
	pairIs(t, c, "east is active", activeIs("east"))
	s.instance(t, "prod", "west", "")
	pairIs(t, c, "both have answered", func(p client.Pair) bool { return len(p.Instances) == 2 })
	ordered, active := time.Now(), false
	p, err := c.SwitchOver(t.Context(), "prod", client.Switchover{To: "west"})
	for begun := time.Now(); err == nil && time.Since(begun) < 5*time.Second; p, err = c.Pair(t.Context(), "prod") {
		if len(p.Instances) != 2 {
			t.Fatalf("%+v", p)
		}
		for _, i := range p.Instances {
			yet := i.Pod == "west" && i.Status == "passive" && p.Asked.After(ordered) && !active
			if want := map[string]string{"west": "active", "east": "passive"}[i.Pod]; i.Status != want && !yet {
				t.Fatalf("%+v", p)
			}
			active = active || i.Status == "active"
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	pairIs(t, c, "west is active", activeIs("west"))
}

// An instance of Admiral itself holds the lease by a row of its own making: it is shown, and can't be switched over, but held passive.
func TestPairWithAdmiral(t *testing.T) {
	s := newSite(t, server.Options{})
	c := s.client(t, s.URL)
	st := s.db.Open()
	rec, err := st.Put(t.Context(), store.Record{Key: "prod", Owner: "east", Token: 7, TTL: pairTTL, Nonce: "admiral"})
	if err != nil {
		t.Fatal(err)
	}
	s.instance(t, "prod", "west", "")
	p := pairIs(t, c, "west has answered", func(p client.Pair) bool { return len(p.Instances) == 1 })
	if p.State != "active" || p.Pod != "" || p.Owner != "east" || p.Token != rec.Token || p.TTL != pairTTL || p.Changes[0].To != "east" || !p.Since.IsZero() || !p.Changes[0].At.IsZero() {
		t.Errorf("%+v", p)
	}
	if _, err := c.SwitchOver(t.Context(), "prod", client.Switchover{To: "west"}); !errors.Is(err, client.ErrForeign) {
		t.Errorf("switched over: %v", err)
	}
	if now, err := st.Get(t.Context(), "prod"); err != nil || now.Version != rec.Version {
		t.Errorf("%+v, was %+v, %v", now, rec, err)
	}
	if held, err := c.HoldPassive(t.Context(), "prod", client.PassiveOptions{Reason: "x", Token: rec.Token, Wait: time.Minute}); err != nil || !held.Settled {
		t.Errorf("%+v, %v", held, err)
	}
}

// Anything that stands in the record of the calls, or in the row, is shown or refused; it takes nothing down.
func TestPairOfNonsense(t *testing.T) {
	s := newSite(t, server.Options{})
	st := s.db.Open()
	nonsense := store.Record{Key: "prod", Owner: "//x", Token: 1 << 40, TTL: time.Hour, Info: map[string]string{"pod": "<b>", "region": "<i>"}, Nonce: "n"}
	for _, rec := range []store.Record{nonsense, {Key: ".standby/prod", Data: []byte(`{"id": 7, "answers": "all"}`), Nonce: "n"}, {Key: ".standby/", Nonce: "n"}, {Key: ".standby/.x", Nonce: "n"}, {Key: ".standby/gone", Nonce: "n"}} {
		if _, err := st.Put(t.Context(), rec); err != nil {
			t.Logf("the store refuses %s: %v", rec.Key, err)
		}
	}
	var p api.Pair
	if want(t, s.ask(t, "GET", "/v1/pairs/prod", "", &p), http.StatusOK); p.Pod != "<b>" || p.State != api.PairActive {
		t.Errorf("%+v", p)
	}
	if want(t, s.ask(t, "GET", "/v1/pairs/gone", "", &p), http.StatusOK); p.State != api.PairFree {
		t.Errorf("%+v", p)
	}
	var all api.Pairs
	want(t, s.ask(t, "GET", "/v1/pairs", "", &all), http.StatusOK)
	for _, p := range all.Pairs {
		if p.Lease != "prod" && p.Lease != "gone" {
			t.Errorf("lists %q", p.Lease)
		}
	}
	for path, status := range map[string]int{".standby%2Fprod": 400, "a%2Fb": 404, "%00": 400} {
		if got := s.ask(t, "POST", "/v1/pairs/"+path+"/hold", `{"reason": "x"}`, nil); got.status != status {
			t.Errorf("%s: %d, want %d", path, got.status, status)
		}
	}
	for body, field := range map[string]string{`{}`: "to", `{"to": "x", "wait": 0.1}`: "wait", `{"to": "x", "token": 9007199254740993}`: "token", `{"to": "x", "wait": -1}`: "wait"} {
		var p api.Problem
		if got := s.ask(t, "POST", "/v1/pairs/prod/switchover", body, &p); got.status != http.StatusBadRequest || p.Field != field {
			t.Errorf("%s: %d %+v", body, got.status, p)
		}
	}
}

// A server whose store is down says so for a pair, whatever was known of it, and changes nothing.
func TestPairWithoutAStore(t *testing.T) {
	var down atomic.Bool
	s := newSiteOn(t, server.Options{}, func(st store.Store) store.Store { return cut{st, &down} })
	s.instance(t, "prod", "east", "")
	pairIs(t, s.client(t, s.URL), "east has answered", func(p client.Pair) bool { return len(p.Instances) == 1 })
	down.Store(true)
	for path, body := range map[string]string{"": "", "/prod": "", "/prod/switchover": `{"to": "east"}`, "/prod/hold": `{"reason": "x"}`, "/prod/resume": ""} {
		method := http.MethodPost
		if path == "" || path == "/prod" {
			method = http.MethodGet
		}
		var p api.Problem
		if got := s.ask(t, method, "/v1/pairs"+path, body, &p); got.status != http.StatusServiceUnavailable || p.Code != api.CodeUnavailable {
			t.Errorf("%s: %d %+v", path, got.status, p)
		}
	}
	down.Store(false)
	pairIs(t, s.client(t, s.URL), "east is active", activeIs("east"))
}

// cut is a store that can't be reached now and then.
type cut struct {
	store.Store
	down *atomic.Bool
}

var errCut = errors.New("connection refused")

func (c cut) Get(ctx context.Context, key string) (store.Record, error) {
	if c.down.Load() {
		return store.Record{}, errCut
	}
	return c.Store.Get(ctx, key)
}

func (c cut) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	if c.down.Load() {
		return store.Record{}, errCut
	}
	return c.Store.Put(ctx, rec)
}

func (c cut) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	if c.down.Load() {
		return func(yield func(store.Record, error) bool) { yield(store.Record{}, errCut) }
	}
	return c.Store.List(ctx, prefix)
}

func (c cut) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if c.down.Load() {
		return store.Record{}, errCut
	}
	return store.Wait(ctx, c.Store, key, version)
}

// What is no pair is not held passive: its holder would be put out by whoever may pause.
func TestNoPair(t *testing.T) {
	s := newSite(t, server.Options{})
	g := s.acquired(t, "job", `{"holder": "ci"}`)
	for path, body := range map[string]string{"": "", "/switchover": `{"to": "x"}`, "/hold": `{"reason": "x"}`, "/resume": ""} {
		method := http.MethodPost
		if path == "" {
			method = http.MethodGet
		}
		var p api.Problem
		if got := s.ask(t, method, "/v1/pairs/job"+path, body, &p); got.status != http.StatusNotFound || p.Code != api.CodeNoPair {
			t.Errorf("%s: %d, %+v", path, got.status, p)
		}
	}
	var l api.Lease
	if want(t, s.ask(t, "GET", "/v1/leases/job", "", &l), http.StatusOK); l.Holder != g.Holder || l.Token != g.Token {
		t.Errorf("%+v, was %+v", l, g)
	}
	var all api.Pairs
	if want(t, s.ask(t, "GET", "/v1/pairs", "", &all), http.StatusOK); len(all.Pairs) != 0 {
		t.Errorf("%+v", all)
	}
}

// reader may do to names of a prefix what its actions say.
type reader struct {
	prefix string
	may    map[server.Action]bool
}

func (reader) Name() string { return "reader" }
func (r reader) May(a server.Action, name string) bool {
	return r.may[a] && strings.HasPrefix(name, r.prefix)
}

// A caller sees the pairs whose names it may read, and gives the orders that it may give to those.
func TestRightsToPairs(t *testing.T) {
	var who atomic.Pointer[reader]
	s := newSite(t, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return *who.Load(), nil }})
	op := admiral.Operator{Store: s.db.Open(), Config: admiral.Config{LeaseName: "prod"}, By: "test"}
	s.instance(t, "prod", "east", "")
	who.Store(&reader{"", map[server.Action]bool{server.Read: true}})
	pairIs(t, s.client(t, s.URL), "east is active", activeIs("east"))
	before, err := op.Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	orders := map[string]string{"/switchover": `{"to": "east"}`, "/hold": `{"reason": "x"}`, "/resume": ""}
	for name, c := range map[string]struct {
		who   reader
		sees  bool
		gives string // the orders
	}{
		"reads":            {reader{"prod", map[server.Action]bool{server.Read: true}}, true, ""},
		"reads others":     {reader{"test", map[server.Action]bool{server.Read: true, server.Pause: true, server.Handoff: true}}, false, ""},
		"reads, hands off": {reader{"prod", map[server.Action]bool{server.Read: true, server.Handoff: true}}, true, "/switchover"},
		"only pauses":      {reader{"prod", map[server.Action]bool{server.Pause: true}}, false, "/resume"},
	} {
		who.Store(&c.who)
		var all api.Pairs
		if want(t, s.ask(t, "GET", "/v1/pairs", "", &all), http.StatusOK); (len(all.Pairs) == 1) != c.sees {
			t.Errorf("%s: lists %+v", name, all.Pairs)
		}
		if got := s.ask(t, "GET", "/v1/pairs/prod", "", nil); (got.status == http.StatusOK) != c.sees || !c.sees && got.status != http.StatusForbidden {
			t.Errorf("%s: is shown the pair: %d", name, got.status)
		}
		for path, body := range orders {
			if path == "/hold" && c.gives == "/resume" {
				continue // it may
			}
			if got := s.ask(t, "POST", "/v1/pairs/prod"+path, body, nil); (got.status == http.StatusForbidden) == (path == c.gives) {
				t.Errorf("%s: %s: %d", name, path, got.status)
			}
		}
	}
	after, err := op.Record(t.Context())
	if err != nil || after.Owner != before.Owner || after.Token != before.Token {
		t.Errorf("%+v, was %+v, %v", after, before, err)
	}
}
