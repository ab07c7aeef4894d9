package browsertest

import (
	"testing"

	"github.com/leasehold/leasehold/store/memory"
)

// The demo shows what it is there to show.
func TestDemo(t *testing.T) {
	t.Parallel() // it mostly waits
	s := played(t, &deaf{Store: memory.New(memory.Options{})})
	p := open(t, desk, s.URL+"/#/")
	p.state("payments/settlement", "paused")
	p.state("search/leader", "held")
	p.state("deploy/production", "contended")
	p.state("orders/shard-2", "held")
	p.state("reports/nightly", "free")
	p.state("mail/outbox", "broken")
	p.state("db/migrations", "expired")
	p.state("ingest/leader", "in jeopardy")
	p.shot("demo")
	p.fit()
	// The incident: others have taken over from the host that has frozen, and an operator has acted.
	eval[bool](p, `location.hash = '#/?q=prefix:checkout/'; true`)
	for _, name := range []string{"checkout/shard-0", "checkout/shard-3"} {
		p.until(name+" is taken over", row(name)+`?.querySelector('.holder').innerText.match(/^web-[45]/)`)
	}
	eval[bool](p, `location.hash = '#overview'; true`)
	p.until("what happened is told", `['paused by ', 'broken', 'taken by web-4'].every((what) => [...document.querySelectorAll('.feed li')].some((l) => l.querySelector('a').textContent.startsWith('checkout/') && l.innerText.includes(what)))`)
	p.shot("demo-incident")
}
