package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// A job's last turn and its exit code are on the board, and its turns in the detail; under its own name, also when that has no record.
func TestTurns(t *testing.T) {
	s := serve(t, nil, server.Options{})
	now := time.Now().UTC().Truncate(time.Minute)
	s.put(t, store.Record{Key: "backup/nightly", Owner: "db-2/4711/k3x", Token: 9, TTL: time.Hour, Acquired: now})
	for _, one := range []struct {
		name  string
		token fence.Token
		code  int
	}{{"backup/nightly", 7, 0}, {"backup/nightly", 8, 3}, {"backup/nightly", 9, -1}, {"swept", 7, 3}} {
		at := now.Add(time.Duration(one.token-9) * 24 * time.Hour)
		turn := turns.Turn{At: at, Zone: "Europe/Berlin", Token: one.token, Holder: "db-2/4711/k3x", Begun: at, Next: at.Add(24 * time.Hour)}
		if done, err := turns.Begin(t.Context(), s.st, one.name, turn, false); done != nil || err != nil {
			t.Fatal(done, err)
		}
		if one.code >= 0 {
			if err := turns.End(t.Context(), s.st, one.name, turn.Token, one.code, at.Add(12*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := open(t, desk, s.URL+"/#/")
	for what, js := range map[string]string{
		"the outcome of each": `[...document.querySelectorAll('.tag.turn')].filter((e) => !e.hidden).map((e) => e.textContent).sort().join() === 'exit code 3,running'`,
		"no internal name":    `!document.body.textContent.includes('.turn/')`,
		"when it was":         `[...document.querySelectorAll('.tag.turn')].some((e) => e.title.includes('Europe/Berlin, running'))`,
	} {
		p.until(what, js)
	}
	p.looks("turns-board")
	p.do(chromedp.Navigate(s.URL + "/#/backup%2Fnightly"))
	for what, js := range map[string]string{
		"three turns":         `document.querySelectorAll('[aria-label="Turns"] tbody tr').length === 3`,
		"an exit code":        `document.querySelector('[aria-label="Turns"]').textContent.includes('exit code 3')`,
		"the last":            `document.querySelector('.facts').textContent.includes('Last turn') && document.querySelector('.facts').textContent.includes(', running')`,
		"the last that ended": `document.querySelector('.facts').textContent.includes('Last turn that ended')`,
		"the next":            `document.querySelector('.facts').textContent.includes('Next turn')`,
	} {
		p.until(what, js)
	}
	p.looks("turns-detail")
}
