package browsertest

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// instance runs one of a pair until the test ends. The TTL is long: who is active stays so on a machine that is busy with browsers.
func instance(t *testing.T, db *memory.DB, pod, region string) *admiral.State {
	t.Helper()
	cfg := admiral.Config{LeaseName: "prod", PodIdentifier: pod, PodRegion: region, WaitTime: time.Second, FailureThreshold: 10}
	checker, err := admiral.New(func(context.Context) (store.Store, error) { return db.Open(), nil }, cfg, admiral.Options{})
	if err != nil {
		t.Fatal(err)
	}
	state := admiral.NewState(nil)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- checker.Run(ctx, state) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return state
}

// active waits until an instance is active, which it is a moment after the lease is its own.
func active(t *testing.T, s *admiral.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for st := s.Status(); st.ReadOnly; {
		var err error
		if st, err = s.Changed(ctx, st.Seq); err != nil {
			t.Fatalf("%+v", st)
		}
	}
}

// region is an expression for the part of the view that shows an instance.
func region(pod string) string {
	return `[...document.querySelectorAll('.region')].find((r) => r.getAttribute('aria-label').startsWith('` + pod + `'))`
}

// pairState waits until the view says how the pair stands.
func (p *page) pairState(state string) {
	p.t.Helper()
	p.until("the pair is "+state, `document.querySelector('.pair .badge').dataset.state === '`+state+`'`)
}

// The Regions stand side by side. A switchover and a hold say first what they will do, and then do it.
func TestPair(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	s := serve(t, db.Open(), server.Options{})
	east := instance(t, db, "east", "us-east-2")
	active(t, east)
	west := instance(t, db, "west", "us-west-2")
	p := open(t, desk, s.URL)
	p.until("the navigation has it", `[...document.querySelectorAll('#nav a')].some((a) => a.textContent === 'Standby')`)
	p.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll('#nav a')].find((a) => a.textContent === 'Standby').click()`))
	p.pairState("active")
	for what, js := range map[string]string{
		"side by side":      `(() => { const [a, b] = document.querySelectorAll('.region'); return a.getBoundingClientRect().top === b.getBoundingClientRect().top && a.getBoundingClientRect().right < b.getBoundingClientRect().left })()`,
		"who is active":     region("east") + `.dataset.state === 'active'`,
		"since when":        region("east") + `.innerText.includes('Since')`,
		"what is awaited":   region("west") + `.innerText.includes('another instance holds the lease')`,
		"when it was":       `document.querySelector('.pair').innerText.includes('The instances were asked')`,
		"the changes":       `document.querySelectorAll('.pair tbody tr').length === 1`,
		"no pair to choose": `document.querySelector('.pairs').hidden`,
	} {
		p.until(what, js)
	}
	p.fit()
	p.shot("pair-light")

	p.press("handoff")
	p.until("it says what it will do", `document.querySelector('dialog[open]').innerText.includes('east becomes passive') && document.querySelector('dialog[open]').innerText.includes('No TTL passes')`)
	p.until("west is offered", `document.querySelector('dialog input[value=west]').checked && document.querySelector('dialog button.handoff').disabled`)
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "prod"))
	p.shot("pair-switchover")
	p.fit()
	p.do(chromedp.Click(chromedp.CSS("dialog button.handoff")))
	p.until("west is active", region("west")+`.dataset.state === 'active' && `+region("east")+`.dataset.state === 'passive' && !document.querySelector('dialog[open]')`)
	p.until("it says for how long nobody was", `document.querySelector('.pair .said[role=status]').innerText.startsWith('west is active. Nobody was for ')`)
	p.until("the change is told", `document.querySelector('.pair tbody tr').innerText.includes('west')`)
	if st := east.Status(); !st.ReadOnly {
		t.Errorf("%+v", st)
	}
	active(t, west)

	p.press("pause")
	p.until("it says what it will do", `document.querySelector('dialog[open]').innerText.includes('west becomes passive at its next renewal')`)
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "prod"))
	p.until("a reason is needed", `document.querySelector('dialog button.pause').disabled`)
	p.do(chromedp.SendKeys(chromedp.CSS("#reason"), "the database is moved"))
	p.shot("pair-hold")
	p.fit()
	p.do(chromedp.Click(chromedp.CSS("dialog button.pause")))
	p.pairState("held passive")
	p.until("it is settled", `document.querySelector('.pair .meaning').innerText.includes('Certainly none is active') && document.querySelector('.pair').innerText.includes('the database is moved')`)
	p.until("none is shown as active", `document.querySelectorAll('.region').length === 2 && !document.querySelector('.region[data-state=active]')`)
	p.shot("pair-held")
	p.fit()
	if !west.Status().ReadOnly || !east.Status().ReadOnly {
		t.Errorf("%+v, %+v", east.Status(), west.Status())
	}
	p.press("primary")
	p.until("it says what it will do", `document.querySelector('dialog[open]').innerText.includes('active at once')`)
	p.do(chromedp.Click(chromedp.CSS("dialog button.primary")))
	p.pairState("active")

	for _, sc := range []screen{night, phone} {
		p := open(t, sc, s.URL+"/#pair/prod")
		p.pairState("active")
		p.until("both have answered", `document.querySelectorAll('.region').length === 2`)
		p.until("it fits", `document.documentElement.scrollWidth <= innerWidth`)
		p.shot("pair-" + sc.name)
		p.fit()
	}
}

// observer may read, and for now nothing else.
type observer struct{ may *atomic.Bool }

func (observer) Name() string                         { return "observer" }
func (o observer) May(a server.Action, _ string) bool { return a == server.Read || o.may.Load() }

// Who may only read sees the pair, and why nothing can be done. What was allowed when the dialog was opened is refused by the server. A
// term that is over isn't ended.
func TestPairRights(t *testing.T) {
	var may atomic.Bool
	db := memory.NewDB(memory.Options{})
	s := serve(t, db.Open(), server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return observer{&may}, nil }})
	s.put(t, store.Record{Key: pairs.Calls + "prod", Token: 1})
	rec := s.put(t, store.Record{
		Key: "prod", Owner: "east/host/1/x", Info: map[string]string{pairs.InfoPod: "east", pairs.InfoRegion: "<img src=x onerror=alert(1)>"}, Note: "<b>x</b>",
	})
	p := open(t, desk, s.URL+"/#pair/prod")
	p.expect = "Failed to load resource"
	p.pairState("active")
	p.until("its text is text", region("east")+`.innerText.includes('<img src=x') && !document.querySelector('.pair img, .pair b')`)
	p.until("it says why", `document.getElementById('pair-refusal').innerText.includes('observer may not switch over or hold the pair passive')`)
	p.until("nothing is offered", `[...document.querySelectorAll('.actions button:not([hidden])')].every((b) => b.getAttribute('aria-disabled') === 'true')`)
	p.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('.actions button.pause').click()`))
	p.until("no dialog opens", `!document.querySelector('dialog[open]')`)
	p.shot("pair-refused")
	p.fit()

	may.Store(true)
	p.until("it is offered once the page knows", `document.querySelector('.actions button.pause').getAttribute('aria-disabled') !== 'true'`)
	p.press("pause")
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "prod"), chromedp.SendKeys(chromedp.CSS("#reason"), "x"))
	may.Store(false)
	p.do(chromedp.Click(chromedp.CSS("dialog button.pause")))
	p.until("the server refuses", `document.querySelector('dialog .problem').innerText.includes('Nothing was changed')`)
	may.Store(true)
	next := rec
	next.Token, next.Owner, next.Nonce = rec.Token+1, "west/host/1/y", "n"
	if _, err := s.st.Put(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Click(chromedp.CSS("dialog button.pause")))
	p.until("that term is over", `document.querySelector('dialog .problem').innerText.includes('stale')`)
	if now, err := s.st.Get(t.Context(), "prod"); err != nil || now.Owner != next.Owner {
		t.Errorf("%+v, %v", now, err)
	}
}

