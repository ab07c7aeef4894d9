package browsertest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	p.complete()
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

// complete waits for the views that come after the first rows, which the page can't load without the server.
func (p *page) complete() {
	p.t.Helper()
	p.until("the other views have come", `['lists', 'shards', 'pair', 'timeline', 'detail', 'operations', 'groups', 'login'].every((m) => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/' + m + '.js') && e.responseEnd > 0))`)
}
