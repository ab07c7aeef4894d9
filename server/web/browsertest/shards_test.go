package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/shard"
)

// shardWorker is a worker of a space in the site's store, until the test ends. The TTL is long: a worker keeps its slices on a machine that
// is busy with browsers.
func (s *site) shardWorker(t *testing.T, space shard.Space, name string) *shard.Owner {
	t.Helper()
	m, err := lease.NewManager(s.st, lease.Options{Name: name, TTL: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w, err := shard.Join(t.Context(), m, space, shard.Worker{Name: name, Address: name + ":80"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// work has owners report what keys cost, again and again, until the test ends.
func work(t *testing.T, owners []*shard.Owner, key func(i int) string) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, o := range owners { // the one that owns the key counts it
				o.Report(key(i), 1)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// cells is an expression for how many slices of the map have a colour.
func cells(colour int) string {
	return fmt.Sprintf(`document.querySelectorAll('svg.shards rect[data-slice].shard-%d').length`, colour)
}

// A space is shown as coloured ranges, with moves as they happen, and what one worker has.
func TestShards(t *testing.T) {
	s := serve(t, nil, server.Options{})
	space := shard.Space{Name: "jobs <b>", Names: []string{"0", "1", "2", "3", "4", "5", "6"}}
	s.shardWorker(t, space, "web1")
	p := open(t, desk, s.URL+"/#shards")
	p.until("the space is listed", `document.querySelector('[aria-label="Spaces"] tbody a').textContent === 'jobs <b>'`)
	p.do(chromedp.Click(`[aria-label="Spaces"] tbody a`))
	p.until("all are the first one's", cells(0)+" === 7")
	s.shardWorker(t, space, "web2")
	p.until("the second has its share", cells(1)+" === 3 && "+cells(0)+" === 4")
	p.until("how it came is told", `document.querySelector('[aria-label="Last moves"]').textContent.includes('passed on')`)
	for i := range 7 { // one of the first worker's: 4 and 3 become 3 and 4, and stay
		e, err := shard.Lookup(t.Context(), s.st, space.Name, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if m, err := shard.Find(t.Context(), s.st, space.Name, "web1"); err != nil {
			t.Fatal(err)
		} else if e.Owner == m.Session {
			if err := shard.RequestMove(t.Context(), s.st, space.Name, e.Name, "web2"); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	p.until("a move is followed", cells(1)+" === 4")
	p.shot("shards")
	p.fit()
	p.do(chromedp.Click(`[aria-label="Workers"] tbody tr:nth-child(2) a`))
	p.until("what one has is listed", `document.querySelector('[aria-label="Slices"] tbody').rows.length === 4`)
	p.until("the others' are faded", `document.querySelectorAll('svg.shards rect.faded').length === 3`)
	p.fit()
	p = open(t, phone, s.URL+"/#shards/jobs%20%3Cb%3E")
	p.until("it is shown", cells(1)+" === 4")
	p.until("it fits", `document.documentElement.scrollWidth <= innerWidth`)
	p = open(t, night, s.URL+"/#shards/none")
	p.expect = "404"
	p.until("what isn't there is told", `document.querySelector('[role="alert"].problem').textContent.includes('there is no space none')`)
}

// What workers report is shown as a map of load, with the busiest slices, and the share of each worker.
func TestShardLoad(t *testing.T) {
	s := serve(t, nil, server.Options{})
	space := shard.Space{Name: "carts", Names: []string{"0", "1", "2", "3", "4", "5"}}
	owners := []*shard.Owner{s.shardWorker(t, space, "web1"), s.shardWorker(t, space, "web2")}
	p := open(t, desk, s.URL+"/#shards/carts")
	p.until("each has its share", cells(0)+" === 3 && "+cells(1)+" === 3")
	p.until("no load is shown where none is reported", `!document.querySelector('svg.heat') && ![...document.querySelectorAll('th')].some((e) => e.textContent === 'Load')`)
	work(t, owners, func(i int) string { return fmt.Sprint(min(i%15, 5)) }) // slice 5 has ten times as much as another
	bar := func(slice string) string {
		return fmt.Sprintf(`document.querySelector('svg.heat [data-load="%s"]').getBoundingClientRect().height`, slice)
	}
	p.until("the busiest is the highest", bar("5")+" > 60 && ["+bar("0")+", "+bar("4")+"].every((h) => h > 2 && h < 15)")
	p.until("it is below where it is in the map", `Math.abs(document.querySelector('svg.heat [data-load="5"]').getBoundingClientRect().left - document.querySelector('svg.shards [data-slice="5"]').getBoundingClientRect().left) < 1`)
	p.until("the busiest come first", `/^5$/.test(document.querySelector('[aria-label="The busiest slices"] tbody td').textContent)`)
	p.until("each worker's share", `[...document.querySelectorAll('[aria-label="Workers"] tbody tr')].map((r) => Number(/\((\d+) %\)/.exec(r.innerText)[1])).reduce((a, b) => a + b) >= 99`)
	p.looks("shard-load")
}

// A slice is moved, and a worker drained and let own slices again, by who may: the dialog says what happens, and gives the same as a command.
func TestShardOrders(t *testing.T) {
	var may atomic.Bool
	may.Store(true)
	s := serve(t, nil, server.Options{Authenticate: func(*http.Request) (server.Caller, error) { return observer{&may}, nil }})
	space := shard.Space{Name: "jobs", Names: []string{"0", "1", "2", "3", "4", "5", "6"}}
	s.shardWorker(t, space, "web1")
	p := open(t, desk, s.URL+"/#shards/jobs?worker=web1")
	p.until("the first has all", cells(0)+" === 7") // and so keeps the larger share
	s.shardWorker(t, space, "web2")
	p.until("each has its share", cells(0)+" === 4 && "+cells(1)+" === 3")
	press := func(text string) {
		t.Helper()
		p.click("the button", `[...document.querySelectorAll('#view .actions button')].find((b) => b.textContent === '`+text+`')`)
	}
	press("Move a slice…")
	p.until("what happens, and the same as a command", `/orders web1 to stop/.test(document.querySelector('dialog').innerText) && /^leasehold shard move jobs \d --to web2 --store http/.test(document.querySelector('dialog code').textContent)`)
	p.looks("shard-move")
	p.do(chromedp.Click(chromedp.CSS("dialog button.handoff")))
	p.until("it has moved", cells(1)+" === 4 && /ordered web1 to hand . to web2/.test(document.querySelector('#view [role=status]').textContent)")
	press("Drain…")
	p.do(chromedp.SendKeys(chromedp.CSS("#confirm-name"), "web1"))
	p.fit()
	p.do(chromedp.Click(chromedp.CSS("dialog button.pause")))
	p.until("it is drained", cells(1)+" === 7 && [...document.querySelectorAll('[aria-label=Workers] td')].some((c) => c.textContent === 'drained')")
	press("Let it own slices…")
	p.do(chromedp.Click(chromedp.CSS("dialog button.handoff")))
	p.until("it has its share again", cells(0)+" >= 3")
	may.Store(false)
	p = open(t, desk, s.URL+"/#shards/jobs?worker=web1")
	p.until("who may not is told so", `document.getElementById('refusal').textContent.startsWith('observer may not move slices') && !document.querySelector('#view .actions button')`)
	p.fit()
}
