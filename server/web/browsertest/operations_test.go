package browsertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// press presses Enter on a button of the detail as soon as it is offered: what is shown may not be current after the page was kept busy,
// and what moves as that changes would be under the mouse instead.
func (p *page) press(kind string) {
	p.t.Helper()
	button := ".actions button." + kind
	p.until(kind+" is offered", `document.querySelector('`+button+`:not([hidden]):not([aria-disabled=true])')`)
	p.do(chromedp.SendKeys(chromedp.CSS(button), "\r"))
}

// follow opens the first name of the board by Enter, for the same reason: while what is shown isn't current, the line above it says so in
// other words each second.
func (p *page) follow() {
	p.t.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS("#rows a"), "\r"))
}

// openBreak presses the button of the detail, and types into the dialog.
func (p *page) openBreak(typed string) {
	p.t.Helper()
	p.press("danger")
	p.until("the dialog is open", `document.querySelector('dialog[open] #confirm-name')`)
	p.until("nothing can be broken yet", `document.querySelector('dialog button.danger').disabled`)
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), typed))
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
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "n"), chromedp.SendKeys(chromedp.CSS("#reason"), "runner is gone"))
	p.until("it says what may run", `document.querySelector('dialog').innerText.includes('runner-7') && document.querySelector('dialog').innerText.includes('2 callers wait')`)
	p.shot("break")
	p.fit()
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.until("it waits for the holder", `[...document.querySelectorAll('.steps li')].map((l) => l.dataset.step).join() === 'done,now,to come' && /learns of it at its next renewal/.test(document.querySelector('.steps').innerText)`)
	p.shot("breaking")
	p.fit()
	p.until("it is broken", `document.querySelector('.heading .badge').dataset.state === 'broken' && !document.querySelector('dialog[open]')`)
	rec, err := s.st.Get(t.Context(), "deploy/production")
	if err != nil || rec.Intervention != store.InterventionBroken || !strings.Contains(rec.Note, "runner is gone") {
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
	if rec, err := s.st.Get(t.Context(), rec.Key); err != nil || rec.Intervention == store.InterventionBroken {
		t.Errorf("%+v, %v", rec, err)
	}
}

// clerk may look at names that begin with deploy/, and break them while it is trusted.
type clerk struct{ trusted *atomic.Bool }

func (clerk) Name() string { return "clerk" }
func (c clerk) Names(a server.Action) []string {
	if c.May(a, "deploy/x") {
		return []string{"deploy/*", "drills/*"}
	}
	return nil
}
func (c clerk) May(a server.Action, name string) bool {
	return (a == server.Read || a == server.Break && c.trusted.Load()) && strings.HasPrefix(name, "deploy/")
}

