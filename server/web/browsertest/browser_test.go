package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
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
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what the page should show.
const patience = 3 * time.Minute

// screen is what a page is looked at on.
type screen struct {
	name          string
	width, height int64
	dark          bool
}

var (
	desk  = screen{"light", 1200, 720, false}
	night = screen{"dark", 1200, 720, true}
	phone = screen{"phone", 390, 844, false}
)

// page is a tab of a browser. What its console says is a failure of the test, but for what is expected.
type page struct {
	t      *testing.T
	ctx    context.Context
	expect string // of the console's complaints: those that contain it are none

	mu         sync.Mutex
	complaints []string
}

// chromium returns the program, or skips the test in one line.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no Chromium here: the page is not tested in a browser; apt-get install chromium"
	if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// open starts a browser with one tab, and has it load a URL.
func open(t *testing.T, sc screen, url string) *page {
	t.Helper()
	p := &page{t: t}
	// The test's own context ends before the browser has been closed.
	// The folder of its profile is chromedp's: processes of the browser's may outlive it, and write there while the test's own folder is
	// being removed, which would be a failure.
	ctx, endBrowser := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, // which root has none of
		chromedp.WindowSize(int(sc.width), int(sc.height)))...)
	ctx, endTab := chromedp.NewContext(ctx, chromedp.WithListener(p.listen))
	p.ctx = ctx
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("the browser does not end by itself: %v", err)
		}
		endTab()
		endBrowser()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.complaints {
			if p.expect == "" || !strings.Contains(text, p.expect) {
				t.Errorf("the console says: %s", text)
			}
		}
	})
	if err := chromedp.Do(ctx); err != nil { // starts the browser, for longer than one action may take
		t.Fatal(err)
	}
	p.on(sc)
	p.do(chromedp.Navigate(url))
	return p
}

// on has the page looked at on another screen.
func (p *page) on(sc screen) {
	p.t.Helper()
	scheme := "light"
	if sc.dark {
		scheme = "dark"
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(sc.width, sc.height))
}

// looks judges what is shown now, in light, in dark and on a phone: it fits the screen, and axe finds nothing. Pictures are kept of it.
func (p *page) looks(name string) {
	p.t.Helper()
	for _, sc := range []screen{desk, night, phone} {
		p.on(sc)
		p.until("it fits, "+sc.name, `document.documentElement.scrollWidth <= innerWidth`)
		p.shot(name + "-" + sc.name)
		p.fit()
	}
	p.on(desk)
}

// listen collects what the console complains of, and what nobody caught.
func (p *page) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, arg := range e.Args {
				text += string(arg.Value) + " " + arg.Description
			}
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *cdplog.EventEntryAdded:
		text = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	}
	if text != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.complaints = append(p.complaints, text)
	}
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// eval returns what an expression of JavaScript gives; a promise is waited for.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// until waits for an expression to become true. One that looks at what isn't there yet is not.
func (p *page) until(what, js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	js = "(() => { try { return (" + js + ") } catch (e) { if (e instanceof TypeError) return false; throw e } })()"
	poll := chromedp.Poll[chromedp.Void](js, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0))
	if err := chromedp.Do(ctx, poll); err != nil {
		p.shot("failed")
		p.t.Fatalf("never %s: %v; the page says:\n%s", what, err, eval[string](p, "document.body.innerText"))
	}
}

// click clicks an element as soon as it is there. It may be gone a moment later, as when the page was kept busy, and what it shows isn't
// current.
func (p *page) click(what, js string) {
	p.t.Helper()
	p.until(what, `(() => { const el = `+js+`; el.click(); return true })()`)
}

// row is an expression for the row of a name on the board.
func row(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#rows .row')].find((r) => r.querySelector('a').textContent === %q)`, name)
}

// state waits for a name to be on the board in that state.
func (p *page) state(name, state string) {
	p.t.Helper()
	p.until(name+" is "+state, fmt.Sprintf("%s?.querySelector('.badge').dataset.state === %q", row(name), state))
}

// shot takes a picture of what is in view.
func (p *page) shot(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	dir := os.Getenv("LEASEHOLD_TEST_SHOTS") // where to keep them
	if dir == "" {
		dir = p.t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pictures
		p.t.Fatal(err)
	}
	path := filepath.Join(dir, name+".png")
	if err := os.WriteFile(path, png, 0o644); err != nil { //nolint:gosec // a picture
		p.t.Fatal(err)
	}
	p.t.Logf("%s: %d bytes", path, len(png))
}

// fit has axe-core look for what keeps people from using the page.
func (p *page) fit() {
	p.t.Helper()
	axe, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		p.t.Fatal(err)
	}
	eval[bool](p, string(axe)+";true")
	text := eval[string](p, `axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify({passes: r.passes.length, violations: r.violations.map(
		(v) => v.id + ': ' + v.help + ' at ' + v.nodes.slice(0, 4).map((n) => n.html.slice(0, 160) + ' ' + n.failureSummary).join(' | '))}))`)
	var found struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.t.Fatal(err)
	}
	if found.Passes == 0 {
		p.t.Error("axe found nothing to judge")
	}
	for _, v := range found.Violations {
		p.t.Errorf("axe: %s", v)
	}
}

// site is a server on a store in memory.
type site struct {
	*httptest.Server
	srv *server.Server
	st  store.Store
}

func serve(t *testing.T, st store.Store, opts server.Options) *site {
	t.Helper()
	if st == nil {
		st = memory.New(memory.Options{})
	}
	srv, err := server.New(st, opts)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{httptest.NewServer(srv), srv, st}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		s.Close()
		_ = st.Close()
	})
	return s
}

// put writes a record as a holder would have.
func (s *site) put(t *testing.T, rec store.Record) store.Record {
	t.Helper()
	if rec.Token == 0 {
		rec.Token = 1795281126100
	}
	if rec.TTL == 0 {
		rec.TTL = time.Hour
	}
	if rec.Acquired.IsZero() {
		rec.Acquired = time.Now().Add(-90 * time.Minute)
	}
	rec.Nonce += rec.Key
	rec, err := s.st.Put(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// broken is a hold that an operator has ended.
func (s *site) broken(t *testing.T, rec store.Record) {
	t.Helper()
	rec = s.put(t, rec)
	if _, err := drive.Break(t.Context(), s.st, rec.Key, drive.EndTerm{Token: rec.Token, By: "ops", Reason: "host is drained"}); err != nil {
		t.Fatal(err)
	}
}

// listenAt serves at an address, where somebody may have served before.
func listenAt(t *testing.T, addr string, h http.Handler) *httptest.Server {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	return s
}

// hangUp ends a server and its connections. Nobody may come back in between: the server would wait for a stream that never ends.
func hangUp(s *httptest.Server) {
	_ = s.Listener.Close()
	s.CloseClientConnections()
	s.Close()
}
