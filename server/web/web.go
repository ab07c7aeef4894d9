// Package web is the page of the lock server: an overview, views of names, holders, sessions,
// elections, locks and pools, live, and each name's present, past and queue. ui/views.js says how a
// view is added.
//
// It is plain HTML, CSS and JavaScript modules, embedded, with nothing from elsewhere. The page is
// the same for everybody and needs no permission; what it shows comes from the server's API, as the
// person who looks at it: by the certificate of the browser, or with a bearer token that the page
// asks for.
//
// # What it takes for true
//
// How much of a lease is left is the server's word, expires_in, and counted on from there by the
// browser's monotonic clock: the time of day of the two is never compared. A state is judged as of
// the server's last look at its store. When that was more than 10 s ago, or the store didn't
// answer, the last known states are dimmed, and say that they were.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed ui
var files embed.FS

// folder is where the parts of the page are; below it comes their digest, so that a browser may
// keep them for ever.
const folder = "/ui/"

// policy lets the page use its own parts and nothing else, and lets nobody frame it.
const policy = "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'"

// origin is one that may stand in a policy, where a space, a comma or a semicolon would be more.
var origin = regexp.MustCompile(`^https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)

// policyFor is the policy of a page that may also send requests to those origins.
func policyFor(origins []string) string {
	connect := ""
	for _, o := range slices.Compact(slices.Sorted(slices.Values(origins))) {
		if origin.MatchString(o) {
			connect += " " + o
		}
	}
	if connect == "" {
		return policy
	}
	return policy + "; connect-src 'self'" + connect
}

var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// page returns the files of the page by their paths at the server, and their digest; "/" is the
// page itself. A program that serves no page doesn't make them.
var page = sync.OnceValues(load)

func load() (all map[string][]byte, digest string) {
	all = map[string][]byte{}
	sum := sha256.New()
	entries, err := fs.ReadDir(files, "ui")
	if err != nil { // embedded: it is there
		panic(err)
	}
	for _, e := range entries {
		text, err := files.ReadFile("ui/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[e.Name()] = text
		_, _ = sum.Write(append([]byte(e.Name()+"\x00"), text...)) // a hash takes everything
	}
	digest = hex.EncodeToString(sum.Sum(nil))[:16]
	index := bytes.Replace(all["index.html"], []byte("<script "), append(preloads(all), "<script "...), 1)
	at := map[string][]byte{"/": bytes.ReplaceAll(index, []byte(folder+"-/"), []byte(folder+digest+"/"))}
	delete(all, "index.html")
	for name, text := range all {
		at[folder+digest+"/"+name] = text
	}
	return at, digest
}

// static finds the modules that a module needs before it can run.
var static = regexp.MustCompile(`(?m)^import [^'(]*'\./([^']+)';`)

// preloads has a browser fetch at once the modules that the first rows need: else it learns of
// one's imports when that one has come. The others are imported later.
func preloads(all map[string][]byte) (text []byte) {
	need := map[string]bool{"app.js": true}
	for todo := []string{"app.js"}; len(todo) > 0; todo = todo[1:] {
		for _, m := range static.FindAllSubmatch(all[todo[0]], -1) {
			if name := string(m[1]); !need[name] {
				need[name] = true
				todo = append(todo, name)
			}
		}
	}
	delete(need, "app.js") // which the page itself names
	for _, name := range slices.Sorted(maps.Keys(need)) {
		text = fmt.Appendf(text, "<link rel=\"modulepreload\" href=\"%s-/%s\">\n", folder, name)
	}
	return text
}

// tag names a page with its policy: a browser that keeps the page keeps the policy, too.
func tag(digest string, origins []string) string {
	if len(origins) == 0 {
		return digest
	}
	sum := sha256.Sum256([]byte(policyFor(origins)))
	return digest + "-" + hex.EncodeToString(sum[:4])
}

// Serves reports whether a request is for the page or a part of it: GET / of a client that takes
// HTML, and /ui/.
func Serves(r *http.Request) bool {
	if r.URL.Path == "/" {
		return (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
	}
	return strings.HasPrefix(r.URL.Path, folder)
}

// ServeHTTP answers a request that [Serves] is true of.
func ServeHTTP(w http.ResponseWriter, r *http.Request) { Serve(w, r, nil) }

// Serve is [ServeHTTP] of a page that may also send requests to those origins, https://HOST:PORT:
// an issuer's, with which people log in. It leaves out what is no origin.
func Serve(w http.ResponseWriter, r *http.Request, origins []string) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	parts, digest := page()
	body, ok := parts[r.URL.Path]
	switch {
	case !ok:
		h.Set("Cache-Control", "no-store")
		http.Error(w, "no such part of the page: it has changed, load it again", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this path takes GET", http.StatusMethodNotAllowed)
		return
	case r.URL.Path == "/":
		h.Set("Cache-Control", "no-cache")
		h.Set("Vary", "Accept")
		h.Set("Content-Type", kinds[".html"])
	default:
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Type", kinds[path.Ext(r.URL.Path)])
	}
	h.Set("Content-Security-Policy", policyFor(origins))
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("ETag", `"`+tag(digest, origins)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