// Who isn't known is asked for a token; what a caller may not read or do is told, before it is tried, and when the policy has
// changed since.
func TestPermission(t *testing.T) {
	var trusted atomic.Bool
	s := storied(t, server.Options{Authenticate: func(r *http.Request) (server.Caller, error) {
		switch {
		case r.Header.Get("Authorization") == "Bearer sesame":
			return clerk{&trusted}, nil
		case r.Method == http.MethodPost: // those who wait are let in
			return server.Anybody, nil
		}
		return nil, errors.New("want a token")
	}})
	p := open(t, desk, s.URL+"/#/")
	p.expect = "Failed to load resource"
	token := chromedp.CSS("dialog[open] input[name=token]")
	p.until("it asks", `document.querySelector('dialog[open] input[name=token]')`)
	p.fit()
	p.do(chromedp.KeyEvent("\x1b"))
	p.until("nothing is shown", `document.getElementById('empty').innerText === 'Sign in to see who holds what.'`)
	p.shot("signed-out")
	p.fit()
	p.do(chromedp.Click(chromedp.CSS("#who")), chromedp.SendKeys(token, "open\r"))
	p.until("it asks again", `document.querySelector('dialog[open] .problem')?.innerText.includes('want a token')`)
	p.shot("sign-in")
	p.do(chromedp.SendKeys(token, "sesame\r"))
	p.until("it may not read all", `document.getElementById('notice').innerText.includes('clerk may not read *')`)
	p.until("what it may read is offered", `[...document.querySelectorAll('#notice button')].map((b) => b.innerText).join() === 'deploy/,drills/'`)
	p.shot("notice")
	p.fit()
	p.do(chromedp.Navigate(s.URL + deploy))
	p.told()
	p.until("it is read, though not followed", `document.getElementById('live').innerText.includes('not live, not allowed') && document.querySelector('.heading .badge').dataset.state === 'contended'`)
	p.do(chromedp.KeyEvent("\x1b"))
	eval[bool](p, `document.querySelector('#notice button').click(); true`)
	p.until("it is in the address", `location.search === '?prefix=deploy%2F' && document.getElementById('prefix').value === 'deploy/'`)
	p.state("deploy/production", "contended")
	p.until("the notice is gone", `document.getElementById('notice').hidden`)
	p.until("who is there", `document.getElementById('engine').innerText.includes('as clerk')`)
	p.do(chromedp.Click(chromedp.CSS("#rows a")))
	p.told()
	p.until("it may not break", `/clerk may not break here.*It may: break no name/.test(document.getElementById('refusal').innerText)`)
	if eval[bool](p, `document.querySelector('.actions button:not([hidden])') !== null`) {
		t.Error("what is refused is offered")
	}
	p.shot("forbidden")
	p.fit()
	trusted.Store(true)
	p.until("it may break now", `document.getElementById('refusal').hidden`)
	p.openBreak("deploy/production")
	trusted.Store(false)
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.until("it may not any more", `document.querySelector('dialog .problem').innerText.includes('clerk may not break deploy/production')`)
	p.shot("refused")
	p.fit()
	if kept := eval[string](p, `Object.values(sessionStorage).join() + Object.values(localStorage).join()`); kept != "sesame" {
		t.Errorf("the browser keeps %q", kept)
	}
	p.do(chromedp.KeyEvent("\x1b"), chromedp.Click(chromedp.CSS("#who")), chromedp.SendKeys(token, "\r"))
	p.until("it has signed out", `document.querySelector('dialog[open] input[name=token]')?.required && sessionStorage.length === 0`)
}

