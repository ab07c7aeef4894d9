package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const patience = 2 * time.Minute

// tab is one of a browser. What its console says is a failure of the test.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open starts a browser, as wide as said, in the light or in the dark.
func open(t *testing.T, width int64, dark bool) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		const missing = "no Chromium here: the site is not looked at in a browser; apt-get install chromium"
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	ctx, endBrowser := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(int(width), 900))...)
	var mu sync.Mutex
	var complaints []string
	ctx, endTab := chromedp.NewContext(ctx, chromedp.WithListener(func(event any) {
		text := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text = e.ExceptionDetails.Text
		case *cdplog.EventEntryAdded:
			text = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
		if text != "" {
			mu.Lock()
			defer mu.Unlock()
			complaints = append(complaints, text)
		}
	}))
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("the browser does not end by itself: %v", err)
		}
		endTab()
		endBrowser()
		mu.Lock()
		defer mu.Unlock()
		for _, text := range complaints {
			t.Errorf("the console says: %s", text)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		t.Fatal(err)
	}
	p := &tab{t, ctx}
	p.do(chromedp.EmulateViewport(width, 900))
	return p
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func eval[T any](p *tab, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *tab) until(what, js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	poll := chromedp.Poll[chromedp.Void](js, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0))
	err := chromedp.Do(ctx, poll)
	for err != nil && strings.Contains(err.Error(), "Cannot find context") && ctx.Err() == nil { // another page has come
		err = chromedp.Do(ctx, poll)
	}
	if err != nil {
		p.shot("failed")
		p.t.Fatalf("never %s: %v", what, err)
	}
}

// shot takes a picture of what is in view, and keeps it if LEASEHOLD_TEST_SHOTS says where.
func (p *tab) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("LEASEHOLD_TEST_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644) //nolint:gosec // a picture
	}
	if err != nil {
		p.t.Error(err)
	}
}

// The site works from a disk, without a server: light, dark and on a phone, no page is wider than the
// screen, what is hidden stays reachable, and axe-core finds nothing that keeps people from using it.
func TestInABrowser(t *testing.T) {
	dir := theSite(t)
	axe, err := os.ReadFile(filepath.Join(checkout, "server", "web", "browsertest", "testdata", "axe", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range []struct {
		name  string
		width int64
		dark  bool
	}{{"light", 1440, false}, {"dark", 1440, true}, {"phone", 390, false}} {
		t.Run(sc.name, func(t *testing.T) {
			p := open(t, sc.width, sc.dark)
			for _, name := range []string{"index", "command", "shell", "engines", "source/examples/embedded"} {
				p.do(chromedp.Navigate("file://" + filepath.Join(dir, name+".html")))
				if wide := eval[int](p, "document.documentElement.scrollWidth"); int64(wide) > sc.width {
					t.Errorf("%s is %d wide, on a screen of %d", name, wide, sc.width)
				}
				p.shot(sc.name + "-" + strings.ReplaceAll(name, "/", "-"))
				eval[bool](p, string(axe)+";true")
				for _, v := range eval[[]string](p, `axe.run(document, {preload: false, resultTypes: ['violations']}).then((r) => r.violations.map(
					(v) => v.id + ': ' + v.help + ' at ' + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120)).join(' | ')))`) {
					t.Errorf("%s: axe: %s", name, v)
				}
			}
			if open := eval[bool](p, "document.getElementById('menu').open"); open != (sc.name != "phone") {
				t.Errorf("the list of pages is open: %v", open)
			}
			if sc.name == "phone" {
				p.do(chromedp.Click(chromedp.CSS("#menu summary")))
				p.until("the list of pages is open", `document.querySelector('nav a').checkVisibility()`)
				p.shot("phone-menu")
			}
		})
	}
}

// search types words in place of what is there.
func (p *tab) search(words string) {
	p.t.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](`document.getElementById('search').select()`), chromedp.SendKeys(chromedp.CSS("#search"), words))
}

// From any page, also one in a folder, a search finds the page on a thing, and leads to it.
func TestSearch(t *testing.T) {
	dir := theSite(t)
	p := open(t, 1440, false)
	p.do(chromedp.Navigate("file://"+filepath.Join(dir, "source/examples/embedded.html")), chromedp.KeyEvent("/"))
	p.until("in the search", `document.activeElement.id === 'search'`)
	p.search("Exit CODES")
	p.until("found", `document.querySelectorAll('#found a').length > 0`)
	p.shot("search")
	if first := eval[string](p, `document.querySelector('#found a').href`); !strings.HasSuffix(first, "/command.html#exit-codes") {
		t.Errorf("the first one found is %s", first)
	}
	p.do(chromedp.KeyEvent("\r"))
	p.until("there", `location.hash === '#exit-codes' && document.querySelector('h1').textContent === 'The command'`)
	p.search("qqqqq")
	p.until("nothing is found", `document.querySelector('#found .none')?.checkVisibility() === true`)
}
