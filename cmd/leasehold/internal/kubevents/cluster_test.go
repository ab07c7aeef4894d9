package kubevents

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

const patience = time.Minute

// cluster is a real API server behind a proxy that hangs or counts what is asked of Events.
type cluster struct {
	t         testing.TB
	namespace string
	direct    string // the server's URL
	proxy     *httptest.Server
	client    *http.Client
	hang      atomic.Bool
	asked     atomic.Int64 // POSTs of Events
	urls      map[string]open.URL
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	srv := servers.Kubernetes(t, servers.Shared())
	c := &cluster{t: t, namespace: fmt.Sprintf("test-%x", time.Now().UnixNano()), direct: srv.URL, urls: map[string]open.URL{}}
	to, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true} //nolint:gosec // on loopback, in a test
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }}
	over := make(chan struct{})
	c.proxy = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
			c.asked.Add(1)
			if c.hang.Load() {
				select {
				case <-r.Context().Done():
				case <-over:
				}
				return
			}
		}
		forward.ServeHTTP(w, r)
	}))
	c.proxy.EnableHTTP2 = true
	c.proxy.StartTLS()
	c.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		close(over)
		c.proxy.CloseClientConnections()
		c.proxy.Close()
		transport.CloseIdleConnections()
	})
	c.post("/api/v1/namespaces", `{"metadata":{"name":"`+c.namespace+`"}}`)
	for user, token := range map[string]string{"admin": srv.Extra["token"], "user": srv.Extra["user-token"]} {
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],`+
			`"users":[{"name":"u","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`, c.proxy.URL, token)
		path := filepath.Join(t.TempDir(), user)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.urls[user], err = open.Parse("k8s://" + c.namespace + "?kubeconfig=" + path); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// ask asks the server itself, as an administrator.
func (c *cluster) ask(method, path, contentType, body string) []byte {
	c.t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(c.t.Context()), method, c.direct+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer leasehold-admin")
	req.Header.Set("Content-Type", contentType)
	res, err := c.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil || res.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %s %v: %s", method, path, res.Status, err, b.String())
	}
	return b.Bytes()
}

func (c *cluster) post(path, body string) {
	c.t.Helper()
	c.ask(http.MethodPost, path, "application/json", body)
}

// grant gives the user rules in the namespace.
func (c *cluster) grant(name, rules string) {
	c.t.Helper()
	base := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + c.namespace
	c.post(base+"/roles", `{"metadata":{"name":"`+name+`"},"rules":`+rules+`}`)
	c.post(base+"/rolebindings", `{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"`+name+`"},`+
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"leasehold"}]}`)
}

// described are the messages of the Events that kubectl describe shows of a Lease.
func (c *cluster) described(l leases, key string) (messages []string) {
	c.t.Helper()
	obj, err := l.Lease(c.t.Context(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	selector := url.QueryEscape(fmt.Sprintf("involvedObject.name=%s,involvedObject.namespace=%s,involvedObject.kind=Lease,involvedObject.uid=%s", obj.Name, obj.Namespace, obj.UID))
	var list corev1.EventList
	if err := json.Unmarshal(c.ask(http.MethodGet, "/api/v1/namespaces/"+c.namespace+"/events?fieldSelector="+selector, "", ""), &list); err != nil {
		c.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason != "LeaderElection" || e.Type != "Normal" || e.Source.Component != "leasehold" || e.LastTimestamp.IsZero() {
			c.t.Errorf("%+v", e)
		}
		messages = append(messages, e.Message)
	}
	return messages
}

func (c *cluster) open(user string) store.Store {
	c.t.Helper()
	var st store.Store
	c.eventually("the rights are there", func() (err error) {
		st, err = c.urls[user].Open(c.t.Context(), open.Options{})
		return err
	})
	c.t.Cleanup(func() { _ = st.Close() })
	return st
}

func (c *cluster) eventually(what string, f func() error) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (c *cluster) hold(st store.Store, name string, ttl time.Duration) *lease.Lease {
	c.t.Helper()
	m, err := lease.NewManager(st, lease.Options{TTL: ttl, Name: "east"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = m.Close() })
	l, err := m.Acquire(c.t.Context(), name)
	if err != nil {
		c.t.Fatal(err)
	}
	return l
}

// words is what a recorder warns of.
type words struct {
	mu   sync.Mutex
	said []string
}

func (w *words) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func (w *words) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.said...)
}

// leaseRights are the rights that the store needs.
const leaseRights = `{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","list","watch","create","patch","delete"]}`

// TestEventsOfALease: with the rights of the charts, kubectl describe shows the beginning and the end of a term, also after the store was closed.
func TestEventsOfALease(t *testing.T) {
	c := newCluster(t)
	c.grant("lease", `[`+leaseRights+`,{"apiGroups":[""],"resources":["events"],"verbs":["create"]}]`)
	st := c.open("user")
	admin := c.open("admin").(leases)
	l := c.hold(st, "Shard/17", 0)
	var w words
	r := New(c.urls["user"], st, clock.System(), w.say)
	r.Leads(l.Name(), l.Holder(), l.Token())
	begin := fmt.Sprintf("%s became leader (token %d)", l.Holder(), l.Token())
	c.eventually("the first Event", func() error {
		if got := c.described(admin, l.Name()); len(got) != 1 || got[0] != begin {
			return fmt.Errorf("%q, want %q; it said %q", got, begin, w.all())
		}
		return nil
	})
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = st.Close()
	r.Stopped(l.Name(), l.Holder(), l.Token())
	r.Close()
	if got := c.described(admin, l.Name()); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if said := w.all(); len(said) > 0 {
		t.Errorf("it said %q", said)
	}
}

// TestForbidden: an account that may not write Events keeps its lease, and 100 terms cause one request and one warning, which names the right.
func TestForbidden(t *testing.T) {
	c := newCluster(t)
	c.grant("lease", `[`+leaseRights+`]`)
	st := c.open("user")
	l := c.hold(st, "job", 0)
	var w words
	fake := clocktest.New(0)
	r := New(c.urls["user"], st, fake, w.say)
	for range 100 {
		r.Leads(l.Name(), l.Holder(), l.Token())
		r.Stopped(l.Name(), l.Holder(), l.Token())
	}
	c.eventually("it warns", func() error {
		if len(w.all()) == 0 {
			return fmt.Errorf("it said nothing")
		}
		return nil
	})
	for range 100 {
		r.Leads(l.Name(), l.Holder(), l.Token())
	}
	r.Close()
	if said := w.all(); len(said) != 1 || !strings.Contains(said[0], "the verb create on events in namespace "+c.namespace) {
		t.Errorf("it said %q", said)
	}
	if n := c.asked.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestAServerThatHangsOnEvents: a lease of 2 s is renewed over three times that, while each Event hangs; the end takes a second more.
func TestAServerThatHangsOnEvents(t *testing.T) { stalltest.Run(t, aServerThatHangsOnEvents) }

func aServerThatHangsOnEvents(t testing.TB) {
	c := newCluster(t)
	c.hang.Store(true)
	st := c.open("admin")
	l := c.hold(st, "job", 2*time.Second)
	var w words
	r := New(c.urls["admin"], st, clock.System(), w.say)
	begun := time.Now()
	r.Leads(l.Name(), l.Holder(), l.Token())
	if took := time.Since(begun); took > 100*time.Millisecond {
		t.Errorf("a note took %v", took)
	}
	c.eventually("it was asked", func() error {
		if c.asked.Load() == 0 {
			return fmt.Errorf("nothing came")
		}
		return nil
	})
	select {
	case <-l.Context().Done():
		t.Errorf("the lease was lost: %v", context.Cause(l.Context()))
	case <-time.After(6 * time.Second):
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if said := w.all(); len(said) != 1 {
		t.Errorf("it said %q", said)
	}
	begun = time.Now()
	r.Close()
	if took := time.Since(begun); took > farewell+time.Second {
		t.Errorf("Close took %v", took)
	}
}
