package browsertest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// storied has a name with a past: gaps, an overlap by the clocks of two holders, and each a reason.
func storied(t *testing.T, opts server.Options) *site {
	s := serve(t, nil, opts)
	now := time.Now()
	at := func(d time.Duration) time.Time { return now.Add(-d) }
	s.put(t, store.Record{
		Key: "deploy/production", Owner: "ci-4714/q3x", TTL: time.Hour, Acquired: at(70 * time.Minute),
		Info: map[string]string{"host": "runner-7", "doing": "deploying"},
		Past: []store.Term{
			{Owner: "ci-4713/w2k", Token: 1795281126000, From: at(5 * time.Hour), Until: at(60 * time.Minute), Why: "released"},
			{Owner: "ci-4712/p9a", Token: 1795281125000, From: at(11 * time.Hour), Until: at(7 * time.Hour), Why: "expired"},
			{Owner: "ci-4713/w2k", Token: 1795281124000, From: at(15 * time.Hour), Until: at(11 * time.Hour), Why: "broken by ops: host is drained"},
			{Owner: "ci-4711/b0c", Token: 1795281123000, From: at(21 * time.Hour), Until: at(17 * time.Hour), Why: "released"},
		},
	})
	s.waiter(t, "deploy%2Fproduction", "ci-4715")
	s.waiter(t, "deploy%2Fproduction", "ci-4716")
	return s
}

const deploy = "/#/deploy%2Fproduction"

// told waits for the whole detail to be there.
func (p *page) told() {
	p.t.Helper()
	p.until("the detail is there", `document.querySelector('.picture svg') && document.querySelectorAll('#detail ol li').length === 2`)
}

func TestDetail(t *testing.T) {
	s := storied(t, server.Options{})
	for _, sc := range []screen{desk, night, phone} {
		p := open(t, sc, s.URL+deploy)
		p.told()
		for what, js := range map[string]string{
			"3 lanes for 3 holders and the present one": `document.querySelectorAll('.picture text.holder').length === 4`,
			"2 gaps hatched":        `document.querySelectorAll('.picture .gap').length === 2`,
			"an overlap red":        `document.querySelectorAll('.picture .overlap').length === 1`,
			"an edge for each term": `document.querySelectorAll('.picture .edge').length === 5`,
			"reasons":               `[...document.querySelectorAll('.picture text.reason')].some((t) => t.textContent === 'expired')`,
			"the record":            `document.querySelector('pre').textContent.includes('1795281126100')`,
			"a command":             `[...document.querySelectorAll('.command code')].some((c) => c.textContent.startsWith('leasehold show deploy/production --store http'))`,
			"fits":                  `document.documentElement.scrollWidth <= innerWidth`,
		} {
			p.until(what, js)
		}
		p.shot("detail-" + sc.name)
		p.fit()
	}
}

// openBreak clicks on the button of the detail, and types into the dialog.
func (p *page) openBreak(typed string) {
	p.t.Helper()
	p.do(chromedp.Click(chromedp.CSS(".heading button.danger")))
	p.until("the dialog is open", `document.querySelector('dialog[open] #break-name')`)
	p.until("nothing can be broken yet", `document.querySelector('dialog button.danger').disabled`)
	p.do(chromedp.SendKeys(chromedp.CSS("#break-name"), typed))
}

const confirm = "dialog button.danger"

func TestBreak(t *testing.T) {
	events := make(chan server.Event, 100)
	s := storied(t, server.Options{OnEvent: func(e server.Event) {
		if e.Op == "break" {
			events <- e
		}
	}})
	p := open(t, desk, s.URL+deploy)
	p.told()
	p.openBreak("deploy/productio")
	p.until("another name is none", `document.querySelector('dialog button.danger').disabled`)
	p.do(chromedp.SendKeys(chromedp.CSS("#break-name"), "n"), chromedp.SendKeys(chromedp.CSS("#break-note"), "runner is gone"))
	p.until("it says what may run", `document.querySelector('dialog').innerText.includes('runner-7') && document.querySelector('dialog').innerText.includes('2 wait')`)
	p.shot("break")
	p.fit()
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.until("it is broken", `document.querySelector('.heading .badge').dataset.state === 'broken' && !document.querySelector('dialog[open]')`)
	rec, err := s.st.Get(t.Context(), "deploy/production")
	if err != nil || rec.Mark != store.MarkBroken || !strings.Contains(rec.Note, "runner is gone") {
		t.Errorf("%+v, %v", rec, err)
	}
	if e := <-events; e.Outcome != "ok" || e.Name != "deploy/production" {
		t.Errorf("audited %+v", e)
	}
	p.do(chromedp.KeyEvent("\x1b"))
	p.state("deploy/production", "broken")
}

