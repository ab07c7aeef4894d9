package gate_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/gate"
)

// writes reports whether a closed gate takes a request for a write. A read comes to an upstream that isn't there.
func writes(t *testing.T, opts gate.Options, request string) bool {
	t.Helper()
	opts.Upstream = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	g, err := gate.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	line, header, _ := strings.Cut(request, "|")
	text := line + " HTTP/1.1\r\nHost: gate\r\n" + strings.ReplaceAll(header, "|", "\r\n")
	if header != "" {
		text += "\r\n"
	}
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	rec := httptest.NewRecorder()
	g.ServeHTTP(rec, r)
	switch rec.Code {
	case http.StatusServiceUnavailable:
		return true
	case http.StatusBadGateway:
		return false
	}
	t.Fatalf("%s: %d %s", request, rec.Code, rec.Body)
	return false
}

// table tries requests. Those that begin with "!" are writes.
func table(t *testing.T, opts gate.Options, requests ...string) {
	t.Helper()
	for _, request := range requests {
		request, want := strings.CutPrefix(request, "!")
		if got := writes(t, opts, request); got != want {
			t.Errorf("%s is a write: %t, want %t", request, got, want)
		}
	}
}

func TestMethods(t *testing.T) {
	table(t, gate.Options{},
		"GET /a", "HEAD /a", "OPTIONS /a", "TRACE /a", "GET //a/../b;c", "!GET /a?q=%zz&b=100%",
		"!POST /a", "!PUT /a", "!PATCH /a", "!DELETE /a", "!QUERY /a", "!get /a",
		// Upgrades.
		"!GET /a|Upgrade: websocket|Connection: Upgrade", "!GET /a|Upgrade: SPDY/3.1|Connection: Upgrade", "GET /a|Upgrade: h2c|Connection: Upgrade",
		"!GET /a|Upgrade: h2c, websocket|Connection: Upgrade", "GET /a|Upgrade-Insecure-Requests: 1",
		// What has frameworks take another method.
		"!GET /a|X-HTTP-Method-Override: DELETE", "!GET /a|X-Http-Method: put", "!GET /a|x-method-override: PATCH",
		"GET /a|X-HTTP-Method-Override: HEAD", "!GET /a|X-HTTP-Method-Override: GET|X-HTTP-Method-Override: POST", "!POST /a|X-HTTP-Method-Override: GET",
		"!GET /a?_method=DELETE", "!GET /a?x=1&%5fMethod=delete", "GET /a?_method=get", "GET /a?method=DELETE&_x=1",
	)
}

func TestPatterns(t *testing.T) {
	opts := gate.Options{
		Reads:  []string{"POST /search", "POST /*/_search", "POST /shop.Catalog/Get*", "* /files/**", "GET /live", "POST /rest/**"},
		Writes: []string{"GET /logout", "GET /jobs/*/run", "* /files/secret/**"},
	}
	table(t, opts,
		"POST /search", "!PUT /search", "!POST /search/", "!POST /Search", "!POST /search/more", "!POST /",
		"POST /a/_search", "!POST /a/b/_search", "POST /shop.Catalog/GetItem", "!POST /shop.Catalog/PutItem", "!POST /shop.Catalog/GetItem/x",
		"DELETE /files/a/b", "DELETE /files", "!GET /files/secret/a", "!GET /FILES/Secret", "!GET /files/secret/", "GET /files/secrets",
		"!GET /logout", "!GET /LogOut/", "!GET /%6cogout", "GET /logout/more", "!GET /jobs/7/run", "GET /jobs/run", "GET /jobs/7",
		"GET /live|Upgrade: websocket|Connection: Upgrade", "!GET /dead|Upgrade: websocket|Connection: Upgrade",
		"!POST /search|X-HTTP-Method-Override: DELETE", "!POST /search?_method=DELETE", "!GET /live|X-Http-Method: PUT",
		// Paths that an upstream may read in another way.
		"!POST /rest/../jobs", "!POST /rest/%2e%2e/jobs", "!POST /rest//jobs", "!POST /rest/a%2Fb", "!POST /rest/..;/jobs", "!POST /rest/;a=b/c",
		"!POST /rest/a%5cb", "!POST /rest/%252e%252e/jobs", "!POST /rest/./a", "!POST /rest/a%0a", "POST /rest/a%20b/c/",
		"!GET //logout", "!GET /x/../logout", "!GET /x%2flogout", "GET /a/b/c",
	)
}

