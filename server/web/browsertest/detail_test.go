package browsertest

import (
	"fmt"
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
			{Owner: "ci-4713/a7m", Token: 1795281124000, From: at(15 * time.Hour), Until: at(11 * time.Hour), Why: "broken by ops: host is drained"},
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
	p := open(t, desk, s.URL+deploy)
	p.told()
	for what, js := range map[string]string{
		"a lane for each holder, those of one name together": `document.querySelectorAll('.picture text.holder').length === 4 && [...document.querySelectorAll('.picture text.holder')].some((t) => t.textContent === 'ci-4713')`,
		"2 gaps hatched":        `document.querySelectorAll('.picture .gap').length === 2`,
		"an overlap red":        `document.querySelectorAll('.picture .overlap').length === 1`,
		"an edge for each term": `document.querySelectorAll('.picture .edge').length === 5`,
		"reasons":               `[...document.querySelectorAll('.picture text.reason')].some((t) => t.textContent === 'expired')`,
		"the record":            `document.querySelector('pre').textContent.includes('1795281126100')`,
		"a command":             `[...document.querySelectorAll('.command code')].some((c) => c.textContent.startsWith('leasehold show deploy/production --store http'))`,
	} {
		p.until(what, js)
	}
	p.looks("detail")
}

// A name may be anything that a store takes.
func TestOddNames(t *testing.T) {
	s := serve(t, nil, server.Options{})
	names := []string{"a b", "ü/ñ", "<img src=x onerror=alert(1)>", `"'`, "50%", "a#b?c=d", strings.Repeat("long", 60)}
	for i, name := range names {
		s.put(t, store.Record{Key: name, Owner: "<b>me</b>", Token: fence.Token(i + 1)})
	}
	p := open(t, phone, s.URL+"/#/")
	for _, name := range names {
		p.until(name+" is there", row(name)+" !== undefined")
	}
	for _, name := range names {
		p.do(chromedp.Navigate(s.URL + "/#/" + url.PathEscape(name)))
		p.until(name+" is shown", fmt.Sprintf(`document.querySelector('#title')?.textContent === %q && document.querySelector('pre')?.textContent.includes('<b>me')`, name))
	}
	p.until("fits", `document.documentElement.scrollWidth <= innerWidth`)
}
