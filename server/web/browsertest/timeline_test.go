package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// pages is a journal that has what a test put into it; the server notes nothing beside it.
type pages struct{ spans []server.Span }

func (p *pages) Standing(context.Context) ([]server.Span, error) { return nil, nil }
func (p *pages) Note(_ context.Context, _ []server.Span) error   { return nil }
func (p *pages) Find(_ context.Context, q server.SpanQuery) (page server.SpanPage, err error) {
	page.From = time.Now().Add(-50 * time.Minute)
	for _, s := range p.spans {
		if strings.HasPrefix(s.Name, q.Prefix) && (s.Until.IsZero() || s.Until.After(q.Since)) && s.From.Before(q.Until) {
			page.Spans = append(page.Spans, s)
		}
	}
	return page, nil
}

// incident is an hour in which a database's leader was lost, and taken by another one after a gap.
func incident(now time.Time) *pages {
	p := &pages{}
	ago := func(minutes float64) time.Time {
		if minutes < 0 {
			return time.Time{}
		}
		return now.Add(-time.Duration(minutes * float64(time.Minute)))
	}
	token := fence.Token(1795281126100)
	add := func(name string, kind server.SpanKind, holder string, from, until float64, ended string) {
		token++
		p.spans = append(p.spans, server.Span{Name: name, Kind: kind, Holder: holder, Token: token, From: ago(from), Until: ago(until), Ended: ended})
	}
	add("db/primary", server.SpanTerm, "db-1/a", 300, 31, "expired")
	add("db/primary", server.SpanExpired, "db-1/a", 32, 31, "")
	add("db/primary", server.SpanWaiting, "", 34, 28, "")
	add("db/primary", server.SpanTerm, "db-2/b", 28, -1, "")
	add("db/replica", server.SpanTerm, "db-2/b", 200, 29, "released")
	add("db/replica", server.SpanTerm, "db-3/c", 27, -1, "")
	add("db/backup", server.SpanTerm, "db-2/b", 40, 5, "released")
	add("ci/deploy", server.SpanTerm, "runner-7/x", 48, 44, "released")
	add("ci/deploy", server.SpanTerm, "runner-2/y", 40, 21, "broken by ops: host is drained")
	add("ci/deploy", server.SpanTerm, "runner-4/z", 20, 12, "released")
	add("scheduler", server.SpanTerm, "app-1/k", 600, 15, "handed over to app-2")
	add("scheduler", server.SpanPaused, "ops", 15, 9, "")
	add("scheduler", server.SpanTerm, "app-2/m", 9, -1, "")
	for i := range 40 {
		add("cron/tick", server.SpanTerm, "worker/t", 50-float64(i), 49.99-float64(i), "released")
	}
	return p
}

func TestTimeline(t *testing.T) {
	s := serve(t, nil, server.Options{Journal: incident(time.Now())})
	s.put(t, store.Record{Key: "db/primary", Owner: "db-2/b"})
	p := open(t, desk, s.URL+"/#timeline")
	p.until("lanes of all names", `[...document.querySelectorAll('.lane-name')].map((e) => e.title).join() === 'scheduler,ci/deploy,cron/tick,db/backup,db/primary,db/replica'`)
	p.until("it says that all is well", `document.querySelector('#overview b').textContent === 'All is well.'`)
	p.looks("timeline")
	for _, sc := range []screen{desk, night} {
		p.on(sc)
		// Each colour of a holder stands out from the card, and what is written on it from the colour.
		worst := eval[float64](p, `(() => {
			const rgb = (c) => { const d = document.createElement('canvas').getContext('2d'); d.fillStyle = c; d.fillRect(0, 0, 1, 1); return [...d.getImageData(0, 0, 1, 1).data].slice(0, 3); };
			const lum = (c) => rgb(c).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }).reduce((n, v, i) => n + v * [.2126, .7152, .0722][i], 0);
			const style = getComputedStyle(document.documentElement), of = (n) => lum(style.getPropertyValue(n).trim());
			const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
			return Math.min(...[0, 1, 2, 3, 4, 5, 6, 7].flatMap((i) => [ratio(of('--h' + i), of('--card')), ratio(of('--h' + i), of('--on'))]));
		})()`)
		if worst < 4.5 {
			t.Errorf("%s: the least contrast of a holder's colour is %.2f: want 4.5", sc.name, worst)
		}
		t.Logf("%s: the least contrast of a holder's colour is %.2f", sc.name, worst)
	}
}

