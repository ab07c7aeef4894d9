package interop

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	button    = `document.querySelector('dialog[open] .logins button:not([disabled])')`
	asked     = `document.querySelector('dialog[open]').innerText`
	inAs      = `document.querySelector('#engine').textContent.includes('as corp:id1')`
	token     = `sessionStorage.getItem('leasehold.token')`
	clickMost = `document.querySelector('dialog[open] .logins button').click(); true`
)

// loginSite is a server whose policy has a login with the issuer, and the page registered there.
func loginSite(t *testing.T, p *provider, audience, login string) *site {
	t.Helper()
	s := newSite(t, fmt.Sprintf(`
issuers:
  - {issuer: %q, audience: %s, prefix: "corp:", login: {client_id: %s%s}}
callers:
  - {name: people, subjects: ["corp:*"], allow: [{actions: ["*"], names: ["*"]}]}
`, p.URL, audience, pageID, login))
	p.set(func() { p.browser.redirect = s.URL + "/" })
	return s
}

// back returns where an answer with those parameters leads.
func (p *provider) back(q url.Values) string { return p.seen().redirect + "?" + q.Encode() }

// A person logs in from a view and comes back to it; nothing of the answer stays in the address, and an answer counts once.
func TestLogin(t *testing.T) {
	p := newProvider(t)
	s := loginSite(t, p, pageID, "")
	tb := open(t, s.URL+"/?prefix=ci%2F#/?q=state:held")
	tb.until("it is offered", button+`.textContent === 'Log in with `+strings.TrimPrefix(p.URL, "http://")+`'`)
	tb.looks("login")
	var answer string
	p.set(func() {
		p.browser.answers = func(q url.Values) string {
			answer = p.back(q)
			return answer
		}
	})
	tb.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(8)), chromedp.KeyEvent(kb.Enter)) // back from the token's field to the button
	tb.until("it is in", inAs)
	if at, want := eval[string](tb, "location.href"), s.URL+"/?prefix=ci%2F#/?q=state:held"; at != want {
		t.Errorf("it came back to %s, want %s", at, want)
	}
	if eval[bool](tb, `sessionStorage.getItem('leasehold.login.begun') !== null`) {
		t.Error("the verifier is kept after the login")
	}
	had, calls := eval[string](tb, token), p.seen().tokens
	tb.do(chromedp.Navigate(answer))
	tb.until("a replayed answer is ignored", asked+`.includes('was ignored. You are signed in as before')`)
	tb.until("it is still in", inAs)
	if now := eval[string](tb, token); now != had || p.seen().tokens != calls || calls != 1 {
		t.Errorf("a replayed answer: the issuer was asked %d times, and before %d", p.seen().tokens, calls)
	}
	if at := eval[string](tb, "location.href"); at != s.URL+"/" {
		t.Errorf("the replayed answer stays in the address: %s", at)
	}
	resp, err := http.Get(s.URL + "/v1/login")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

// What is not the issuer's answer to the login of this tab signs nobody in, and the page says why.
func TestLoginAttacks(t *testing.T) {
	p := newProvider(t)
	s := loginSite(t, p, pageID, "")
	// An attacker's own login at the same issuer.
	foreign := func() (code string) {
		client := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Query().Has("code") {
				code = r.URL.Query().Get("code")
				return http.ErrUseLastResponse
			}
			return nil
		}}
		p.set(func() { p.browser.answers = nil })
		resp, err := client.Get(p.URL + "/authorize?" + url.Values{
			"response_type": {"code"}, "client_id": {pageID}, "redirect_uri": {s.URL + "/"}, "scope": {"openid"}, "state": {"x"}, "nonce": {"y"},
			"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
		}.Encode())
		if err != nil || code == "" {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		return code
	}
	const xss = `<img src=x onerror="window.pwned=1"><b>call 0800</b>`
	cases := []struct {
		name   string
		before func(*browser)
		answer func(q url.Values) string
		says   string
		never  string // not said
		tokens int    // requests for tokens
	}{
		{name: "wrong state", answer: func(q url.Values) string { q.Set("state", "guessed"); return p.back(q) }, says: "was ignored"},
		{name: "no state", answer: func(q url.Values) string { q.Set("state", ""); return p.back(q) }, says: "was ignored"},
		{name: "a code of another person's", answer: func(q url.Values) string { q.Set("code", q.Get("injected")); return p.back(q) }, says: "(invalid_grant)", tokens: 1},
		{name: "another nonce", before: func(b *browser) { b.nonce = "another" }, says: "its nonce is not the one of this tab", tokens: 1},
		{name: "another issuer", answer: func(q url.Values) string { q.Set("iss", "https://evil.example"); return p.back(q) }, says: "from another issuer than"},
		{name: "denied", answer: func(q url.Values) string {
			return p.back(url.Values{"error": {"access_denied"}, "error_description": {xss}, "state": q["state"]})
		}, says: `you or the issuer said no (access_denied). It says: “` + xss + `”`},
		{name: "denied by a link", answer: func(url.Values) string {
			return p.back(url.Values{"error": {"access_denied"}, "error_description": {xss}, "state": {"x"}})
		}, says: "was ignored", never: "0800"},
		{name: "an unknown error", answer: func(q url.Values) string {
			return p.back(url.Values{"error": {"__proto__"}, "state": q["state"]})
		}, says: "refuses the login (__proto__)"},
		{name: "no answer", before: func(b *browser) { b.silent = true }, says: "gets no answer from", tokens: -1},
		{name: "elsewhere", answer: func(q url.Values) string {
			q.Set("back", "https://evil.example/")
			q.Set("redirect_uri", "//evil.example")
			q.Set("code", "x")
			return p.back(q)
		}, says: "(invalid_grant)", tokens: 1},
	}
	tb := open(t, s.URL)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			injected := foreign()
			p.set(func() {
				p.browser = browser{redirect: s.URL + "/"}
				if c.before != nil {
					c.before(&p.browser)
				}
				if c.answer != nil {
					p.browser.answers = func(q url.Values) string {
						q.Set("injected", injected)
						return c.answer(q)
					}
				}
			})
			tb.t = t
			tb.do(chromedp.Navigate("about:blank"), chromedp.Navigate(s.URL+"/#overview"))
			tb.until("it is offered", button)
			eval[bool](tb, clickMost)
			tb.until("it says why", fmt.Sprintf("%s.includes(%q)", asked, c.says))
			if c.never != "" && eval[bool](tb, fmt.Sprintf("%s.includes(%q)", asked, c.never)) {
				t.Errorf("it repeats what an address says")
			}
			if eval[bool](tb, token+` !== null || Boolean(window.pwned) || document.querySelector('dialog img, dialog b') !== null || !!sessionStorage.getItem('leasehold.login.begun')`) {
				t.Error("it is signed in, or runs what the answer says, or keeps the login open")
			}
			if at := eval[string](tb, "location.href"); at != s.URL+"/" && at != s.URL+"/#overview" {
				t.Errorf("it is at %s", at)
			}
			if n := p.seen().tokens; n != c.tokens && c.tokens >= 0 { // a browser may send again what was not answered
				t.Errorf("the issuer was asked %d times for tokens, want %d", n, c.tokens)
			}
		})
	}
	tb.t = t
	tb.looks("refused")
}