// Without a store the view says that what it shows is old, and offers nothing; and what isn't a pair is none.
func TestPairIsOld(t *testing.T) {
	var down atomic.Bool
	db := memory.NewDB(memory.Options{})
	s := serve(t, downStore{db.Open(), &down}, server.Options{})
	instance(t, db, "east", "us-east-2")
	p := open(t, desk, s.URL+"/#pair/prod")
	p.expect = "Failed to load resource"
	p.pairState("active")
	down.Store(true)
	p.pairState("unknown")
	p.until("it says so", `document.querySelector('.pair .problem').innerText.includes('What is shown is ') && document.getElementById('pair-refusal').innerText.includes('not current')`)
	p.shot("pair-old")
	p.fit()
	down.Store(false)
	p.pairState("active")
	p = open(t, desk, s.URL+"/#pair/other")
	p.expect = "Failed to load resource"
	p.until("it is no pair", `document.querySelector('.pair .problem').innerText.includes('no instance of leasehold standby')`)
}

// downStore can't be reached now and then.
type downStore struct {
	store.Store
	down *atomic.Bool
}

var errDown = errors.New("connection refused")

func (d downStore) Get(ctx context.Context, key string) (store.Record, error) {
	if d.down.Load() {
		return store.Record{}, errDown
	}
	return d.Store.Get(ctx, key)
}

func (d downStore) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if d.down.Load() {
		return store.Record{}, errDown
	}
	return store.Wait(ctx, d.Store, key, version)
}
