package interop

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// patience is how long a test waits for what the page should show.
const patience = time.Minute

// tab is a tab of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open starts a browser, or skips the test.
func open(t *testing.T, url string) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		const missing = "no Chromium here: the login is not tested in a browser; apt-get install chromium"
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	ctx, endBrowser := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox)...) // which root has none of
	ctx, endTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("the browser does not end by itself: %v", err)
		}
		endTab()
		endBrowser()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	p := &tab{t, ctx}
	p.on(1200, 720, "light")
	p.do(chromedp.Navigate(url))
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

// until waits for an expression to become true, over the pages that come meanwhile.
func (p *tab) until(what, js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	js = "(() => { try { return (" + js + ") } catch (e) { if (e instanceof TypeError) return false; throw e } })()"
	poll := func() error {
		return chromedp.Do(ctx, chromedp.Poll[chromedp.Void](js, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0)))
	}
	err := poll()
	for err != nil && ctx.Err() == nil && (strings.Contains(err.Error(), "context with") || strings.Contains(err.Error(), "navigated")) {
		err = poll()
	}
	if err != nil {
		p.t.Fatalf("never %s: %v; at %s the page says:\n%s", what, err, eval[string](p, "location.href"), eval[string](p, "document.body.innerText"))
	}
}

func (p *tab) on(width, height int64, scheme string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(width, height))
}

// looks judges what is shown, in light, in dark and on a phone: it fits the screen, and axe finds nothing. LEASEHOLD_TEST_SHOTS keeps pictures.
func (p *tab) looks(name string) {
	p.t.Helper()
	axe, err := os.ReadFile("../../../../../server/web/browsertest/testdata/axe/axe.min.js")
	if err != nil {
		p.t.Fatal(err)
	}
	eval[bool](p, string(axe)+";true")
	for _, sc := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"light", 1200, 720, "light"}, {"dark", 1200, 720, "dark"}, {"phone", 390, 844, "light"}} {
		p.on(sc.width, sc.height, sc.scheme)
		p.until("it fits, "+sc.name, `document.documentElement.scrollWidth <= innerWidth`)
		png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			p.t.Fatal(err)
		}
		if dir := os.Getenv("LEASEHOLD_TEST_SHOTS"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name+"-"+sc.name+".png"), png, 0o600); err != nil {
				p.t.Fatal(err)
			}
		}
		var found []string
		text := eval[string](p, `axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations.map((v) => v.id + ': ' + v.help + ' at ' + v.nodes.map((n) => n.html.slice(0, 160)).join(' | '))))`)
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			p.t.Fatal(err)
		}
		for _, v := range found {
			p.t.Errorf("%s-%s: axe: %s", name, sc.name, v)
		}
	}
	p.on(1200, 720, "light")
}
