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
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, errors.New("the disk is gone")) }
}

// What the server can't look at is not current, and neither state nor time is shown as if it were.
func TestStoreIsDown(t *testing.T) {
	st := &deaf{Store: memory.New(memory.Options{})}
	s := serve(t, st, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "me/x"})
	p := open(t, desk, s.URL)
	p.state("job", "held")
	p.do(chromedp.Click(chromedp.CSS(`#states [data-state="held"]`))) // what is unknown is shown though only what is held was asked for
	st.down.Store(true)
	p.state("job", "unknown")
	p.until("greyed, with its age and the reason", `document.body.classList.contains('stale') && /Not current: \d.* old.*disk is gone/.test(document.getElementById('live').innerText)`)
	p.until("no time left is claimed", row("job")+`.querySelector('.expiry').innerText === 'not known'`)
	p.until("no bar", `getComputedStyle(document.querySelector('#rows .bar')).display === 'none'`)
	p.shot("stale")
	p.fit()
	p.do(chromedp.EmulateViewport(phone.width, phone.height))
	p.until("it fits", `document.documentElement.scrollWidth <= innerWidth`)
	p.shot("stale-phone")
	p.do(chromedp.Click(chromedp.CSS("#rows a")))
	p.until("a name is read by itself", `document.querySelector('.heading .badge').innerText === 'held' && /not live, .*the disk is gone/.test(document.getElementById('live').innerText)`)
	p.shot("polled-phone")
	p.fit()
	p.do(chromedp.KeyEvent("\x1b"))
	st.down.Store(false)
	p.state("job", "held")
	p.until("current again", `!document.body.classList.contains('stale')`)
}

// A server that has gone is noticed, what it said is greyed, and it is found again when it is back: with what was missed.
func TestServerIsGone(t *testing.T) {
	s := serve(t, nil, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "me/x"})
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	addr := servers.FreeAddr(t) // which nobody else gets while nobody listens there
	front := listenAt(t, addr, proxy)
	p := open(t, desk, front.URL)
	p.expect = "ERR_"
	p.state("job", "held")
	hangUp(front)
	p.until("it says so", `/reached|closed/.test(document.getElementById('live').innerText)`)
	p.state("job", "unknown")
	p.do(chromedp.Click(chromedp.CSS("#rows a")))
	p.until("the detail is not current either", `document.querySelector('.heading .badge').innerText === 'unknown, was held' && document.querySelector('.meaning').innerText.includes('what was known last')`)
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
