package rdlm

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// startRDLM starts RDLM itself, which scripts/rdlm-server installs, and returns its URL.
func startRDLM(t *testing.T) string {
	t.Helper()
	cache := os.Getenv("LEASEHOLD_CACHE")
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(dir, "leasehold")
	}
	program := filepath.Join(cache, "rdlm-server", "rdlm")
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatalf("%v: run scripts/rdlm-server", err)
		}
		t.Skipf("skipped: %v: run scripts/rdlm-server", err)
	}
	_, port, err := net.SplitHostPort(servers.FreeAddr(t)) // of which RDLM takes all addresses
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--port="+port, "--logging=none")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := "http://127.0.0.1:" + port
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(url + "/")
		if err == nil {
			_ = resp.Body.Close()
			return url
		}
		if time.Now().After(deadline) {
			t.Fatalf("RDLM doesn't listen: %v", err)
		}
	}
}

// said is an answer, without what is another one each time: uids, times, hosts.
type said struct {
	status           int
	kind, tag, where string
	body             any
}

var (
	anyUID  = regexp.MustCompile(`[0-9a-f]{32}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?`)
	anyHost = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)
)

func plainly(text string) string {
	return anyHost.ReplaceAllString(anyTime.ReplaceAllString(anyUID.ReplaceAllString(text, "UID"), "TIME"), "HOST")
}

// dialogue is a series of requests to one server.
type dialogue struct {
	t        *testing.T
	url, uid string // the uid is that of the last lock
}

func (d *dialogue) ask(method, path, body string, header ...string) (said, http.Header) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.url+strings.ReplaceAll(path, "UID", d.uid), strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	s := said{status: resp.StatusCode, kind: resp.Header.Get("Content-Type"), where: plainly(resp.Header.Get("Location")), body: plainly(string(text))}
	if tag := resp.Header.Get("Etag"); tag != "" {
		s.tag = plainly(strings.ReplaceAll(regexp.MustCompile(`^"[0-9a-f]{40}"$`).ReplaceAllString(tag, "SHA1"), `"`, ""))
	}
	if strings.HasPrefix(s.kind, "application/hal+json") {
		var v any
		if err := json.Unmarshal([]byte(s.body.(string)), &v); err != nil {
			d.t.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
		s.body = v
	}
	if _, uid, ok := strings.Cut(resp.Header.Get("Location"), "/locks/"); ok {
		_, d.uid, _ = strings.Cut(uid, "/")
	}
	return s, resp.Header
}

// withoutToken takes away what Leasehold adds to locks.
func withoutToken(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "token")
		for _, e := range v {
			withoutToken(e)
		}
	case []any:
		for _, e := range v {
			withoutToken(e)
		}
	}
}

