package rdlm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type site struct {
	*httptest.Server
	reg *lessor.Registry
	db  *memory.DB
}

func newSite(t *testing.T, opts Options) *site {
	t.Helper()
	s := &site{db: memory.NewDB(memory.Options{})}
	s.start(t, opts)
	return s
}

// start starts a server, or another one on the same store.
func (s *site) start(t *testing.T, opts Options) {
	t.Helper()
	st := s.db.Open()
	s.reg = lessor.New(st, lessor.Options{})
	s.Server = httptest.NewServer(New(s.reg, st, clock.System(), opts))
	reg, hs := s.reg, s.Server
	t.Cleanup(func() {
		_ = reg.Close()
		hs.Close()
		_ = st.Close()
	})
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) ask(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	a, err := s.try(t.Context(), method, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *site) try(ctx context.Context, method, path, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

func html(status int, msg string) string {
	return fmt.Sprintf("<html><title>%d: %s</title><body>%d: %s</body></html>", status, msg, status, msg)
}

const body = `{"title": "me", "wait": 0, "lifetime": 60}`

// locked acquires a lock and returns its path.
func (s *site) locked(t *testing.T, name, body string) string {
	t.Helper()
	a := s.ask(t, http.MethodPost, "/locks/"+name, body)
	path, ok := strings.CutPrefix(a.header.Get("Location"), s.URL)
	if a.status != http.StatusCreated || !ok || a.body != html(201, "lock acquired at "+s.URL+path) || a.header.Get("Leasehold-Token") == "" {
		t.Fatalf("%+v", a)
	}
	if _, uid, _ := strings.Cut(strings.TrimPrefix(path, "/locks/"), "/"); !uidFormat.MatchString(uid) {
		t.Errorf("%s: no uid", path)
	}
	return path
}

func TestLock(t *testing.T) {
	s := newSite(t, Options{})
	path := s.locked(t, "job", body)
	if a := s.ask(t, http.MethodPost, "/locks/job", body); a.status != 408 || a.body != html(408, "lock request (wait) timeout") {
		t.Errorf("locked twice: %+v", a)
	}
	a := s.ask(t, http.MethodGet, path, "")
	if a.status != 200 || a.header.Get("Content-Type") != "application/hal+json" || !strings.HasPrefix(a.body, "{\n    \"uid\"") {
		t.Errorf("%+v", a)
	}
	if again := s.ask(t, http.MethodPut, path, ""); again.status != 200 {
		t.Errorf("renewed: %+v", again)
	}
	tag := s.ask(t, http.MethodGet, "/locks/job/nobody", "")
	if tag.status != 404 || tag.body != html(404, "lock not found") {
		t.Errorf("another's: %+v", tag)
	}
	for _, want := range []int{204, 404} {
		a := s.ask(t, http.MethodDelete, path, "")
		if a.status != want || want == 404 && a.body != html(404, "lock not found") {
			t.Errorf("released: %+v, want %d", a, want)
		}
	}
	s.locked(t, "job", body)
}

// What a lock looks like, byte by byte but for the times and the uid.
func TestHAL(t *testing.T) {
	s := newSite(t, Options{Admin: Admin{open: true}})
	path := s.locked(t, "job", `{"title": ["<é>", 1], "wait": 5, "lifetime": 60, "other": 1}`)
	got := s.ask(t, http.MethodGet, path, "").body
	var l lock
	if err := json.Unmarshal([]byte(got), &l); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{
    "uid": "%s",
    "title": [
        "<é>",
        1
    ],
    "active_since": "%s",
    "_links": {
        "self": {
            "href": "/locks/job/%s"
        },
        "resource": {
            "href": "/resources/job"
        }
    },
    "active_expires": "%s",
    "active": true,
    "lifetime": 60,
    "wait": 5,
    "token": %d
}`, l.UID, l.ActiveSince, l.UID, l.ActiveExpires, l.Token)
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	since, err := time.ParseInLocation("2006-01-02T15:04:05", l.ActiveSince[:19], time.Local)
	if d := time.Since(since); err != nil || d < 0 || d > time.Minute {
		t.Errorf("active since %s: %v", l.ActiveSince, err)
	}
	expires, err := time.ParseInLocation("2006-01-02T15:04:05", l.ActiveExpires[:19], time.Local)
	if d := expires.Sub(since); err != nil || d < 58*time.Second || d > 61*time.Second {
		t.Errorf("expires %s: %v", l.ActiveExpires, err)
	}
}

func TestEtag(t *testing.T) {
	s := newSite(t, Options{Admin: Admin{open: true}})
	a := s.ask(t, http.MethodGet, "/resources", "")
	if want := "{\n    \"_links\": {\n        \"self\": {\n            \"href\": \"/resources\"\n        }\n    }\n}"; a.body != want {
		t.Errorf("nothing is locked: %s", a.body)
	}
	for tag, status := range map[string]int{a.header.Get("Etag"): 304, `"x", W/` + a.header.Get("Etag"): 304, `"x"`: 200} {
		if b := s.ask(t, http.MethodGet, "/resources", "", "If-None-Match", tag); b.status != status {
			t.Errorf("If-None-Match: %s: %d", tag, b.status)
		}
	}
}

func TestQueue(t *testing.T) {
	s := newSite(t, Options{Admin: Admin{open: true}})
	first := s.locked(t, "job", body)
	type late struct {
		answer
		err error
	}
	own := map[string]string{"deleted": `, "uid": "` + strings.Repeat("d", 32) + `"`}
	wait := func(ctx context.Context, title string) chan late {
		done := make(chan late, 1)
		before := len(s.reg.Waiting("job"))
		go func() {
			a, err := s.try(ctx, http.MethodPost, "/locks/job", `{"title": "`+title+`", "wait": 60, "lifetime": 60`+own[title]+`}`)
			done <- late{a, err}
		}()
		s.waiting(t, before+1)
		return done
	}
	ctx, hangUp := context.WithCancel(t.Context())
	gone := wait(ctx, "gone")
	deleted, second := wait(t.Context(), "deleted"), wait(t.Context(), "second")
	var r resource
	if err := json.Unmarshal([]byte(s.ask(t, http.MethodGet, "/resources/job", "").body), &r); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Embedded.Locks); n != 4 || !r.Embedded.Locks[0].Active || r.Embedded.Locks[0].Links.Resource != nil || string(r.Embedded.Locks[2].Title) != `"deleted"` {
		t.Fatalf("%d: %+v", n, r.Embedded.Locks)
	}
	if shown := r.Embedded.Locks[2].Links.Self.Href; s.ask(t, http.MethodGet, shown, "").status != 200 || s.ask(t, http.MethodDelete, shown, "").status != 404 {
		t.Errorf("%s is shown to others, and gives up a place in the queue", shown)
	}
	queued := "/locks/job/" + strings.Repeat("d", 32)
	var l lock
	if err := json.Unmarshal([]byte(s.ask(t, http.MethodGet, queued, "").body), &l); err != nil || l.Active || l.WaitSince == "" || l.WaitExpires == "" || l.ActiveSince != "" {
		t.Errorf("%+v, %v", l, err)
	}
	hangUp()
	if a := <-gone; a.err == nil {
		t.Errorf("who hung up got %+v", a)
	}
	s.waiting(t, 2)
	if a := s.ask(t, http.MethodDelete, queued, ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	if a := <-deleted; a.status != 409 || a.body != html(409, "lock request deleted") {
		t.Errorf("%+v", a)
	}
	if a := s.ask(t, http.MethodDelete, first, ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	if a := <-second; a.status != 201 {
		t.Errorf("%+v", a)
	}
	third := wait(t.Context(), "third")
	if a := s.ask(t, http.MethodDelete, "/resources/job", ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	if a := <-third; a.status != 409 {
		t.Errorf("%+v", a)
	}
	if a := s.ask(t, http.MethodDelete, "/resources/job", ""); a.status != 404 || a.body != html(404, "no resource (with locks) found") {
		t.Errorf("%+v", a)
	}
}

func (s *site) waiting(t *testing.T, n int) {
	t.Helper()
	for len(s.reg.Waiting("job")) != n {
		if t.Context().Err() != nil {
			t.Fatalf("%d wait, want %d", len(s.reg.Waiting("job")), n)
		}
		time.Sleep(time.Millisecond)
	}
}

// Who waited when the server closed, and brings its uid to the next one, is before those who are new.
func TestPlaceAfterRestart(t *testing.T) {
	s := newSite(t, Options{Admin: Admin{open: true}})
	path := s.locked(t, "job", body)
	answers := make(chan answer, 8)
	wait := func(title, uid string) {
		before := len(s.reg.Waiting("job"))
		go func() {
			a, err := s.try(t.Context(), http.MethodPost, "/locks/job", `{"title": "`+title+`", "wait": 60, "lifetime": 60`+uid+`}`)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
		s.waiting(t, before+1)
	}
	first, second := `, "uid": "`+strings.Repeat("1", 32)+`"`, `, "uid": "`+strings.Repeat("2", 32)+`"`
	wait("first", first)
	wait("second", second)
	if err := s.reg.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if a := <-answers; a.status != 409 {
			t.Errorf("who waited when the server closed got %+v", a)
		}
	}
	s.start(t, Options{Admin: Admin{open: true}})
	wait("new", "")
	wait("second", second)
	wait("first", first)
	var titles []string
	for _, q := range s.reg.Waiting("job") {
		titles = append(titles, q.Info[infoTitle])
	}
	if want := []string{`"first"`, `"second"`, `"new"`}; !slices.Equal(titles, want) {
		t.Errorf("order %v, want %v", titles, want)
	}
	if a := s.ask(t, http.MethodDelete, path, ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	if a := <-answers; a.status != 201 || !strings.HasSuffix(a.header.Get("Location"), strings.Repeat("1", 32)) {
		t.Errorf("the next one has %+v", a)
	}
	s.ask(t, http.MethodDelete, "/resources/job", "")
	<-answers
	<-answers
}

// A lock outlives the server; who waited brings its uid, and has its lock or its place.
func TestRestart(t *testing.T) {
	s := newSite(t, Options{})
	const uid = "0123456789abcdef0123456789abcdef"
	own := `{"title": "me", "wait": 60, "lifetime": 60, "uid": "` + uid + `"}`
	path := s.locked(t, "job", body)
	waits := make(chan answer, 1)
	go func() { waits <- s.ask(t, http.MethodPost, "/locks/job", own) }()
	s.waiting(t, 1)
	if err := s.reg.Close(); err != nil {
		t.Fatal(err)
	}
	if a := <-waits; a.status != 409 {
		t.Errorf("who waited when the server closed got %+v", a)
	}
	s.start(t, Options{})
	if a := s.ask(t, http.MethodGet, path, ""); a.status != 200 {
		t.Errorf("after the restart: %+v", a)
	}
	go func() { waits <- s.ask(t, http.MethodPost, "/locks/job", own) }()
	s.waiting(t, 1)
	if a := s.ask(t, http.MethodDelete, path, ""); a.status != 204 {
		t.Errorf("%+v", a)
	}
	granted := <-waits
	if again := s.ask(t, http.MethodPost, "/locks/job", own); granted.status != 201 || again.status != 201 ||
		again.header.Get("Leasehold-Token") != granted.header.Get("Leasehold-Token") {
		t.Errorf("sent again: %+v, first %+v", again, granted)
	}
}

// Recorded answers of RDLM to what isn't right.
func TestRefusals(t *testing.T) {
	s := newSite(t, Options{})
	strict := newSite(t, Options{Strict: true})
	for _, c := range []struct {
		method, path, body string
		status, strict     int
		msg                string
	}{
		{"POST", "/locks/job", "", 400, 400, "empty body"},
		{"POST", "/locks/job", "{", 400, 400, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": 5}`, 400, 400, "invalid json body"},
		{"POST", "/locks/job", `{"wait": 5, "lifetime": 5}`, 400, 400, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": "5.5", "lifetime": 5}`, 400, 400, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": "0x10", "lifetime": 5}`, 400, 400, "invalid json body"},
		{"POST", "/locks/job", `[]`, 400, 500, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": null, "lifetime": 5}`, 400, 500, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": [], "lifetime": 5}`, 400, 500, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": 0, "lifetime": 1e300}`, 400, 500, "invalid json body"},
		{"POST", "/locks/job", `{"title": "t", "wait": 1e999999999, "lifetime": 5}`, 400, 500, "invalid json body"},
		{"POST", "/locks/job", "{\"title\": \"\xff\"}", 400, 500, "invalid json body"},
		{"POST", "/locks/a-b", body, 404, 404, "Not Found"},
		{"POST", "/locks/a%62", body, 404, 404, "Not Found"},
		{"POST", "/locks/job/", body, 404, 404, "Not Found"},
		{"POST", "/locks/", body, 404, 404, "Not Found"},
		{"GET", "/Locks/job", "", 404, 404, "Not Found"},
		{"GET", "/locks/job", "", 405, 405, "Method Not Allowed"},
		{"OPTIONS", "/locks/job", "", 405, 405, "Method Not Allowed"},
		{"PATCH", "/resources", "", 405, 405, "Method Not Allowed"},
		{"DELETE", "/", "", 405, 405, "Method Not Allowed"},
		{"GET", "/resources", "", 403, 403, "Forbidden"},
		{"DELETE", "/resources/job", "", 403, 403, "Forbidden"},
	} {
		a := s.ask(t, c.method, c.path, c.body)
		if a.status != c.status || a.body != html(c.status, c.msg) || a.header.Get("Content-Type") != "text/html; charset=UTF-8" {
			t.Errorf("%s %s %s: %+v, want %d %s", c.method, c.path, c.body, a, c.status, c.msg)
		}
		if a := strict.ask(t, c.method, c.path, c.body); a.status != c.strict {
			t.Errorf("strict: %s %s %s: %+v, want %d", c.method, c.path, c.body, a, c.strict)
		}
	}
	if a := s.ask(t, http.MethodHead, "/locks/job", ""); a.status != 405 {
		t.Errorf("HEAD: %+v", a)
	}
	if a := s.ask(t, http.MethodGet, "/", ""); a.status != 200 || a.body != welcome {
		t.Errorf("/: %+v", a)
	}
}

// Numbers are read as Python's int() reads them.
func TestNumbers(t *testing.T) {
	s := newSite(t, Options{})
	for i, n := range []string{`"5"`, `5.9`, `" 7 "`, `"+5"`, `5e1`, `true`} {
		s.locked(t, fmt.Sprint("n", i), `{"title": null, "wait": 0, "lifetime": `+n+`}`)
	}
	for i, n := range []string{`-3`, `0`, `"-1"`, `false`} { // over at once
		name := fmt.Sprint("over", i)
		s.locked(t, name, `{"title": null, "wait": -5, "lifetime": `+n+`}`)
		s.locked(t, name, `{"title": null, "wait": 60, "lifetime": 60}`)
	}
}

func TestAdmin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(file, []byte("op:secret\nother:x:y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	admin, err := ParseAdmin(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, Options{Admin: admin})
	for _, c := range []struct {
		user, pass string
		status     int
	}{{"op", "secret", 200}, {"other", "x:y", 200}, {"op", "x", 401}, {"nobody", "", 401}, {"", "", 401}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/resources", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(c.user, c.pass)
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || c.status == 401 && (resp.ContentLength != 0 || resp.Header.Get("WWW-Authenticate") != "Basic realm=Restricted") {
			t.Errorf("%s:%s: %s %+v", c.user, c.pass, resp.Status, resp.Header)
		}
	}
	for _, bad := range []string{"op\n", ":x\n"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ParseAdmin(file); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if _, err := ParseAdmin(file + "-missing"); err == nil {
		t.Error("no file, no error")
	}
}
