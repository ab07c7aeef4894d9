package fencehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencehttp"
)

func offline(t *testing.T) *fence.Offline {
	t.Helper()
	marks, err := fence.OpenFile(filepath.Join(t.TempDir(), "marks"))
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
func resource(t *testing.T, guard fence.Guard, opts fencehttp.Options) (url string, wrote *[]string) {
	t.Helper()
	wrote = new([]string)
	srv := httptest.NewServer(fencehttp.Handler(guard, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			s, ok := fencehttp.From(r.Context())
			*wrote = append(*wrote, fmt.Sprintf("%s by %d, %t", b, s.Token, ok))
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

// R1 is sent under term 1 and delayed; others work under terms 2 and 3; R1 arrives, and is refused.
func TestDelayedRequestOverHTTP(t *testing.T) {
	url, wrote := resource(t, offline(t), fencehttp.Options{})
	seq := func(holder string, token fence.Token) *http.Client {
		return client(fence.Sequencer{Name: "billing", Holder: holder, Token: token}.String(), nil)
	}
	for _, r := range []struct {
		c    *http.Client
		body string
	}{{seq("b", 2), "R2"}, {seq("a", 3), "R3"}} {
		if code, _, err := post(r.c, url, r.body); err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d, %v", r.body, code, err)
		}
	}
	_, _, err := post(seq("a", 1), url, "R1")
	var stale *fence.StaleError
	if want := (fence.StaleError{Name: "billing", Got: 1, Current: 3, Holder: "a"}); !errors.As(err, &stale) || *stale != want {
		t.Errorf("R1: %v, want %+v", err, want)
	}
	if got := strings.Join(*wrote, "; "); got != "R2 by 2, true; R3 by 3, true" {
		t.Errorf("written: %s", got)
	}
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
	send := func(url, method string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header[fence.Header] = headers
		resp, err := http.DefaultClient.Do(r)
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
	} {
		if code, name := send(c.url, c.method, c.headers...); code != c.code || name != c.error {
			t.Errorf("%s with %q: %d %s, want %d %s", c.method, c.headers, code, name, c.code, c.error)
		}
	}
	if len(*wrote) != 1 {
		t.Errorf("written: %v", *wrote)
	}
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