// Answers are those of RDLM itself, body by body, but for what the manual says.
func TestFinding_V3_BodiesAreThoseOfRDLM(t *testing.T) {
	theirs := &dialogue{t: t, url: startRDLM(t)}
	ours := &dialogue{t: t, url: newSite(t, Options{Admin: Admin{open: true}}).URL}
	strict := &dialogue{t: t, url: newSite(t, Options{Admin: Admin{open: true}, Strict: true}).URL}
	const ask = `{"title": "a <b> \u00e9 ☃", "wait": 5, "lifetime": 60}`
	long := strings.Repeat("n", 300)
	manual, err := os.ReadFile("../../docs/server-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, body string
		differs            string // the row of the manual's table; "" if there is no difference
		strict             bool   // strict mode is as RDLM is
	}{
		{"GET", "/", "", "", false},
		{"GET", "/resources", "", "", false},
		{"GET", "/resources/a", "", "", false},
		{"DELETE", "/resources/a", "", "", false},
		{"DELETE", "/resources", "", "", false},
		{"POST", "/locks/a", ask, "", false},
		{"GET", "/locks/a/UID", "", "", false},
		{"GET", "/resources", "", "", false},
		{"GET", "/resources/a", "", "", false},
		{"POST", "/locks/a", `{"title": "b", "wait": 0, "lifetime": 60}`, "", false},
		{"GET", "/locks/a/0123456789abcdef0123456789abcdef", "", "", false},
		{"GET", "/locks/b/UID", "", "", false},
		{"GET", "/locks/a/x", "", "", false},
		{"GET", "/locks/a/x_y", "", "", false},
		{"DELETE", "/locks/a/x", "", "", false},
		{"DELETE", "/locks/a/UID", "", "", false},
		{"DELETE", "/locks/a/UID", "", "", false},
		{"GET", "/resources", "", "`GET /resources`", false},
		{"POST", "/locks/t", `{"title": {"deep": [1, null, "x"]}, "wait": "5", "lifetime": 60.9, "more": 1}`, "", false},
		{"GET", "/locks/t/UID", "", "", false},
		{"DELETE", "/resources/t", "", "", false},
		{"POST", "/locks/a", "", "", false},
		{"POST", "/locks/a", "{", "", false},
		{"POST", "/locks/a", `{"title": "x", "wait": 5}`, "", false},
		{"POST", "/locks/a", `{"title": "x", "wait": "5.5", "lifetime": 60}`, "", false},
		{"POST", "/locks/a", `{"title": "x", "wait": NaN, "lifetime": 60}`, "", false},
		{"POST", "/locks/a", `{"title": "x", "wait": "Infinity", "lifetime": 60}`, "", false},
		{"POST", "/locks/a", `{"title": "x", "wait": null, "lifetime": 60}`, "500 for a request that isn't valid", true},
		{"POST", "/locks/a", `{"title": "x", "wait": Infinity, "lifetime": 60}`, "`Infinity` as a number of seconds", false},
		{"POST", "/locks/a", `{"title": "x", "wait": 1e400, "lifetime": 60}`, "500 for a request that isn't valid", true},
		{"POST", "/locks/a", `[]`, "500 for a request that isn't valid", true},
		{"POST", "/locks/a", "\xff", "500 for a request that isn't valid", true},
		{"POST", "/locks/n", `{"title": NaN, "wait": 5, "lifetime": 60}`, "`NaN` and `Infinity` as a title", false},
		{"DELETE", "/resources", "", "", false},
		{"POST", "/locks/u", `{"title": "x", "wait": 5, "lifetime": 60, "uid": "mine"}`, "`uid` in the body of a `POST`", false},
		{"DELETE", "/resources", "", "", false},
		{"POST", "/locks/" + long, ask, "a name of more than 255 letters", false},
		{"DELETE", "/resources", "", "", false},
		{"GET", "/locks/" + long + "/UID", "", "a name of more than 255 letters", false},
		{"POST", "/locks/a_b", ask, "", false},
		{"POST", "/locks/a/", ask, "", false},
		{"GET", "/locks/", "", "", false},
		{"GET", "/locks/a", "", "", false},
		{"PUT", "/locks/a", "", "", false},
		{"POST", "/locks/a/UID", "", "", false},
		{"PUT", "/locks/a/UID", "", "`PUT` of a lock", false},
		{"POST", "/resources", "", "", false},
	} {
		what := fmt.Sprintf("%s %.40s %.60s", c.method, c.path, c.body)
		they, _ := theirs.ask(c.method, c.path, c.body)
		we, _ := ours.ask(c.method, c.path, c.body)
		same, _ := strict.ask(c.method, c.path, c.body)
		withoutToken(we.body)
		withoutToken(same.body)
		switch equal := reflect.DeepEqual(we, they); {
		case c.differs == "" && !equal:
			t.Errorf("%s:\n%+v, want\n%+v", what, we, they)
		case c.differs != "" && equal:
			t.Errorf("%s: does not differ: %+v", what, we)
		case c.differs != "" && !strings.Contains(string(manual), "\n| "+c.differs+" |"):
			t.Errorf("%s: docs/server-reference.md has no row %q:\n%+v\n%+v", what, c.differs, we, they)
		case c.strict && !reflect.DeepEqual(same, they):
			t.Errorf("%s: in strict mode:\n%+v, want\n%+v", what, same, they)
		}
	}
	// A tag that the client has is 304, here as there.
	for _, d := range []*dialogue{theirs, ours} {
		d.ask("POST", "/locks/e", ask)
		_, h := d.ask("GET", "/locks/e/UID", "")
		if s, _ := d.ask("GET", "/locks/e/UID", "", "If-None-Match", h.Get("Etag")); s.status != http.StatusNotModified || s.body != "" {
			t.Errorf("%s: %+v", d.url, s)
		}
	}
}
