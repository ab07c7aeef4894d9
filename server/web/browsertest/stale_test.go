package browsertest

import (
	"context"
	"errors"
	"iter"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// deaf is a store that answers no list while it is down.
type deaf struct {
	*memory.Store
	down atomic.Bool
}

func (d *deaf) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	if !d.down.Load() {
		return d.Store.List(ctx, prefix)
	}
	return func(yield func(store.Record, error) bool) {
		yield(store.Record{}, errors.New("rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp 10.0.0.7:2379: connect: connection refused\""))
	}
}

// What the server can't look at is not current, and neither state nor time is shown as if it were.
func TestStoreIsDown(t *testing.T) {
	t.Parallel() // it mostly waits
	st := &deaf{Store: memory.New(memory.Options{})}
	s := serve(t, st, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "me/x"})
	p := open(t, desk, s.URL+"/#/")
	p.state("job", "held")
	p.do(chromedp.Click(chromedp.CSS(`#states [data-state="held"]`)))
	st.down.Store(true)
	// What was known last stays in its place, and says that it was.
	p.until("it was held", row("job")+`.querySelector('.badge').innerText === 'was held' && `+row("job")+`.querySelector('.badge').dataset.state === 'held'`)
	p.until("greyed, with its age and the reason", `document.body.classList.contains('stale') && /Not current: \d.* old$/.test(document.getElementById('live').innerText)`)
	p.until("the reason in words of operators", `/The store does not answer the server: no connection to 10.0.0.7:2379: connection refused/.test(document.getElementById('overview').innerText) && !/rpc error/.test(document.body.innerText)`)
	p.until("no time left is claimed", row("job")+`.querySelector('.expiry').innerText === 'not known'`)
	p.until("no bar", `getComputedStyle(document.querySelector('#rows .bar')).display === 'none'`)
	p.until("dimmed", `getComputedStyle(`+row("job")+`.querySelector('a')).color === getComputedStyle(document.querySelector('.head')).color`)
	p.until("what still holds", `/does not answer the server.*is as of .* ago.*may rely on its lease.*Nobody new gets a name/s.test(document.getElementById('overview').innerText)`)
	p.looks("stale")
	p.do(chromedp.Navigate(s.URL + "/#overview"))
	p.looks("stale-overview")
	p.do(chromedp.Navigate(s.URL + "/#/"))
	p.on(phone)
	p.follow()
	p.until("a name is read by itself", `document.querySelector('.heading .badge').innerText === 'held' && /not live, .*connection refused/.test(document.getElementById('live').innerText)`)
	p.shot("polled-phone")
	p.fit()
	p.do(chromedp.KeyEvent("\x1b"))
	st.down.Store(false)
	p.state("job", "held")
	p.until("current again", `!document.body.classList.contains('stale')`)
}

// A server that has gone is noticed, what it said is greyed, and it is found again when it is back: with what was missed.
func TestServerIsGone(t *testing.T) {
	t.Parallel() // it mostly waits
	s := serve(t, nil, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "me/x"})
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	addr := servers.FreeAddr(t) // which nobody else gets while nobody listens there
	front := listenAt(t, addr, proxy)
	p := open(t, desk, front.URL+"/#/")
	p.expect = "ERR_"
	p.state("job", "held")
	p.lose(front, "all")
	p.until("it was held", row("job")+`.querySelector('.badge').innerText === 'was held'`)
	p.follow()
	p.until("the detail is not current either", `document.querySelector('.heading .badge').innerText === 'was held' && document.querySelector('.meaning').innerText.includes('last known state')`)
	p.until("nothing is offered", `!document.querySelector('.actions button:not([hidden])')`)
	p.until("it says why", `document.querySelector('#detail .problem').innerText.includes('reached')`)
	p.shot("gone-detail")
	p.fit()
	p.do(chromedp.KeyEvent("\x1b"))
	s.put(t, store.Record{Key: "missed", Owner: "you/x"})
	again := listenAt(t, addr, proxy)
	defer hangUp(again)
	p.state("job", "held")
	p.state("missed", "held")
}
