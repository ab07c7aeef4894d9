package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// Views whose modules come after the first rows are there when the server has gone: nobody has to open them before. One that the server
// doesn't have, as after an upgrade, says what to do.
func TestViewsThatComeLater(t *testing.T) {
	s := serve(t, nil, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "web1/x"})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pools.js") {
			http.NotFound(w, r)
			return
		}
		s.srv.ServeHTTP(w, r)
	}))
	p := open(t, desk, front.URL+"/#/")
	p.expect = "Failed to load resource"
	p.state("job", "held")
	p.complete("some")
	eval[bool](p, `location.hash = '#pools'; true`)
	p.until("it says what to do", `document.querySelector('#view [role=alert]').textContent.includes('Load the page again')`)
	p.fit()
	hangUp(front)
	for hash, what := range map[string]string{
		"#holders":  `document.querySelector('#view h2').textContent === 'Holders' && document.querySelector('#view').innerText.includes('web1')`,
		"#/job":     `document.querySelector('#view h2').textContent === 'job'`,
		"#timeline": `document.querySelector('#view h2').textContent === 'Timeline' && document.getElementById('span-note').textContent.includes('can’t be reached')`,
	} {
		eval[bool](p, `location.hash = '`+hash+`'; true`)
		p.until("it is shown without the server: "+hash, what)
	}
}

// A view that had not been loaded when the server went says so, and comes by itself when the server is back. To load the page again, which
// it says for another version, would lose what was last known.
func TestViewThatHadNotCome(t *testing.T) {
	s := serve(t, nil, server.Options{})
	s.put(t, store.Record{Key: "job", Owner: "web1/x"})
	addr := servers.FreeAddr(t)
	front := listenAt(t, addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/lanes.js") { // which only modules that come later import
			panic(http.ErrAbortHandler)
		}
		s.srv.ServeHTTP(w, r)
	}))
	p := open(t, desk, front.URL+"/#/")
	p.expect = "ERR_"
	p.state("job", "held")
	p.lose(front, "some")
	p.follow()
	p.until("it says that it will come", `/had not been loaded yet: the server .*It is loaded when the server is back/.test(document.querySelector('#view [role=alert]').textContent)`)
	p.shot("not-come")
	p.fit()
	again := listenAt(t, addr, s.srv)
	defer hangUp(again)
	p.until("it has come", `document.querySelector('#view h2').textContent === 'job' && document.querySelector('.heading .badge').innerText === 'held' && !document.querySelector('#view > [role=alert]')`)
	p.complete("all")
}

// lose ends the server once the page has loaded what comes after the first rows, or failed to, and waits until the page says so.
func (p *page) lose(front *httptest.Server, parts string) {
	p.t.Helper()
	p.complete(parts)
	hangUp(front)
	p.until("it says so", `/reached|closed/.test(document.getElementById('live').innerText)`)
}

// complete waits until the page has loaded, or failed to, what comes after the first rows: all of it, or some. It can't without the server.
func (p *page) complete(parts string) {
	p.t.Helper()
	p.until(parts+" of the other views have come", fmt.Sprintf("document.body.dataset.parts === %q", parts))
}
