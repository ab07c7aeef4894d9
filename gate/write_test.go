package gate_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/gate"
)

func TestReadsPassAndWritesDoNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		since := time.Now().UTC()
		holder := gate.Holder{Owner: "west/7/x", Token: 42, Since: since}
		i := w.instance(gate.Options{Holder: func() gate.Holder { return holder }})
		i.expect("GET", "/jobs", "200", "GET /jobs -")
		i.expect("HEAD", "/jobs", "200", "HEAD /jobs -")
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "get", "PROPFIND"} {
			i.expect(method, "/jobs", "503 not_holder not_done", "")
		}
		a := i.do("POST", "/jobs", "a job")
		if b := a.body; b.Holder != holder.Owner || b.Token != 42 || !b.Since.Equal(since) || b.Name != "job" ||
			b.Message != "this instance doesn't hold the lease job, west/7/x does (token 42): it passes reads only" {
			t.Errorf("%s", a.text)
		}
		if a.header["Retry-After"] != nil {
			t.Errorf("Retry-After %q, though nothing is known", a.header["Retry-After"])
		}
		holder = gate.Holder{Retry: 1200 * time.Millisecond}
		if a = i.do("POST", "/jobs", ""); a.header.Get("Retry-After") != "2" || a.body.Holder != "" {
			t.Errorf("Retry-After %q, %s", a.header.Get("Retry-After"), a.text)
		}
		i.expect("CONNECT", "/", "501 not_supported", "")
		if s := i.gate.State(); s.Open || s.Reads != 2 || s.Refused != 8 || s.Writes != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A write bears the sequencer of the term, and nobody else's: on no request, in no spelling.
func TestSequencer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{})
		h := i.hold()
		token := h.lease.Token().String()
		forged := fence.Sequencer{Name: "job", Holder: "me", Token: 1 << 40}.String()
		i.expect("POST", "/jobs", "200", "POST /jobs "+token)
		i.expect("POST", "/jobs", "200", "POST /jobs "+token, fence.Header, forged)
		i.expect("POST", "/jobs", "200", "POST /jobs "+token, "Connection", fence.Header)
		i.expect("GET", "/jobs", "200", "GET /jobs -", fence.Header, forged)
		w.setServe(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header["Leasehold_sequencer"] != nil || r.Header["X_http_method_override"] != nil {
				t.Errorf("%v", r.Header)
			}
		})
		i.expect("GET", "/jobs", "200", "GET /jobs -", "Leasehold_Sequencer", forged, "X_Http_Method_Override", "DELETE")
	})
}

func TestSignedSequencer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		keys, err := fence.NewKeys([]byte("0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		i := w.instance(gate.Options{Keys: keys})
		h := i.hold()
		w.setServe(func(_ http.ResponseWriter, r *http.Request) {
			if s, err := keys.Verify(r.Header.Get(fence.Header)); err != nil || s != h.lease.Sequencer() {
				t.Errorf("%v, %v", s, err)
			}
		})
		i.expect("POST", "/jobs", "200", "POST /jobs -")
	})
}

// A write is forwarded with MinLeft left of the term, and not with less.
func TestTooLittleLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{MinLeft: 3 * time.Second, CutBefore: time.Millisecond})
		h := i.hold()
		token := h.lease.Token().String()
		i.setCut(true)
		time.Sleep(h.lease.Left() - 3010*time.Millisecond)
		i.expect("POST", "/jobs", "200", "POST /jobs "+token)
		time.Sleep(20 * time.Millisecond)
		a := i.do("POST", "/jobs", "")
		if a.String() != "503 ending not_done" || a.header.Get("Retry-After") != "1" || a.body.Holder != h.lease.Owner() || w.requests() != "" {
			t.Errorf("%s, Retry-After %q: %s", a, a.header.Get("Retry-After"), a.text)
		}
		if h.lease.Check() != nil || i.gate.State().Open || i.gate.State().Refused != 1 {
			t.Errorf("%v, %+v", h.lease.Check(), i.gate.State())
		}
		i.setCut(false)
		i.awaitRenewal()
		i.expect("POST", "/jobs", "200", "POST /jobs "+token)
	})
}

// What is true when a request comes may have ended when there is a connection to send it on.
func TestSlowConnection(t *testing.T) {
	for _, scheme := range []string{"http", "h2c"} {
		t.Run(scheme, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				delay := 2500 * time.Millisecond
				i := w.instance(gate.Options{
					MinLeft: 4 * time.Second, CutBefore: time.Millisecond,
					Upstream: &url.URL{Scheme: scheme, Host: "program"},
					Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
						time.Sleep(delay)
						return w.up.dial(ctx, network, addr)
					},
				})
				h := i.hold()
				i.setCut(true)
				time.Sleep(h.lease.Left() - 6*time.Second)
				i.expect("POST", "/jobs", "503 ending not_done", "")
				if h.lease.Check() != nil {
					t.Error("the term is over: this is the test of another rule")
				}
				i.setCut(false)
				i.awaitRenewal()
				i.expect("POST", "/jobs", "200", "POST /jobs "+h.lease.Token().String())
			})
		})
	}
}

func TestUpstreamIsDown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{})
		i.hold()
		w.setServe(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		if got := i.do("POST", "/jobs", "").String(); got != "502 upstream_failed unknown" {
			t.Errorf("an upstream that hangs up: %s", got)
		}
		_ = w.up.Close()
		i.expect("GET", "/jobs", "502 upstream_failed", "POST /jobs "+i.gate.State().Term.Token.String())
		i.expect("POST", "/jobs", "502 upstream_unreachable not_done", "")
	})
}

func TestOptions(t *testing.T) {
	up := &url.URL{Scheme: "http", Host: "program"}
	for _, c := range []struct {
		opts gate.Options
		want string
	}{
		{gate.Options{}, "Upstream <nil>"},
		{gate.Options{Upstream: &url.URL{Scheme: "ftp", Host: "x"}}, `scheme "ftp"`},
		{gate.Options{Upstream: &url.URL{Scheme: "http", Host: "x", RawQuery: "a=b"}}, "no query"},
		{gate.Options{Upstream: up, MinLeft: -1}, "MinLeft -1ns"},
		{gate.Options{Upstream: up, MinLeft: time.Second, CutBefore: time.Second}, "CutBefore 1s"},
		{gate.Options{Upstream: up, Keys: &fence.Keys{}}, "Keys"},
		{gate.Options{Upstream: up, Preset: "nomad"}, `Preset "nomad": want none, or "kubernetes"`},
		{gate.Options{Upstream: up, Reads: []string{"/search"}}, `Reads "/search": want "METHOD /path"`},
		{gate.Options{Upstream: up, Writes: []string{"GET /a**"}}, `Writes "GET /a**"`},
		{gate.Options{Upstream: up, Writes: []string{"GET /[a"}}, `Writes "GET /[a"`},
	} {
		if _, err := gate.New(c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
