package fencehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencehttp"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/fence/filemarks"
)

func offline(t *testing.T) *fence.Offline {
	t.Helper()
	marks, err := filemarks.Open(filepath.Join(t.TempDir(), "marks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { marks.Close() })
	g, err := fence.NewOffline(marks)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// resource is a server behind a guard that takes down what it is told to write.
func resource(t *testing.T, guard fence.Guard, opts fencehttp.Options) (url string, wrote *[]fence.Token) {
	t.Helper()
	wrote = new([]fence.Token)
	srv := httptest.NewServer(fencehttp.Handler(guard, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			s, ok := fencehttp.From(r.Context())
			if !ok {
				t.Errorf("%s came through without a sequencer", b)
			}
			*wrote = append(*wrote, s.Token)
		}
		if string(b) == "precondition" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, `{"error":"etag"}`)
		}
	}), opts))
	t.Cleanup(srv.Close)
	return srv.URL, wrote
}

func client(text string, err error) *http.Client {
	return &http.Client{Transport: fencehttp.Transport(nil, func() (string, error) { return text, err })}
}

func post(c *http.Client, url, body string) (int, string, error) {
	resp, err := c.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// The story over HTTP: the client learns from the answer what the guard has said.
func TestStory(t *testing.T) {
	for name, src := range map[string]*terms{"offline": nil, "online": {}} {
		t.Run(name, func(t *testing.T) {
			var guard fence.Guard = offline(t)
			opts := fencetest.Options{}
			if src != nil {
				online, err := fence.NewOnline(src, fence.OnlineOptions{})
				if err != nil {
					t.Fatal(err)
				}
				guard, opts.Begin = online, src.begin
			}
			url, wrote := resource(t, guard, fencehttp.Options{Name: func(*http.Request) string { return t.Name() }})
			var sent []fence.Token
			opts.Written = func() []fence.Token {
				if len(*wrote) != len(sent) {
					return nil
				}
				return sent
			}
			fencetest.Story(t, func(_ context.Context, s fence.Sequencer) error {
				code, body, err := post(client(s.String(), nil), url, "R")
				if err == nil && code != http.StatusOK {
					t.Fatalf("%d %s", code, body)
				}
				if err == nil {
					sent = append(sent, s.Token)
				}
				return err
			}, opts)
		})
	}
}

// terms is a source that says what began last.
type terms struct{ now fence.Sequencer }

func (t *terms) begin(s fence.Sequencer) { t.now = s }

func (t *terms) Current(context.Context, string) (fence.Holding, error) {
	return fence.Holding{Holder: t.now.Holder, Token: t.now.Token}, nil
}

func TestRefusals(t *testing.T) {
	keys, err := fence.NewKeys([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	seq := fence.Sequencer{Name: "billing", Holder: "a", Token: 5}
	signed, err := keys.Sign(seq)
	if err != nil {
		t.Fatal(err)
	}
	url, wrote := resource(t, offline(t), fencehttp.Options{Keys: keys})
	plain, _ := resource(t, offline(t), fencehttp.Options{})
	named, namedWrote := resource(t, offline(t), fencehttp.Options{Name: func(r *http.Request) string { return r.URL.Path[1:] }})
	send := func(url, method string, headers ...string) (int, string) {
		t.Helper()
		resp, err := http.DefaultClient.Do(request(t, url, method, headers...))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var body struct{ Error, Message string }
		if resp.StatusCode != http.StatusOK {
			if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || body.Message == "" {
				t.Errorf("%s %v: the body is no refusal: %v", method, headers, err)
			}
		}
		return resp.StatusCode, body.Error
	}
	for _, c := range []struct {
		url, method string
		headers     []string
		code        int
		error       string
	}{
		{url, http.MethodPost, []string{signed}, 200, ""},
		{url, http.MethodGet, nil, 200, ""},
		{url, http.MethodPost, nil, 428, "sequencer_missing"},
		{url, http.MethodPost, []string{seq.String()}, 403, "sequencer_forged"},
		{url, http.MethodPost, []string{"nonsense"}, 400, "sequencer_invalid"},
		{url, http.MethodPost, []string{signed, signed}, 400, "sequencer_invalid"},
		{url, http.MethodGet, []string{seq.String()}, 403, "sequencer_forged"},
		{plain, http.MethodPost, []string{seq.String()}, 200, ""},
		{plain, http.MethodPost, []string{signed}, 400, "sequencer_invalid"},
		{plain, http.MethodDelete, []string{"v1;4;billing;a"}, 412, "stale_token"},
		{plain, http.MethodPost, []string{"v1;5;billing;b"}, 412, "stale_token"},
		{plain, http.MethodPost, []string{"v1;1;madeup;b"}, 200, ""}, // what Options.Name is for
		{named + "/billing", http.MethodPost, []string{"v1;5;billing;b"}, 200, ""},
		{named + "/billing", http.MethodPost, []string{"v1;5;madeup;b"}, 403, "sequencer_other_name"},
		{named + "/", http.MethodPost, []string{"v1;5;billing;b"}, 403, "sequencer_other_name"},
		{named + "/billing", http.MethodGet, []string{"v1;5;madeup;b"}, 403, "sequencer_other_name"},
	} {
		if code, name := send(c.url, c.method, c.headers...); code != c.code || name != c.error {
			t.Errorf("%s with %q: %d %s, want %d %s", c.method, c.headers, code, name, c.code, c.error)
		}
	}
	if len(*wrote) != 1 || len(*namedWrote) != 1 {
		t.Errorf("written: %v and %v", *wrote, *namedWrote)
	}
}

// A client that isn't ours reads from the body all that the guard knows.
func TestBodyOfStaleRefusal(t *testing.T) {
	for _, stale := range []fence.StaleError{
		{Name: "billing", Got: 41, Current: 42, Holder: "web-2"},
		{Name: "billing", Got: 41}, // of a name that nobody has held
	} {
		url, _ := resource(t, failing{&stale}, fencehttp.Options{})
		resp, err := http.DefaultClient.Do(request(t, url, http.MethodPost, "v1;41;billing;a"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var body map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || resp.StatusCode != http.StatusPreconditionFailed {
			t.Fatalf("%d, %v", resp.StatusCode, err)
		}
		want := map[string]any{
			"error": "stale_token", "name": stale.Name, "got": float64(stale.Got), "current": float64(stale.Current),
			"holder": stale.Holder, "message": stale.Error(),
		}
		if !maps.Equal(body, want) {
			t.Errorf("%v, want %v", body, want)
		}
	}
}

func request(t *testing.T, url, method string, sequencers ...string) *http.Request {
	t.Helper()
	var body io.Reader = strings.NewReader("x")
	if method == http.MethodGet { // one with a body is a write
		body = nil
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header[fence.Header] = sequencers
	return r
}

type failing struct{ err error }

func (f failing) Check(context.Context, fence.Sequencer) error { return f.err }

// A guard that can't tell refuses, as something that may be tried again.
func TestGuardThatCantTell(t *testing.T) {
	url, wrote := resource(t, failing{errors.New("store down")}, fencehttp.Options{})
	code, body, err := post(client("v1;5;billing;a", nil), url, "x")
	if err != nil || code != http.StatusServiceUnavailable || !strings.Contains(body, "guard_unavailable") || len(*wrote) > 0 {
		t.Errorf("%d %s %v", code, body, err)
	}
}

// A holder that has lost its lease sends nothing, and a 412 of the resource's own is passed on.
func TestTransport(t *testing.T) {
	url, wrote := resource(t, offline(t), fencehttp.Options{})
	lost := errors.New("lease lost")
	if _, _, err := post(client("v1;5;billing;a", lost), url, "x"); !errors.Is(err, lost) || len(*wrote) > 0 {
		t.Errorf("%v, %v", err, *wrote)
	}
	code, body, err := post(client("v1;5;billing;a", nil), url, "precondition")
	if err != nil || code != http.StatusPreconditionFailed || body != `{"error":"etag"}` {
		t.Errorf("%d %q %v", code, body, err)
	}
}
