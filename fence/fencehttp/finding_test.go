package fencehttp_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencehttp"
)

// asked sends requests, as text, to a handler behind a guard that knows token 7 of b, and returns the statuses of the answers. What
// the handler gets is checked for offers of HTTP/2.
func asked(t *testing.T, opts fencehttp.Options, request string) int {
	t.Helper()
	guard := offline(t)
	if err := guard.Check(t.Context(), fence.Sequencer{Name: "job", Holder: "b", Token: 7}); err != nil {
		t.Fatal(err)
	}
	h := fencehttp.Handler(guard, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header["Upgrade"] != nil && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			t.Errorf("%q: the handler is offered %q", request, r.Header["Upgrade"])
		}
	}), opts)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(request, "|", "\r\n") + "\r\n\r\n")))
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	_, _ = io.Copy(io.Discard, rec.Body)
	return rec.Code
}

// What the gate takes for a write needs a sequencer here, and every value of the header counts.
func TestFinding_G6_WhatWritesIsTheGatesOwnRule(t *testing.T) {
	for request, want := range map[string]int{
		"GET / HTTP/1.1|Host: x":                                                                  200,
		"GET /?a=1&b=%20 HTTP/1.1|Host: x":                                                        200,
		"HEAD / HTTP/1.1|Host: x":                                                                 200,
		"GET / HTTP/1.1|Host: x|X-HTTP-Method-Override: GET":                                      200,
		"GET / HTTP/1.1|Host: x|Upgrade: h2c|Connection: Upgrade":                                 200,
		"GET / HTTP/1.1|Host: x|X-HTTP-Method-Override: DELETE":                                   428,
		"GET / HTTP/1.1|Host: x|X-Http-Method: put":                                               428,
		"GET /?_method=DELETE HTTP/1.1|Host: x":                                                   428,
		"GET /?a=%zz HTTP/1.1|Host: x":                                                            428,
		"GET / HTTP/1.1|Host: x|Upgrade: websocket|Connection: Upgrade":                           428,
		"GET / HTTP/1.1|Host: x|Upgrade: |Upgrade: websocket|Connection: Upgrade":                 428,
		"GET / HTTP/1.1|Host: x|Transfer-Encoding: chunked||0":                                    428,
		"CONNECT x:80 HTTP/1.1|Host: x:80":                                                        428,
		"POST / HTTP/1.1|Host: x":                                                                 428,
		"GET / HTTP/1.1|Host: x|Leasehold-Sequencer: ":                                            400,
		"GET / HTTP/1.1|Host: x|Leasehold-Sequencer: |Leasehold-Sequencer: v1;5;job;a":            400,
		"POST / HTTP/1.1|Host: x|Leasehold-Sequencer: |Leasehold-Sequencer: v1;7;job;b":           400,
		"POST / HTTP/1.1|Host: x|Leasehold-Sequencer: v1;7;job;b|Leasehold-Sequencer: v1;5;job;a": 400,
		"GET / HTTP/1.1|Host: x|Leasehold-Sequencer: v1;5;job;a":                                  412,
		"GET / HTTP/1.1|Host: x|Upgrade: websocket|Leasehold-Sequencer: v1;7;job;b":               200,
		"POST / HTTP/1.1|Host: x|Upgrade: h2c|Leasehold-Sequencer: v1;7;job;b":                    200,
		"GET / HTTP/1.1|Host: x|X-HTTP-Method-Override: DELETE|Leasehold-Sequencer: v1;5;job;a":   412,
	} {
		if got := asked(t, fencehttp.Options{}, request); got != want {
			t.Errorf("%q: %d, want %d", request, got, want)
		}
	}
}

// Keys that can't have signed anything let nothing in.
func TestFinding_G7_KeysThatProveNothingRefuseAll(t *testing.T) {
	const post = "POST / HTTP/1.1|Host: x|Leasehold-Sequencer: "
	others, err := fence.NewKeys(bytes.Repeat([]byte("k"), fence.MinKeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	byOthers, err := others.Sign(fence.Sequencer{Name: "job", Holder: "b", Token: 7})
	if err != nil {
		t.Fatal(err)
	}
	// What a key without a byte would have signed: HMAC-SHA-256 of "v1;7;job;b" under it.
	const byNothing = "v1;7;job;b;9Bw1T5CrS3dAMuDQpAwn-YvPgsvlJqVvAB60iD17lWU"
	var keys fence.Keys
	for _, text := range []string{"v1;7;job;b", byOthers, byNothing} {
		if got := asked(t, fencehttp.Options{Keys: &keys}, post+text); got != http.StatusForbidden {
			t.Errorf("%s: %d", text, got)
		}
	}
	if text, err := keys.Sign(fence.Sequencer{Name: "job", Holder: "b", Token: 7}); err == nil {
		t.Errorf("no keys have signed %s", text)
	}
}