// What the picture shows can be had by keys alone: each term says who, which token, when and why.
func TestTimelineByKeyboard(t *testing.T) {
	s := serve(t, nil, server.Options{Journal: incident(time.Now())})
	p := open(t, desk, s.URL+"/#timeline")
	p.until("lanes", `document.querySelectorAll('.lane').length === 6`)
	if _, err := chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err) // without it no tab of this browser has the focus
	}
	track := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('.lane')].find((l) => l.querySelector('.lane-name').title === %q).querySelector('.track')`, name)
	}
	if n := eval[int](p, `document.querySelectorAll('.lanes button[tabindex="0"]').length`); n != 1 {
		t.Errorf("Tab stops at %d terms: want one, and arrows from there", n)
	}
	eval[bool](p, track("db/primary")+`.querySelector('button').focus(); true`)
	p.until("the term that was lost is told", `/db\/primary: db-1\/a, token \d+, for .*expired/.test(document.getElementById('span-said').textContent)`)
	p.do(chromedp.KeyEvent(kb.ArrowRight))
	p.until("the next one", `/db\/primary: db-2\/b, token \d+, .*holds it/.test(document.getElementById('span-said').textContent)`)
	p.do(chromedp.KeyEvent(kb.ArrowDown))
	p.until("the lane below, at that time", `/db\/replica: db-3\/c/.test(document.getElementById('span-said').textContent)`)
	if left := eval[float64](p, `parseFloat(document.activeElement.style.left)`); left < 50 || left > 60 {
		t.Errorf("a term that began 27 minutes ago is drawn at %v %% of an hour", left)
	}
	p.do(chromedp.KeyEvent("+"))
	p.until("a shorter time, and the address says so", `location.hash.includes('for=1800')`)
	p.until("the term keeps the focus", `/db-3\/c/.test(document.activeElement.getAttribute('aria-label'))`)
	p.until("how many short terms there are", track("cron/tick")+`.querySelectorAll('button').length > 3`)
	p.do(chromedp.KeyEvent("-"), chromedp.KeyEvent("-"), chromedp.KeyEvent("-"), chromedp.KeyEvent("-"))
	p.until("8 hours, as lengths double", `location.hash.includes('for=28800')`)
	p.until("short terms are one", track("cron/tick")+`.querySelectorAll('button').length === 1 && /: 40 short terms, from/.test(`+track("cron/tick")+`.querySelector('button').getAttribute('aria-label'))`)
	if lost := eval[bool](p, track("ci/deploy")+`.querySelector('.lost') !== null`); !lost {
		t.Error("a broken term doesn't look lost")
	}
	p.do(chromedp.Click(chromedp.CSS(`.spanbar [aria-label="Earlier"]`)))
	p.until("a time that stands", `location.hash.includes('until=')`)
	url := eval[string](p, `location.href`)
	other := open(t, desk, url)
	other.until("the address shows the same", `document.querySelector('.lane-name') && document.querySelector('.spanbar [aria-pressed=true]') === null`)
	eval[bool](p, `location.hash = '#timeline?by=holder'; true`)
	p.until("names that one holder has at a time, one below the other", `(() => {
		const boxes = [...[...document.querySelectorAll('.lane')].find((l) => l.querySelector('.lane-name').title === 'db-2').querySelectorAll('button')].map((b) => b.getBoundingClientRect());
		const clash = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
		return boxes.length === 3 && !boxes.some((a, i) => boxes.slice(i + 1).some((b) => clash(a, b)));
	})()`)
	p.until("lanes of holders", `[...document.querySelectorAll('.lane-name')].some((e) => e.title === 'db-1')`)
	p.shot("timeline-holders")
	p.fit()
}

// grouped is an hour with all that lanes can be grouped by.
func grouped(now time.Time) *pages {
	p := &pages{}
	add := func(s server.Span, from, until int) {
		s.From, s.Token = now.Add(-time.Duration(from)*time.Minute), fence.Token(1795281126100+len(p.spans)) //nolint:gosec // a few
		if s.Kind == "" {
			s.Kind = server.SpanTerm
		}
		if until > 0 {
			s.Until, s.Ended = now.Add(-time.Duration(until)*time.Minute), "released"
		}
		p.spans = append(p.spans, s)
	}
	vote := func(holder, zone string) server.Span {
		return server.Span{Name: "api/leader", Holder: holder, NameKind: store.KindElection, Session: ".session/" + holder + "/n", Zone: zone}
	}
	add(vote("api-1/x", "eu-1"), 50, 30)
	add(server.Span{Name: "api/leader", Kind: server.SpanPaused, Holder: "ops", Note: "drill"}, 30, 20)
	add(vote("api-2/y", "eu-2"), 20, 10)
	add(vote("api-1/x", "eu-1"), 10, 0)
	add(server.Span{Name: "jobs/a", Holder: "api-1/x", Session: ".session/api-1/x/n", Zone: "eu-1"}, 45, 0)
	add(server.Span{Name: "jobs/b", Holder: "cron/z"}, 45, 5)
	add(server.Span{Name: "identity/my%2Fpool/7", Holder: "web1/k"}, 40, 25)
	add(server.Span{Name: "identity/my%2Fpool/7", Holder: "web2/k"}, 24, 0)
	add(server.Span{Name: "identity/my%2Fpool/9", Holder: "web1/k"}, 24, 0)
	return p
}

// Lanes are grouped by what an operator asks about: the address and the keyboard know it.
func TestTimelineGroups(t *testing.T) {
	s := serve(t, nil, server.Options{Journal: grouped(time.Now())})
	p := open(t, desk, s.URL+"/#timeline")
	shown := func(by, want string) {
		t.Helper()
		js := `[...document.querySelectorAll('.lanes > li')].map((e) => e.matches('.group') ? '# ' + e.innerText : e.querySelector('.lane-name').innerText + ': ' + [...e.querySelectorAll('.term')].map((b) => b.innerText).join('|')).join('\n')`
		p.until("lanes by "+by+":\n"+want+"\n\n", fmt.Sprintf("(window.got = %s) === %q", js, want))
		p.fit()
	}
	shown("prefix", "# api/\nleader: api-1|api-2|api-1\n# identity/my%2Fpool/\n7: web1|web2\n9: web1\n# jobs/\na: api-1\nb: cron")
	pick := func(by string) {
		t.Helper()
		eval[bool](p, fmt.Sprintf(`{ const s = document.getElementById('lanes-by'); s.value = %q; s.dispatchEvent(new Event('change')); } true`, by))
		p.until("the address says so", `location.hash.endsWith('&by=`+by+`')`)
	}
	pick("session")
	shown("session", "# api-1/x/n\napi/leader: api-1|api-1\njobs/a: api-1\n# api-2/y/n\napi/leader: api-2")
	pick("pool")
	shown("pool", "# my/pool\n7: web1|web2\n9: web1")
	if href := eval[string](p, `document.querySelector('.lanes .group a').getAttribute('href')`); href != "#pools/my%2Fpool" {
		t.Errorf("a pool's link: %s", href)
	}
	pick("zone")
	shown("zone", "# eu-1\napi-1: api/leader|jobs/a|api/leader\n# eu-2\napi-2: api/leader")
	pick("election")
	shown("election", "# api/leader\napi-1: …126100|…126103\napi-2: …126102")
	if n := eval[int](p, `document.querySelectorAll('.lane .paused').length`); n != 2 {
		t.Errorf("the pause is shown in %d lanes: want both", n)
	}
	p.looks("timeline-election")
	other := open(t, desk, eval[string](p, `location.href`))
	other.until("the address shows the same", `document.getElementById('lanes-by').value === 'election' && document.querySelectorAll('.lane').length === 2`)
	eval[bool](p, `document.querySelector('.lane button').dispatchEvent(new Event('pointerover', {bubbles: true}))`)
	p.until("the term is told", `/api\/leader: api-1\/x, token 1795281126100/.test(document.getElementById('span-said').textContent)`)
	p.do(chromedp.SetValue(chromedp.CSS("#prefix"), "none/"), chromedp.Evaluate[chromedp.Void](`document.getElementById('prefix').dispatchEvent(new Event('input'))`))
	p.until("there is nothing", `document.getElementById('span-note').textContent === 'Nothing is known of this time.'`)
}

// The report of the time that is looked at is copied as Markdown, and can be had by command; where a browser doesn't let a page copy, the
// text is selected.
func TestReport(t *testing.T) {
	s := serve(t, nil, server.Options{Journal: incident(time.Now())})
	p := open(t, desk, s.URL+"/?prefix=db/#timeline")
	p.until("lanes", `document.querySelectorAll('.lane').length === 3`)
	press := func() {
		eval[bool](p, `[...document.querySelectorAll('.spanbar button')].find((b) => b.textContent === 'Report…').click(); true`)
		p.until("the report", `document.querySelector('dialog textarea').value.startsWith('# Leases from ') && !document.querySelector('dialog button.report').disabled`)
	}
	eval[bool](p, `navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve() }; true`)
	press()
	p.until("it is that of the time and the prefix", `/- 1 term that its holder did not end/.test(document.querySelector('dialog textarea').value) && !/ci\/deploy/.test(document.querySelector('dialog textarea').value)`)
	p.until("the same by command", `/^leasehold history --since \S+Z --until \S+Z --prefix db\/ --report --store http/.test(document.querySelector('dialog code').textContent)`)
	p.looks("report")
	p.do(chromedp.Click(chromedp.CSS("dialog button.report")))
	p.until("it is copied", `window.copied.includes('| db/primary | db-1/a |') && !document.querySelector('dialog[open]')`)
	eval[bool](p, `navigator.clipboard.writeText = () => Promise.reject(new Error('no')); true`)
	press()
	p.do(chromedp.Click(chromedp.CSS("dialog button.report")))
	p.until("it is selected", `/press Ctrl C/.test(document.querySelector('dialog .problem').textContent) && document.querySelector('dialog textarea').selectionEnd > 100`)
	p = open(t, desk, serve(t, nil, server.Options{}).URL+"/#timeline")
	p.expect = "404"
	p.until("no journal", `document.getElementById('span-note').textContent !== ''`)
	eval[bool](p, `[...document.querySelectorAll('.spanbar button')].find((b) => b.textContent === 'Report…').click(); true`)
	p.until("why there is none", `document.querySelector('dialog [role=status]').textContent.includes('leasehold serve --journal FILE') && document.querySelector('dialog button.report').disabled`)
}

// Without a journal the page says how to get one, and all else works.
func TestTimelineWithoutAJournal(t *testing.T) {
	s := serve(t, nil, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "a/1"})
	p := open(t, desk, s.URL+"/#/")
	p.expect = "404"
	p.state("job", "held")
	p.do(chromedp.Click(chromedp.CSS(`.views a[href="#timeline"]`)))
	p.until("it says how to get one", `document.getElementById('span-note').textContent.includes('leasehold serve --journal FILE')`)
	p.fit()
	p.do(chromedp.Click(chromedp.CSS(`.views a[href="#/"]`)))
	p.state("job", "held")
}

// The line above says what is wrong, the worst first.
func TestOverview(t *testing.T) {
	s := allStates(t)
	p := open(t, desk, s.URL+"/#/")
	p.state("b/expired", "expired")
	p.until("the worst first", `/^b\/expired, c\/orphan have expired.*d\/broken is broken.*d\/handed is handed over.*g\/paused is paused.*3 held, 1 waiting/s.test(document.getElementById('overview').textContent)`)
	if level := eval[string](p, `document.getElementById('overview').dataset.level`); level != "bad" {
		t.Errorf("its level is %s", level)
	}
	if code := s.ask(t.Context(), t, http.MethodGet, "/v1/history", ""); code != http.StatusNotFound {
		t.Errorf("a journal that nobody asked for: %d", code)
	}
}