// stand has a candidate stand for election in the name "leader" until the test ends. The TTL is long: whoever leads goes on leading on a
// machine that is busy with browsers.
func (s *site) stand(t *testing.T, o election.Options) {
	t.Helper()
	m, err := lease.NewManager(s.st, lease.Options{TTL: 30 * time.Second, Name: o.Name, Info: map[string]string{"host": o.Name + "-1"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() {
		ended <- election.Run(ctx, m, "leader", election.Callbacks{
			OnStartedLeading: func(ctx context.Context, _ election.Term) { <-ctx.Done() },
		}, o)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("candidate %s: %v", o.Name, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// elected has a name led by east, with two other candidates, one of which may not lead now.
func elected(t *testing.T) (*site, *page, chan server.Event) {
	t.Helper()
	events := make(chan server.Event, 100)
	s := serve(t, nil, server.Options{OnEvent: func(e server.Event) {
		if e.Action == server.Handoff || e.Action == server.Pause {
			events <- e
		}
	}})
	s.stand(t, election.Options{Name: "east", Zone: "eu-1"})
	tab := open(t, desk, s.URL+"/#/leader")
	tab.leads("east")
	s.stand(t, election.Options{Name: "north", Zone: "eu-3", Eligible: func() bool { return false }})
	s.stand(t, election.Options{Name: "west", Zone: "eu-2", Priority: 5})
	tab.until("three stand", `[...document.querySelectorAll('[aria-label=Candidates] tbody tr')].filter((r) => /leads|candidate|not eligible/.test(r.innerText)).length === 3`)
	return s, tab, events
}

// leads waits for the detail to say who leads.
func (p *page) leads(name string) {
	p.t.Helper()
	p.until(name+" leads", `document.querySelector('.heading .badge')?.dataset.state === 'held' && document.querySelector('.facts dd')?.innerText.startsWith('`+name+`/')`)
}

// A leader hands over to the chosen candidate, after the operator has typed the name.
func TestHandoff(t *testing.T) {
	t.Parallel() // it waits for holders
	_, p, events := elected(t)
	p.looks("election")
	const confirm = "dialog[open] button.handoff"
	p.press("handoff")
	for what, js := range map[string]string{
		"west is the choice":      `document.querySelector('dialog[open] input:checked').closest('label').innerText.startsWith('west')`,
		"north can't be chosen":   `[...document.querySelectorAll('dialog[open] label')].find((l) => l.innerText.startsWith('north')).querySelector('input').disabled`,
		"east isn't offered":      `![...document.querySelectorAll('dialog[open] label')].some((l) => l.innerText.startsWith('east'))`,
		"it says what may run":    `document.querySelector('dialog').innerText.includes('host east-1') && document.querySelector('dialog').innerText.includes('it is asked, not forced')`,
		"the name is wanted":      `document.querySelector('` + confirm + `').disabled`,
		"the command has the one": `/leasehold handoff leader --to west/.test(document.querySelector('dialog .command code').innerText)`,
	} {
		p.until(what, js)
	}
	p.do(chromedp.SendKeys(chromedp.CSS("#reason"), "drain eu-1"), chromedp.SendKeys(chromedp.CSS("#confirm-name"), "leader"))
	p.until("the command has the reason", `document.querySelector('dialog .command code').innerText.includes("--reason 'drain eu-1'")`)
	p.looks("handoff")
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.leads("west")
	p.until("it was seen happening", `[...document.querySelectorAll('.steps li')].map((l) => l.dataset.step).join() === 'done,done,done' && /ordered .* to hand over to west.*handed the name over.*west.* holds it, with token/s.test(document.querySelector('.steps').innerText)`)
	p.looks("handed")
	p.until("the dialog is closed", `!document.querySelector('dialog[open]')`)
	p.until("the past says why", `document.querySelector('[aria-label=Terms]').innerText.includes('handed over')`)
	if e := <-events; e.Action != server.Handoff || e.Outcome != "ok" || e.Name != "leader" || !strings.Contains(e.Note, "drain eu-1") {
		t.Errorf("audited %+v", e)
	}
}

// A term that has ended since the dialog was opened is not handed over, and neither is the next one.
func TestHandoffOfAnotherTerm(t *testing.T) {
	t.Parallel() // it waits for holders
	s, p, _ := elected(t)
	p.expect = "409"
	p.press("handoff")
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "leader"),
		chromedp.Click(chromedp.CSS("dialog[open] input[value='']"))) // any candidate
	if status := s.ask(t.Context(), t, http.MethodPost, "/v1/leases/leader/handoff", `{"to": "west", "wait": 120}`); status != http.StatusOK {
		t.Fatal(status)
	}
	p.do(chromedp.Click(chromedp.CSS("dialog[open] button.handoff")))
	p.until("it says so", `document.querySelector('dialog .problem').innerText.includes('Nothing was changed')`)
	p.do(chromedp.KeyEvent("\x1b"))
	p.leads("west")
}

// A pause wants a reason, is on the board from its first load on, and ends with a resume.
func TestPause(t *testing.T) {
	t.Parallel() // it waits for holders
	s, p, events := elected(t)
	const confirm = "dialog[open] button.pause"
	p.press("pause")
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "leader"))
	p.until("a reason is wanted", `document.querySelector('`+confirm+`').disabled`)
	p.do(chromedp.SendKeys(chromedp.CSS("#reason"), "the database is being moved"), chromedp.SendKeys(chromedp.CSS("#for"), "2h"))
	p.until("it may be paused", `!document.querySelector('`+confirm+`').disabled`)
	p.looks("pause")
	p.do(chromedp.Click(chromedp.CSS(confirm)))
	p.until("nobody leads", `document.querySelector('.heading .badge').dataset.state === 'paused' && document.querySelector('.meaning').innerText.includes('the database is being moved (until 20')`)
	if e := <-events; e.Op != "pause" || e.Outcome != "ok" || e.Name != "leader" {
		t.Errorf("audited %+v", e)
	}
	p.until("it was seen happening", `/paused.*east.* has stepped down.*Nobody leads/s.test(document.querySelector('.steps').innerText) && [...document.querySelectorAll('.steps li')].every((l) => l.dataset.step === 'done')`)
	p.until("it can be resumed", `[...document.querySelectorAll('.actions button:not([hidden])')].map((b) => b.innerText).join() === 'Resume…'`)
	p.looks("paused")
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(s.URL+"/#/"))
	p.state("leader", "paused")
	p.until("who and why", row("leader")+`.querySelector('.holder').innerText.includes('the database is being moved')`)
	p.do(chromedp.Click(chromedp.CSS("#rows a")))
	p.press("primary")
	p.until("it says who leads then", `/east|west/.test(document.querySelector('dialog[open]').innerText)`)
	p.looks("resume")
	p.do(chromedp.Click(chromedp.CSS("dialog[open] button.primary")))
	p.until("somebody leads", `document.querySelector('.heading .badge').dataset.state === 'held'`)
	if e := <-events; e.Op != "resume" || e.Outcome != "ok" {
		t.Errorf("audited %+v", e)
	}
}

// A host is drained: its elections are handed over. What stays with it is said before, and what is refused by a policy isn't offered.
func TestDrain(t *testing.T) {
	t.Parallel() // it waits for holders
	s, p, events := elected(t)
	s.put(t, store.Record{Key: "plain", Owner: "east/x", Info: map[string]string{"host": "east-1"}})
	s.put(t, store.Record{Key: "elsewhere", Owner: "south/x"})
	eval[bool](p, `location.hash = '#holders'; true`)
	line := func(host string) string {
		return `[...document.querySelectorAll('.holders #rows .row')].find((r) => r.querySelector('a').textContent === '` + host + `')`
	}
	p.until("it is offered", line("east-1")+`.querySelector('.act button')`)
	p.until("another one holds something", line("south")+` !== undefined`)
	if eval[bool](p, line("south")+`.querySelector('.act button') !== null`) {
		t.Error("a host that leads nothing is offered to be drained")
	}
	p.click("it is offered still", line("east-1")+`.querySelector('.act button')`)
	for what, js := range map[string]string{
		"who would lead":     `/leader: west would lead/.test(document.querySelector('dialog[open]').innerText)`,
		"what stays":         `/Stays with east-1\s+plain: only an election can be handed over/.test(document.querySelector('dialog[open]').innerText)`,
		"the command":        `/^leasehold handoff leader --store http\S+ --any$/.test(document.querySelector('dialog[open] .command code').innerText)`,
		"the host is wanted": `document.querySelector('dialog[open] button.handoff').disabled`,
	} {
		p.until(what, js)
	}
	p.do(chromedp.SendKeys(chromedp.CSS("#reason"), "new kernel"), chromedp.SendKeys(chromedp.CSS("#confirm-name"), "east-1"))
	p.looks("drain")
	p.do(chromedp.Click(chromedp.CSS("dialog[open] button.handoff")))
	p.until("it was seen happening", `/Draining east-1.*leader: west.* leads, with token/s.test(document.querySelector('.progress').innerText) && document.querySelector('.steps li').dataset.step === 'done'`)
	p.until("it has nothing to hand over any more", `!`+line("east-1")+`.querySelector('.act button')`)
	p.looks("drained")
	if e := <-events; e.Action != server.Handoff || e.Outcome != "ok" || e.Name != "leader" || !strings.Contains(e.Note, "new kernel") {
		t.Errorf("audited %+v", e)
	}
}