// A term that has ended since the dialog was opened is not broken, and neither is the next one.
func TestBreakOfAnotherTerm(t *testing.T) {
	s := storied(t, server.Options{})
	p := open(t, desk, s.URL+deploy)
	p.expect = "409"
	p.told()
	p.openBreak("deploy/production")
	rec, err := s.st.Get(t.Context(), "deploy/production")
	if err != nil {
		t.Fatal(err)
	}
	rec.Owner, rec.Token, rec.Nonce = "other/x", rec.Token+1, "n"
	if _, err := s.st.Put(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.until("it says so", `document.querySelector('dialog .problem').innerText.includes('Nothing was changed')`)
	if rec, err := s.st.Get(t.Context(), rec.Key); err != nil || rec.Mark == store.MarkBroken {
		t.Errorf("%+v, %v", rec, err)
	}
}

// reader may look, at names that begin with deploy/.
type reader struct{}

func (reader) Name() string { return "looker" }
func (reader) May(a server.Action, name string) bool {
	return a == server.Read && strings.HasPrefix(name, "deploy/")
}

// Who isn't known is asked for a token; what a caller may not read or break is told.
func TestPermission(t *testing.T) {
	s := storied(t, server.Options{Authenticate: func(r *http.Request) (server.Caller, error) {
		switch {
		case r.Header.Get("Authorization") == "Bearer sesame":
			return reader{}, nil
		case r.Method == http.MethodPost: // those who wait are let in
			return server.Anybody, nil
		}
		return nil, errors.New("want a token")
	}})
	p := open(t, desk, s.URL)
	p.expect = "Failed to load resource"
	token := chromedp.CSS("dialog[open] input[name=token]")
	p.until("it asks", `document.querySelector('dialog[open] input[name=token]')`)
	p.fit()
	p.do(chromedp.SendKeys(token, "open\r"))
	p.until("it asks again", `document.querySelector('dialog[open] .problem')?.innerText.includes('want a token')`)
	p.shot("sign-in")
	p.do(chromedp.SendKeys(token, "sesame\r"))
	p.until("it may not read all", `document.getElementById('notice').innerText.includes('looker may not read *')`)
	p.do(chromedp.SendKeys(chromedp.CSS("#prefix"), "deploy/"))
	p.state("deploy/production", "contended")
	p.until("the notice is gone", `document.getElementById('notice').hidden`)
	p.do(chromedp.Click(chromedp.CSS("#rows a")))
	p.told()
	p.openBreak("deploy/production")
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.until("it may not break", `document.querySelector('dialog .problem').innerText.includes('looker may not break deploy/production')`)
	p.shot("forbidden")
	p.fit()
	if kept := eval[string](p, `Object.values(sessionStorage).join() + Object.values(localStorage).join()`); kept != "sesame" {
		t.Errorf("the browser keeps %q", kept)
	}
}

// A name may be anything that a store takes.
func TestOddNames(t *testing.T) {
	s := serve(t, nil, server.Options{})
	names := []string{"a b", "ü/ñ", "<img src=x onerror=alert(1)>", `"'`, "50%", "a#b?c=d", strings.Repeat("long", 60)}
	for i, name := range names {
		s.put(t, store.Record{Key: name, Owner: "<b>me</b>", Token: fence.Token(i + 1)})
	}
	p := open(t, phone, s.URL)
	for _, name := range names {
		p.until(name+" is there", row(name)+" !== undefined")
	}
	for _, name := range names {
		p.do(chromedp.Navigate(s.URL + "/#/" + url.PathEscape(name)))
		p.until(name+" is shown", fmt.Sprintf(`document.querySelector('#title')?.textContent === %q && document.querySelector('pre')?.textContent.includes('<b>me')`, name))
	}
	p.until("fits", `document.documentElement.scrollWidth <= innerWidth`)
}
