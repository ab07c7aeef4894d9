package web

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var parts, digest = page()

// get asks for a part of the page.
func get(t *testing.T, method, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	ServeHTTP(w, r)
	return w
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		method, path, accept string
		want                 bool
	}{
		{"GET", "/", "text/html,application/xhtml+xml,*/*;q=0.8", true},
		{"HEAD", "/", "text/html", true},
		{"GET", "/", "*/*", false}, // RDLM's clients, curl
		{"GET", "/", "", false},
		{"POST", "/", "text/html", false},
		{"GET", "/ui/x/app.js", "*/*", true},
		{"GET", "/v1/leases", "text/html", false},
		{"GET", "/locks/x", "text/html", false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
		r.Header.Set("Accept", c.accept)
		if got := Serves(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Every part that the page and its modules name is there, may be kept for ever, and comes from nowhere else.
func TestParts(t *testing.T) {
	page := get(t, http.MethodGet, "/")
	links := regexp.MustCompile(`(?:href|src)="(/[^"]*)"`).FindAllStringSubmatch(page.Body.String(), -1)
	if len(links) < 3 {
		t.Fatalf("the page names %v", links)
	}
	for _, link := range links {
		w := get(t, http.MethodGet, link[1])
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", link[1], w.Code, w.Header())
		}
	}
	imports := regexp.MustCompile(`(?:from |import |import\()'([^']*)'`)
	for path, text := range parts {
		for _, m := range imports.FindAllStringSubmatch(string(text), -1) {
			name, ok := strings.CutPrefix(m[1], "./")
			if _, there := parts[folder+digest+"/"+name]; !ok || !there {
				t.Errorf("%s imports %s", path, m[1])
			}
		}
		if m := regexp.MustCompile(`https?://(?:[^w]|w[^w])`).Find(text); m != nil && !strings.HasSuffix(path, ".svg") {
			t.Errorf("%s names another place: %s", path, m)
		}
		if m := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|<style|<script>| style="| on[a-z]+="`).Find(text); m != nil {
			t.Errorf("%s has %s, which its policy forbids", path, m)
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		w := get(t, http.MethodGet, path)
		h := w.Header()
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: %q", path, csp)
		}
		if h.Get("Content-Type") == "" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
		if again := get(t, http.MethodGet, path, "If-None-Match", h.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: known already: %d", path, again.Code)
		}
	}
	if h := get(t, http.MethodGet, "/").Header(); h.Get("Cache-Control") != "no-cache" || h.Get("Vary") != "Accept" {
		t.Errorf("%v", h)
	}
	if w := get(t, http.MethodGet, "/ui/0000/app.js"); w.Code != http.StatusNotFound || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("another version's: %d %v", w.Code, w.Header())
	}
	if w := get(t, http.MethodPost, folder+digest+"/app.js"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// What the first rows need is fetched at once, all of it and nothing else: views that are opened later are imported then.
func TestPreloads(t *testing.T) {
	text := get(t, http.MethodGet, "/").Body.String()
	preloaded := map[string]bool{}
	for _, m := range regexp.MustCompile(`rel="modulepreload" href="`+folder+digest+`/([^"]*)"`).FindAllStringSubmatch(text, -1) {
		preloaded[m[1]] = true
	}
	for _, name := range []string{"model.js", "names.js", "grid.js", "home.js"} {
		if !preloaded[name] {
			t.Errorf("%s is not preloaded", name)
		}
	}
	for _, name := range []string{"app.js", "detail.js", "timeline.js", "lists.js", "shards.js", "pair.js", "operations.js"} {
		if preloaded[name] {
			t.Errorf("%s is preloaded: the first rows would wait for it", name)
		}
	}
	from := regexp.MustCompile(`(?s)\nimport [^'()]*'\./([^']*)'`)
	for name := range preloaded {
		for _, m := range from.FindAllSubmatch(append([]byte("\n"), parts[folder+digest+"/"+name]...), -1) {
			if !preloaded[string(m[1])] {
				t.Errorf("%s imports %s, which is not preloaded", name, m[1])
			}
		}
	}
}

// The page may ask the issuers' origins and nobody else, and a browser that keeps the page asks again when they change.
func TestOrigins(t *testing.T) {
	of := func(origins ...string) http.Header {
		w := httptest.NewRecorder()
		Serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), origins)
		return w.Header()
	}
	const csp = "Content-Security-Policy"
	if got := of().Get(csp); got != policy || strings.Contains(got, "connect-src") {
		t.Errorf("without a login: %q", got)
	}
	if got := of("https://id.example.com", "http://[::1]:8080", "https://id.example.com").Get(csp); got != policy+"; connect-src 'self' http://[::1]:8080 https://id.example.com" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"https://a;script-src *", "https://a b", "https://a,b", "https://*", "*", "https://a/path", "javascript:x", "https://a\n"} {
		if got := of(bad).Get(csp); got != policy {
			t.Errorf("%q: %q", bad, got)
		}
	}
	if of().Get("ETag") == of("https://a").Get("ETag") || of("https://a").Get("ETag") == of("https://b").Get("ETag") {
		t.Error("two policies have one tag")
	}
}
