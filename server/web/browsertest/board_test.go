package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// ask has a client of the server's API do something.
func (s *site) ask(ctx context.Context, t *testing.T, method, path, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// waiter waits for a name until the test ends. It returns once the server has it in its queue.
func (s *site) waiter(t *testing.T, name, holder string) {
	t.Helper()
	before := s.srv.Waiting()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.ask(ctx, t, http.MethodPost, "/v1/leases/"+name, `{"holder": "`+holder+`", "wait": 3600}`)
	}()
	t.Cleanup(func() {
		cancel()
		<-gone
	})
	for end := time.Now().Add(patience); s.srv.Waiting() == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s never waits for %s", holder, name)
		}
	}
}

// allStates has a name in each state, but for jeopardy, which doesn't last.
func allStates(t *testing.T) *site {
	s := serve(t, nil, server.Options{})
	s.put(t, store.Record{Key: "a/held", Owner: "app-1/x"})
	s.put(t, store.Record{Key: ".session/app-2/x/1", Owner: "app-2/x"})
	s.put(t, store.Record{Key: "a/session", Owner: "app-2/x", Session: ".session/app-2/x/1"})
	s.put(t, store.Record{Key: "c/orphan", Owner: "app-4/x", Session: ".session/app-4/x/1"})
	s.put(t, store.Record{Key: "b/expired", Owner: "app-3/x", TTL: time.Second})
	s.broken(t, store.Record{Key: "d/broken", Owner: "app-5/x", Info: map[string]string{"host": "db-7"}})
	s.put(t, store.Record{Key: "d/handed", Owner: "app-7/x", Intervention: store.InterventionHandedOver})
	s.put(t, store.Record{Key: "e/contended", Owner: "app-6/x"})
	s.put(t, store.Record{Key: "f/free", Token: 17})
	s.put(t, store.Record{Key: "g/paused", Token: 18})
	if err := election.SetPause(t.Context(), s.st, "g/paused", election.Pause{By: "ops", Reason: "failover drill", Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	s.waiter(t, "e%2Fcontended", "ci-1")
	return s
}

func TestStates(t *testing.T) {
	s := allStates(t)
	p := open(t, desk, s.URL+"/#/")
	for name, state := range map[string]string{
		"a/held": "held", "a/session": "held", "b/expired": "expired", "d/broken": "broken", "e/contended": "contended", "f/free": "free",
		"g/paused": "paused", "c/orphan": "expired", "d/handed": "handed over",
	} {
		p.state(name, state)
	}
	p.until("why it is paused, and by whom", row("g/paused")+`.querySelector('.holder').innerText === 'paused by ops: failover drill'`)
	p.until("what is left of its session", row("a/session")+`.querySelector('.expiry').innerText.startsWith('in ')`)
	p.until("the session is over", row("c/orphan")+`.querySelector('.expiry').innerText === 'session over'`)
	order := eval[string](p, `[...document.querySelectorAll('#rows a')].map((a) => a.textContent).join()`)
	if want := "b/expired,c/orphan,d/broken,d/handed,e/contended,g/paused,a/held,a/session,f/free"; order != want {
		t.Errorf("in the order %s, want %s", order, want)
	}
	p.looks("states")
}

// The board says what a name is, and who shares it; the detail names each of them.
func TestFinding_S1_ThePageKnowsKinds(t *testing.T) {
	s := serve(t, nil, server.Options{})
	shared := func(kind store.Kind, limit int, owners ...string) []byte {
		var held []map[string]any
		for i, owner := range owners {
			held = append(held, map[string]any{"id": owner, "session": ".session/" + owner + "/1", "weight": 1, "slot": i, "token": 20 + i})
		}
		data, err := json.Marshal(map[string]any{"v": 1, "kind": kind, "limit": limit, "held": held})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	s.put(t, store.Record{Key: "lease", Owner: "app-1/x", Kind: store.KindLease})
	s.put(t, store.Record{Key: "readers", Kind: store.KindRW, Data: shared(store.KindRW, 100, "app-2/x", "app-3/x")})
	s.put(t, store.Record{Key: "slots", Kind: store.KindSemaphore, Data: shared(store.KindSemaphore, 5, "app-4/x")})
	s.put(t, store.Record{Key: "spare", Kind: store.KindSemaphore, Data: shared(store.KindSemaphore, 5)})
	s.put(t, store.Record{Key: "leader", Owner: "app-5/x", Kind: store.KindElection})
	s.put(t, store.Record{Key: "machines", Kind: store.KindPool})
	p := open(t, desk, s.URL+"/#/")
	for name, want := range map[string]struct{ state, kind, holder string }{
		"lease":    {"held", "", "app-1/x"},
		"readers":  {"held", "read/write lock", "shared by 2"},
		"slots":    {"held", "semaphore", "app-4/x"},
		"spare":    {"free", "semaphore", "–"},
		"leader":   {"held", "election", "app-5/x"},
		"machines": {"declared", "pool of identities", "–"},
	} {
		p.state(name, want.state)
		p.until(name+" says what it is", fmt.Sprintf("%s.querySelector('.kind').innerText === %q", row(name), want.kind))
		p.until(name+" says who has it", fmt.Sprintf("%s.querySelector('.holder').innerText === %q", row(name), want.holder))
	}
	p.shot("kinds")
	p.fit()
	p = open(t, desk, s.URL+"/#/readers")
	p.until("each of them", `[...document.querySelectorAll('.facts > div')].map((d) => d.innerText.replace(/\s+/, ' ')).join().match(/2 share it.*Kind read.write lock.*app-2.x.*app-3.x/s)`)
	p.shot("kinds-detail")
	p.fit()
}

// history notes the states that each name on the board goes through, so that none is missed however busy the machine is. While the page
// hears nothing, for want of time, it shows that it knows none.
const history = `window.went = {}; new MutationObserver(() => {
	for (const r of document.querySelectorAll('#rows .row')) {
		const all = went[r.querySelector('a').textContent] ??= [], state = r.querySelector('.badge').dataset.state;
		if (state !== 'unknown' && all.at(-1) !== state) all.push(state);
	}
}).observe(document.getElementById('rows'), {subtree: true, childList: true, attributes: true, attributeFilter: ['data-state']})`

// A holder that has not renewed for two thirds of its TTL is in jeopardy, before it expires; a renewal ends that. The leases of a
// session drain with it, and are refilled by its renewals. The TTL is long, since a browser on a busy machine has to see each state.
func TestJeopardy(t *testing.T) {
	t.Parallel() // it waits for terms to end
	s := serve(t, nil, server.Options{})
	p := open(t, desk, s.URL+"/#/")
	p.do(chromedp.Evaluate[chromedp.Void](history))
	const ttl, id = 36 * time.Second, ".session/worker/x/1"
	session := s.put(t, store.Record{Key: id, Owner: "worker/x", TTL: ttl}) // first: one that isn't there when it is looked for is over for good
	job := store.Record{Key: "job", Owner: "a/x", TTL: ttl}
	s.put(t, store.Record{Key: "kept/1", Owner: "worker/x", Session: id})
	s.put(t, store.Record{Key: "kept/2", Owner: "worker/x", Session: id})
	went := ""
	for _, round := range []string{"held,in jeopardy", ",held,in jeopardy,expired"} {
		session, job = s.put(t, session), s.put(t, job)
		went += round
		for _, name := range []string{"job", "kept/1", "kept/2"} {
			p.until(name+" went "+went, fmt.Sprintf(`went[%q]?.join() === %q`, name, went))
		}
	}
	p.shot("after-jeopardy")
	p.do(chromedp.Navigate(s.URL + "/#/kept%2F1"))
	p.until("the detail says so", `document.querySelector('.meaning').innerText.includes('worker/x has not renewed')`)
}

// What changes is seen while the page is looked at.
func TestLive(t *testing.T) {
	s := serve(t, nil, server.Options{})
	p := open(t, desk, s.URL+"/#/")
	p.until("empty", `!document.getElementById('empty').hidden`)
	if status := s.ask(t.Context(), t, http.MethodPost, "/v1/leases/job", `{"holder": "me", "ttl": 300}`); status != http.StatusCreated {
		t.Fatal(status)
	}
	p.state("job", "held")
	s.waiter(t, "job", "next")
	p.state("job", "contended")
	p.until("draining", `parseFloat(document.querySelector('#rows .bar').style.backgroundSize) < 97`)
}

// retype selects what is in an input, so that what is typed takes its place.
func retype(id string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`document.getElementById('` + id + `').select()`)
}

func TestFilters(t *testing.T) {
	s := allStates(t)
	p := open(t, desk, s.URL+"/#/")
	p.state("e/contended", "contended")
	count := func(what string, n string) {
		t.Helper()
		p.until(what, `document.querySelectorAll('#rows .row').length === `+n)
	}
	p.do(chromedp.KeyEvent("/"))
	p.until("in the search", `document.activeElement.id === 'search'`)
	p.do(retype("search"), chromedp.KeyEvent("APP-6"))
	count("one row of that holder", "1")
	p.do(retype("search"), chromedp.KeyEvent(" "))
	count("all rows", "9")
	broken := chromedp.Click(chromedp.CSS(`#states [data-state="broken"]`))
	p.do(broken)
	count("the broken row", "1")
	p.until("the query says so", `document.getElementById('search').value === 'state:broken' && location.hash === '#/?q=state%3Abroken'`)
	p.do(broken, chromedp.SendKeys(chromedp.CSS("#prefix"), "a/"))
	count("the rows of the prefix", "2")
	p.do(chromedp.SendKeys(chromedp.CSS("#prefix"), "z"))
	p.until("empty", `!document.getElementById('empty').hidden`)
	p.shot("nothing-fits")
	p.fit()
	p.do(chromedp.Navigate(s.URL + "/?prefix=a%2F#/?q=app-2"))
	count("the row that the address seeks", "1")
	p.until("it says what it seeks", `document.getElementById('prefix').value === 'a/' && document.getElementById('search').value === 'app-2'`)
	p.do(retype("search"), chromedp.KeyEvent("x"))
	p.until("the address follows", `location.search + location.hash === '?prefix=a%2F#/?q=x'`)
}

// The board is worked without a mouse: arrows go from row to row, Enter opens one, Escape comes back to it.
func TestKeyboard(t *testing.T) {
	s := allStates(t)
	p := open(t, desk, s.URL+"/#/")
	for name, state := range map[string]string{"b/expired": "expired", "c/orphan": "expired", "d/broken": "broken", "d/handed": "handed over", "e/contended": "contended"} {
		p.state(name, state) // rows keep their places from here on
	}
	p.do(chromedp.Focus(chromedp.CSS("#rows a")), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	p.until("at the third row", `document.activeElement.textContent === 'd/broken'`)
	p.do(chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	p.until("the detail is open", `document.querySelector('#title')?.textContent === 'c/orphan' && document.activeElement.id === 'title'`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("back where it was", `document.activeElement.matches('#rows a') && document.activeElement.textContent === 'c/orphan'`)
}