// A token that the issuer gives and the server refuses is dropped, and the page says why.
func TestLoginWithATokenOfAnotherAudience(t *testing.T) {
	p := newProvider(t)
	s := loginSite(t, p, "other-api", ", token: access_token")
	tb := open(t, s.URL)
	tb.until("it is offered", button)
	eval[bool](tb, clickMost)
	tb.until("it says why", asked+`.includes('is refused: expected audience "other-api"')`)
	if eval[bool](tb, token+" !== null") {
		t.Error("the token is kept")
	}
}

// The page is there while the issuer is down, without a way to it in the page's policy, and says so.
func TestLoginWhileTheIssuerIsDown(t *testing.T) {
	p := newProvider(t)
	s := loginSite(t, p, pageID, "")
	csp := func() string {
		req, err := http.NewRequest(http.MethodGet, s.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.Header.Get("Content-Security-Policy")
	}
	p.Server.Close()
	tb := open(t, s.URL)
	tb.until("it says so", asked+`.includes('The server gets no answer from `+p.URL+`. Sign in with a token')`)
	tb.until("it is not offered", `document.querySelector('dialog[open] .logins button').disabled`)
	tb.looks("down")
	if got := csp(); strings.Contains(got, "connect-src") {
		t.Errorf("%s", got)
	}
	up := newProvider(t)
	s = loginSite(t, up, pageID, "")
	resp, err := http.Get(s.URL + "/v1/login")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := csp(); !strings.HasSuffix(got, "; connect-src 'self' "+up.URL) {
		t.Errorf("%s", got)
	}
}

// With a refresh token a login is renewed before its end, and when the server refuses the token; without one the page says that it has
// ended, and the view stays.
func TestLoginIsRenewed(t *testing.T) {
	p := newProvider(t)
	plain := loginSite(t, p, pageID, "")
	s := loginSite(t, p, pageID, ", scopes: openid offline_access")
	p.set(func() { p.lifetime, p.then = 5*time.Second, 3*time.Hour })
	tb := open(t, s.URL+"/#holders")
	tb.until("it is offered", button)
	eval[bool](tb, clickMost)
	tb.until("it is in", inAs)
	tb.until("it is renewed", fmt.Sprintf(`JSON.parse(atob(%s.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).exp > Date.now() / 1000 + 3600`, token))
	second := eval[string](tb, token)
	s.pass(4 * time.Hour) // at the server's clock alone
	p.set(func() { p.lifetime = 6 * time.Hour })
	tb.do(chromedp.Reload())
	tb.until("it is in again", inAs)
	if now := eval[string](tb, token); now == second || p.seen().tokens != 3 {
		t.Errorf("%d requests for tokens", p.seen().tokens)
	}

	p.set(func() { p.lifetime, p.browser.redirect = 3*time.Second, plain.URL+"/" })
	tb.do(chromedp.Navigate(plain.URL + "/#holders"))
	tb.until("it is offered", button)
	eval[bool](tb, clickMost)
	tb.until("it says that it has ended", `/Your login with 127.0.0.1:\d+ has ended/.test(document.querySelector('#notice:not([hidden])').innerText) && document.querySelector('.holders')`)
	tb.looks("ended")
	p.set(func() { p.lifetime = time.Hour })
	ended := eval[string](tb, token)
	eval[bool](tb, `document.querySelector('#notice button').click(); true`)
	tb.until("it is in again, at the same view", fmt.Sprintf(`%s && %s !== %q && location.hash === '#holders' && document.querySelector('#notice').hidden`, inAs, token, ended))
}
