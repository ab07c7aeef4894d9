package browsertest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/server/web/demo"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/memory"
)

// notes is a journal in memory.
type notes struct {
	begun time.Time
	mu    sync.Mutex
	spans map[noted]server.Span
}

// noted is what tells spans apart.
type noted struct {
	name  string
	kind  server.SpanKind
	token fence.Token
	from  time.Time
}

func (n *notes) Standing(context.Context) (all []server.Span, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.spans {
		if s.Until.IsZero() {
			all = append(all, s)
		}
	}
	return all, nil
}

func (n *notes) Note(_ context.Context, spans []server.Span) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range spans {
		key := noted{s.Name, s.Kind, s.Token, s.From}
		if s.Kind == server.SpanTerm || s.Kind == server.SpanShare {
			key.from = time.Time{}
		}
		n.spans[key] = s
	}
	return nil
}

func (n *notes) Find(_ context.Context, q server.SpanQuery) (server.SpanPage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	page := server.SpanPage{From: n.begun}
	for _, s := range n.spans {
		if strings.HasPrefix(s.Name, q.Prefix) && (q.Name == "" || s.Name == q.Name) && (s.Until.IsZero() || s.Until.After(q.Since)) && (q.Until.IsZero() || s.From.Before(q.Until)) {
			page.Spans = append(page.Spans, s)
		}
	}
	slices.SortFunc(page.Spans, func(a, b server.Span) int {
		if a.Until.IsZero() != b.Until.IsZero() {
			return cmp.Compare(b2i(b.Until.IsZero()), b2i(a.Until.IsZero()))
		}
		return b.Until.Compare(a.Until)
	})
	return page, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// played has the demo played at a server with a journal.
func played(t *testing.T, st *deaf) *site {
	s := serve(t, st, server.Options{Journal: &notes{begun: time.Now(), spans: map[noted]server.Span{}}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		demo.Play(ctx, s.URL, clock.System())
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

// TestPictures takes the pictures of the docs, of the demo's incident. It is run by scripts/pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("LEASEHOLD_PICTURES")
	if dir == "" {
		t.Skip("the pictures of the docs are taken by scripts/pictures")
	}
	st := &deaf{Store: memory.New(memory.Options{})}
	s := played(t, st)
	p := open(t, screen{"picture", 1200, 760, false}, s.URL+"/#overview")
	take := func(name string) {
		t.Helper()
		p.take(filepath.Join(dir, name))
	}
	p.until("the operator has acted", `['checkout/export broken', 'checkout/leader paused', 'checkout/shard-3 taken by web-5'].every((what) => [...document.querySelectorAll('.feed li')].some((l) => l.innerText.replace(/\s+/g, ' ').includes(what)))`)
	take("server-overview.png")
	eval[bool](p, `location.hash = '#/'; true`)
	p.state("checkout/export", "broken")
	take("server.png")
	p.until("the job that was stuck has been taken over", row("checkout/export")+`?.querySelector('.holder').innerText.startsWith('export@web-5')`)
	p.do(chromedp.Navigate(s.URL + "/?prefix=checkout/#/"))
	p.until("it is there", `document.querySelectorAll('#rows .row').length > 4`)
	eval[bool](p, `location.hash = '#timeline?for=60'; true`)
	if _, err := chromedp.Call(p.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err) // without it no tab of this browser has the focus
	}
	lost := `[...document.querySelectorAll('.lane')].find((l) => l.querySelector('.lane-name').title === 'checkout/export')?.querySelector('.term.lost')`
	p.until("the term that was lost", lost)
	eval[bool](p, lost+`.focus(); true`)
	p.until("what became of it", `/broken/.test(document.getElementById('span-said').textContent)`)
	take("server-timeline.png")
	p.do(chromedp.Navigate(s.URL + "/#/"))
	p.state("checkout/shard-0", "held")
	st.down.Store(true)
	p.until("it has been down for a while", `/Not current: 2\d s/.test(document.getElementById('live').innerText)`)
	take("server-store-down.png")
}

// take keeps a picture of what is in view.
func (p *page) take(path string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(path, png, 0o644) //nolint:gosec // a picture
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestPicturesOfOthers takes those of what the demo doesn't play: a sharded space, and a pair of two Regions.
func TestPicturesOfOthers(t *testing.T) {
	dir := os.Getenv("LEASEHOLD_PICTURES")
	if dir == "" {
		t.Skip("the pictures of the docs are taken by scripts/pictures")
	}
	db := memory.NewDB(memory.Options{})
	s := serve(t, db.Open(), server.Options{})
	space := shard.Space{Name: "orders", Hashed: true, Slices: 48}
	var owners []*shard.Owner
	for _, name := range []string{"web-1", "web-2", "web-3", "web-4"} {
		owners = append(owners, s.shardWorker(t, space, name))
	}
	work(t, owners, func(i int) string { return fmt.Sprint("order-", i%97*(i%13)) })
	p := open(t, screen{"picture", 1200, 760, false}, s.URL+"/#shards/orders")
	p.until("all have a share, and report their load", `document.querySelectorAll('svg.heat rect').length > 24 && [0, 1, 2, 3].every((i) => document.querySelectorAll('svg.shards .shard-' + i).length > 5) && !/unowned|on the move/.test(document.querySelector('#view').innerText.split('\n')[2])`)
	p.take(filepath.Join(dir, "server-shards.png"))
	east := instance(t, db, "east", "us-east-2")
	active(t, east)
	instance(t, db, "west", "us-west-2")
	eval[bool](p, `location.hash = '#pair/prod'; true`)
	p.until("both have answered", region("east")+`.dataset.state === 'active' && `+region("west")+`.innerText.includes('another instance holds the lease')`)
	p.take(filepath.Join(dir, "server-pair.png"))
}
