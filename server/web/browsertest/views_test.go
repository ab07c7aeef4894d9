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

	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// town has something for each view to show.
func town(t *testing.T) *site {
	s := allStates(t)
	s.put(t, store.Record{Key: ".session/web1/12/k", Owner: "web1/12/k"})
	for _, name := range []string{"jobs/a", "jobs/b", "jobs/c"} {
		s.put(t, store.Record{Key: name, Owner: "web1/12/k", Session: ".session/web1/12/k"})
	}
	data, err := json.Marshal(map[string]any{"v": 1, "kind": store.KindSemaphore, "limit": 5, "held": []map[string]any{
		{"id": "web2/9/m", "session": ".session/web2/9/m", "weight": 1, "slot": 0, "token": 20},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, store.Record{Key: "slots", Kind: store.KindSemaphore, Data: data})
	s.put(t, store.Record{Key: "leader", Owner: "web1/12/k", Kind: store.KindElection})
	for _, as := range []string{"web1", "web2"} {
		if status := s.ask(t.Context(), t, http.MethodPost, "/v1/identities/machines", `{"range": "1-254", "as": "`+as+`", "ttl": 3600}`); status >= 300 {
			t.Fatal(status)
		}
	}
	return s
}

// Each view shows what it is for, in light, in dark and on a phone, fits the screen, and axe finds nothing.
func TestViews(t *testing.T) {
	s := town(t)
	cell := func(view, row, column string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('.%s #rows .row')].find((r) => r.querySelector('a').textContent === %q).children[%s].innerText`, view, row, column)
	}
	p := open(t, desk, s.URL+"/#overview")
	for _, view := range []struct{ hash, what, js string }{
		{"#overview", "the counts", `[...document.querySelectorAll('.tiles li')].map((e) => e.innerText.replace(/\s+/, ' ')).join().match(/held,1 waiting,0 in jeopardy,2 not renewed,1 broken,1 paused/) && document.querySelectorAll('.wrong li .badge').length === 3`},
		{"#holders", "what a host holds", cell("holders", "web1", "2") + ` === '5'`},
		{"#sessions", "what a session keeps", cell("sessions", "web1/12/k", "2") + ` === '3'`},
		{"#elections", "who leads, and what is paused", cell("elections", "g/paused", "1") + ` === 'paused' && ` + cell("elections", "leader", "2") + ` === 'web1/12/k'`},
		{"#locks", "the longest queue first", `document.querySelector('.locks #rows .row a').textContent === 'e/contended' && document.querySelector('.locks #rows .row .long').textContent.startsWith('1. ci-1')`},
		{"#locks?q=slots", "the slots", cell("locks", "slots", "3") + `.startsWith('1 of 5 slots')`},
		{"#pools", "how many values are taken", `document.querySelector('.pools #rows a').textContent === 'machines' && [...document.querySelectorAll('.pools #rows .row > span')].some((e) => e.textContent === '252')`},
		{"#pools/machines", "who has which value", `[...document.querySelectorAll('.values #rows .row')].map((r) => r.children[1].textContent).sort().join() === 'web1,web2'`},
	} {
		eval[bool](p, `location.hash = '`+view.hash+`'; true`)
		p.until(view.what, view.js)
		p.until("its entry is the current one", `document.querySelectorAll('.views [aria-current=page]').length === 1`)
		p.looks("view-" + strings.NewReplacer("#", "", "/", "-", "?", "-", "=", "-").Replace(view.hash))
	}
}

// A query finds by what it asks for; what it has wrong, it says, and how it is right.
func TestQuery(t *testing.T) {
	s := town(t)
	p := open(t, desk, s.URL+"/#/")
	p.state("b/expired", "expired")
	p.state("e/contended", "contended")
	names := `[...document.querySelectorAll('#rows .row a')].map((a) => a.textContent).sort().join()`
	for query, want := range map[string]string{
		"state:expired holder:app-3":     "b/expired",
		"state:bad -state:broken":        "b/expired,c/orphan",
		"host:web1 prefix:jobs/":         "jobs/a,jobs/b,jobs/c",
		"kind:semaphore":                 "slots",
		`session:web1 name:"jobs/a"`:     "jobs/a",
		"waiters:>0":                     "e/contended",
		"token:18":                       "g/paused",
		`"app-6/x"`:                      "e/contended",
		"-state:held -prefix:f -kind:rw": "b/expired,c/orphan,d/broken,d/handed,e/contended,g/paused,machines",
	} {
		eval[bool](p, fmt.Sprintf(`location.hash = '#/?' + new URLSearchParams({q: %q}); true`, query))
		p.until("found by "+query, fmt.Sprintf(`%s === %q`, names, want))
		p.until("nothing is wrong with "+query, `document.getElementById('query-problem').hidden`)
	}
	for query, want := range map[string]string{
		"state:jepardy": "no state is called jepardy",
		"stat:held":     "did you mean state:?",
		"waiters:many":  "write waiters:2, or waiters:>0",
		"kind:lock":     "no kind is called lock",
		"zone:eu":       `To find the text, write "zone:eu"`,
		"holder:":       "holder: wants a value",
		"token:x":       "x is no token",
	} {
		eval[bool](p, fmt.Sprintf(`location.hash = '#/?' + new URLSearchParams({q: %q}); true`, query))
		p.until("it says what is wrong with "+query, fmt.Sprintf(`!document.getElementById('query-problem').hidden && document.getElementById('query-problem').textContent.includes(%q)`, want))
	}
	p.shot("query-problem")
	p.fit()
}

// What is sorted and grouped is in the address, and the back button comes back to what was before.
func TestSortGroupAndBack(t *testing.T) {
	s := town(t)
	p := open(t, desk, s.URL+"/#/?q=prefix:jobs/")
	names := `[...document.querySelectorAll('#rows .row:not(.group) a')].map((a) => a.textContent).join()`
	p.until("three", names+` === 'jobs/a,jobs/b,jobs/c'`)
	head := chromedp.Click(chromedp.CSS(".head > span:nth-child(2) button"))
	p.do(head, head)
	p.until("the other way round", names+` === 'jobs/c,jobs/b,jobs/a' && location.hash.includes('sort=-name') && document.querySelector('[aria-sort=descending]').innerText.startsWith('Name')`)
	eval[bool](p, `history.back(); true`)
	p.until("in order again", names+` === 'jobs/a,jobs/b,jobs/c' && location.hash.includes('sort=name')`)
	eval[bool](p, `location.hash = '#/?group=holder'; true`)
	p.until("under its host", `[...document.querySelectorAll('.row.group')].some((r) => r.innerText.replace(/\s+/g, ' ') === 'web1 5 names')`)
	p.until("what is wrong with a group", `[...document.querySelectorAll('.row.group')].some((r) => r.innerText.replace(/\s+/g, ' ') === 'app-3 1 name, 1 to look at')`)
	p.shot("grouped")
	p.fit()
	eval[bool](p, `[...document.querySelectorAll('.row.group button')].find((b) => b.textContent === 'web1').click(); true`)
	p.until("closed", `!`+names+`.includes('jobs/a')`)
	eval[bool](p, `location.hash = '#holders'; true`)
	p.until("the other view", `document.querySelector('.holders')`)
	eval[bool](p, `history.back(); true`)
	p.until("grouped as before", `document.querySelector('.row.group') && document.querySelector('select').value === 'holder'`)
}

// Everything is reached by keys: the palette, the views, the list of keys.
func TestPalette(t *testing.T) {
	s := town(t)
	p := open(t, desk, s.URL+"/#/")
	p.state("e/contended", "contended")
	ctrlK := func() { p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(2))) }
	ctrlK()
	p.until("it is open", `document.querySelector('#palette[open] input')`)
	p.do(chromedp.SendKeys(chromedp.CSS("#palette input"), "web1"))
	p.until("the host is offered", `[...document.querySelectorAll('#palette li')].some((l) => l.innerText.includes('what this host holds'))`)
	p.looks("palette")
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until("what it holds", `location.hash === '#/?q=host%3Aweb1' && document.querySelectorAll('#rows .row').length === 5`)
	ctrlK()
	p.do(chromedp.SendKeys(chromedp.CSS("#palette input"), "contd"), chromedp.KeyEvent(kb.Enter)) // letters in their order
	p.until("the name", `document.querySelector('#title')?.textContent === 'e/contended'`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until("back to what was found", `location.hash === '#/?q=host%3Aweb1'`)
	for range 20 { // the second letter counts for 1.5 s after the first, which a machine that is busy may take
		p.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("s"))
		if eval[string](p, `location.hash`) == "#sessions" {
			break
		}
	}
	p.until("the sessions", `location.hash === '#sessions'`)
	p.do(chromedp.KeyEvent("?"))
	p.until("the keys", `document.querySelector('#palette[open] dl')`)
	p.looks("keys")
}

// A token is short, whole on hover and for a screen reader.
func TestTokensAreShort(t *testing.T) {
	s := allStates(t)
	p := open(t, desk, s.URL+"/#/")
	p.state("a/held", "held")
	p.until("the last six digits", row("a/held")+`.querySelector('.token').innerText === '…126100'`)
	p.until("the whole on hover", row("a/held")+`.querySelector('.token button').title.startsWith('1795281126100')`)
	p.until("a short one is whole", row("f/free")+`.querySelector('.token').innerText === '17'`)
	eval[bool](p, row("a/held")+`.querySelector('.token button').click(); true`)
	p.until("copied, or selected whole", `/copied|1795281126100/.test(`+row("a/held")+`.querySelector('.token').innerText)`)
}

// Where nobody ever held anything, the page shows how to take a lease; one that is taken appears.
func TestFirstRun(t *testing.T) {
	s := serve(t, nil, server.Options{})
	p := open(t, desk, s.URL)
	p.until("how to take one", `document.querySelector('.firstrun').innerText.includes('leasehold run hello --store '+location.origin)`)
	p.shot("first-run")
	p.fit()
	if status := s.ask(t.Context(), t, http.MethodPost, "/v1/leases/hello", `{"holder": "me", "ttl": 3600}`); status != http.StatusCreated {
		t.Fatal(status)
	}
	p.until("it is there", `document.querySelector('.tiles [data-id=held] b').textContent === '1' && /hello.*taken by me/s.test(document.querySelector('.feed').innerText)`)
}

// Every pair of colours that text is written in has a contrast of 4.5 at least, in light and in dark: of each state on its badge, and of what
// is soft.
func TestPalettesContrast(t *testing.T) {
	s := serve(t, nil, server.Options{})
	p := open(t, desk, s.URL)
	for _, sc := range []screen{desk, night} {
		p.on(sc)
		got := eval[map[string]float64](p, `(() => {
			const draw = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
			const rgb = (c) => { draw.fillStyle = c; draw.fillRect(0, 0, 1, 1); return [...draw.getImageData(0, 0, 1, 1).data].slice(0, 3); };
			const lum = (c) => c.map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }).reduce((n, v, i) => n + v * [.2126, .7152, .0722][i], 0);
			const ratio = (a, b) => (Math.max(lum(a), lum(b)) + .05) / (Math.min(lum(a), lum(b)) + .05);
			const style = getComputedStyle(document.documentElement), of = (n) => rgb(style.getPropertyValue('--' + n).trim());
			const tint = parseFloat(style.getPropertyValue('--tint')) / 100, card = of('card'), page = of('page');
			const all = {};
			for (const n of ['expired', 'jeopardy', 'broken', 'contended', 'held', 'free', 'unknown', 'accent']) {
				const c = of(n);
				all[n + ' on its badge'] = ratio(c, c.map((v, i) => v * tint + card[i] * (1 - tint)));
				all[n + ' on the card'] = ratio(c, card);
			}
			for (const n of ['ink', 'soft', 'amber', 'accent']) for (const [on, c] of [['card', card], ['page', page]]) all[n + ' on the ' + on] = ratio(of(n), c);
			return all;
		})()`)
		if len(got) < 20 {
			t.Errorf("%d pairs", len(got))
		}
		for what, ratio := range got {
			if ratio < 4.5 {
				t.Errorf("%s: %s: %.2f, want 4.5", sc.name, what, ratio)
			}
		}
	}
}

// What a hold doesn't allow isn't offered: a broken one is not to be broken again, an expired one holds nothing to break or to hand over.
func TestFinding_V5_WrongOffers(t *testing.T) {
	s := allStates(t)
	p := open(t, desk, s.URL+"/#/a%2Fheld")
	offers := `[...document.querySelectorAll('.actions button:not([hidden])')].map((b) => b.innerText).join()`
	p.until("what is held can be broken", `document.querySelector('.heading .badge').dataset.state === 'held' && `+offers+` === 'Break the hold…'`)
	for name, state := range map[string]string{"d%2Fbroken": "broken", "b%2Fexpired": "expired", "c%2Forphan": "expired", "d%2Fhanded": "handed over", "f%2Ffree": "free"} {
		eval[bool](p, `location.hash = '#/`+name+`'; true`)
		p.until(name+" is "+state, `document.querySelector('.heading .badge').dataset.state === '`+state+`' && document.querySelector('pre').textContent.includes('token')`)
		if got := eval[string](p, offers); got != "" {
			t.Errorf("%s is %s, and the page offers %s", name, state, got)
		}
	}
	eval[bool](p, `location.hash = '#/b%2Fexpired'; true`)
	p.until("nobody holds it", `document.querySelector('[aria-label=Terms]')?.innerText.includes('not renewed')`)
	if says := eval[string](p, `document.querySelector('[aria-label=Terms]').innerText + document.querySelector('.picture').textContent`); strings.Contains(says, "holds it") {
		t.Errorf("of an expired hold it says: %s", says)
	}
}

// A value of a pool is released after it says who is hit, with the same as a command.
func TestReleaseOfAValue(t *testing.T) {
	s := town(t)
	p := open(t, desk, s.URL+"/#pools/machines")
	p.until("it is offered", `document.querySelectorAll('#rows .act button').length === 2`)
	eval[bool](p, `document.querySelector('#rows .act button').click(); true`)
	p.until("it says who is hit", `/web. loses the value.*two machines may use \d+/s.test(document.querySelector('dialog[open]').innerText)`)
	p.until("the command", `/^leasehold id release machines --as web. --store http/.test(document.querySelector('dialog[open] .command code').innerText)`)
	p.until("nothing yet", `document.querySelector('dialog[open] button.danger').disabled`)
	p.shot("release")
	p.fit()
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), eval[string](p, `document.querySelector('#rows a').textContent`)), chromedp.Click(chromedp.CSS("dialog[open] button.danger")))
	p.until("it is free", `document.querySelectorAll('#rows .act button').length === 1 && /^\d+ is free/.test(document.querySelector('.said').innerText)`)
}

// The last changes come with their reasons from the journal, the measures from /metrics.
func TestOverviewTellsChanges(t *testing.T) {
	t.Parallel() // it waits for measures
	s := serve(t, nil, server.Options{Journal: incident(time.Now())})
	s.put(t, store.Record{Key: "db/primary", Owner: "db-2/b"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // the store has something to do
		defer close(ended)
		for ctx.Err() == nil {
			s.ask(ctx, t, http.MethodPost, "/v1/leases/busy", `{"holder": "me", "ttl": 60}`)
			s.ask(ctx, t, http.MethodGet, "/v1/leases/busy", "")
			time.Sleep(10 * time.Millisecond) // each has a connection of its own, and the browser wants the processor, too
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	p := open(t, desk, s.URL)
	for what, reason := range map[string]string{
		"db/primary": "db-1 lost it: expired", "ci/deploy": "broken by ops: host is drained", "scheduler": "handed it over to app-2",
	} {
		p.until("why "+what+" changed", fmt.Sprintf(`[...document.querySelectorAll('.feed li')].some((l) => l.querySelector('a').textContent === %q && l.innerText.includes(%q) && l.querySelector('a').hash === '#/'+encodeURIComponent(%q))`, what, reason, what))
	}
	p.until("the store's latency as a line", `document.querySelector('.spark .line').getAttribute('d')?.startsWith('M') && /ms/.test(document.querySelector('.spark b').textContent)`)
	p.shot("overview")
	p.fit()
}