func TestKubernetesRules(t *testing.T) {
	const auth, pods = "/apis/authorization.k8s.io/v1", "/api/v1/namespaces/default/pods"
	table(t, gate.Options{Preset: gate.Kubernetes},
		"GET /api", "GET /apis/apps/v1/deployments", "GET "+pods+"?watch=1", "GET /api/v1/watch/namespaces/default/pods", "GET "+pods+"/a/log?follow=true",
		"GET /version", "GET /openapi/v2", "GET "+pods+"/exec", "GET /api/v1/namespaces/exec", "GET /api/v1/namespaces/a/status",
		"!POST "+pods, "!PATCH "+pods+"/a", "!PUT "+pods+"/a/status", "!DELETE "+pods, "!POST "+pods+"/a/eviction", "!POST "+pods+"/a/binding",
		"POST "+auth+"/selfsubjectaccessreviews", "POST "+auth+"/selfsubjectrulesreviews", "POST "+auth+"/namespaces/default/localsubjectaccessreviews",
		"POST /apis/authentication.k8s.io/v1/tokenreviews", "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
		"!POST /apis/example.com/v1/codereviews", "!POST /apis/example.com/v1/namespaces/a/codereviews", "!DELETE "+auth+"/selfsubjectaccessreviews",
		"!POST "+auth+"/selfsubjectaccessreviews/../../../../api/v1/pods", "!POST /api/v1/selfsubjectaccessreviews",
		"!GET "+pods+"/a/exec?command=rm", "!GET "+pods+"/a/attach", "!GET "+pods+"/a/portforward", "!GET "+pods+"/a/proxy/x/y", "!GET "+pods+"/a/proxy",
		"!GET /api/v1/namespaces/default/services/a:80/proxy/", "!GET /api/v1/nodes/n/proxy/run/x", "!HEAD /api/v1/nodes/n/proxy", "!GET /api/v1/proxy/nodes/n/x",
		"!GET "+pods+"/a//exec", "!GET "+pods+"/a/exec/", "!GET /api/v1/namespaces/status/pods/a/exec", "!GET "+pods+"/a/%65xec",
		"!GET "+pods+"?watch=1|Upgrade: websocket|Connection: Upgrade", "!POST /api/v1/namespaces/default/serviceaccounts/a/token",
	)
	table(t, gate.Options{Preset: gate.Kubernetes, Reads: []string{"GET /api/v1/**"}},
		"GET "+pods+"?watch=1|Upgrade: websocket|Connection: Upgrade", "!GET "+pods+"/a/exec|Upgrade: websocket|Connection: Upgrade")
}

// The refusal is a Status, which the clients of an API server print.
func TestKubernetesRefusal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		i := w.instance(gate.Options{Preset: gate.Kubernetes, Holder: func() gate.Holder { return gate.Holder{Owner: "west"} }})
		a := i.do("POST", "/api/v1/pods", "{}")
		if b := a.body; b.Kind != "Status" || b.Status != "Failure" || b.Code != 503 || b.Reason != "ServiceUnavailable" || b.Holder != "west" ||
			!strings.Contains(b.Message, "west does") {
			t.Errorf("%s", a.text)
		}
		w.setServe(func(_ http.ResponseWriter, r *http.Request) {
			for name := range r.Header {
				if strings.HasPrefix(name, "X-Remote") || strings.HasPrefix(name, "X_remote") {
					t.Errorf("%s reached the API server", name)
				}
			}
		})
		i.expect("GET", "/api", "200", "GET /api -", "X-Remote-User", "root", "X-Remote-Extra-A", "b", "X_Remote_Group", "system:masters")
	})
}
