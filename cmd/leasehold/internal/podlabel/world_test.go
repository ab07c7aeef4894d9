//go:build !lite

package podlabel

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

const (
	patience = time.Minute
	role     = "leasehold.dev/role"
)

// world is a namespace with pods that no kubelet runs.
type world struct {
	t         *testing.T
	srv       *servers.Server
	namespace string
	admin     pods
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	srv := servers.Kubernetes(t, servers.Shared())
	t.Setenv("KUBECONFIG", srv.Extra["kubeconfig"])
	w := &world{t: t, srv: srv, namespace: fmt.Sprintf("test-%x", time.Now().UnixNano())}
	var err error
	if w.admin, err = dial(w.label("")); err != nil {
		t.Fatal(err)
	}
	w.post("/api/v1/namespaces", `{"metadata":{"name":"`+w.namespace+`"}}`)
	for _, name := range names {
		w.post("/api/v1/namespaces/"+w.namespace+"/pods", `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	}
	t.Cleanup(func() { w.admin.rest.Client.CloseIdleConnections() })
	return w
}

func (w *world) post(path, body string) {
	w.t.Helper()
	if err := w.admin.rest.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(w.t.Context()).Error(); err != nil {
		w.t.Fatal(err)
	}
}

// write changes the metadata of a pod as kubectl does.
func (w *world) write(pod, metadata string) {
	w.t.Helper()
	err := w.admin.rest.Patch("application/merge-patch+json").Namespace(w.namespace).Resource("pods").Name(pod).Body([]byte(`{"metadata":` + metadata + `}`)).Do(w.t.Context()).Error()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) label(pod string) Label {
	return Label{Key: role, Value: "leader", Pod: pod, Namespace: w.namespace, Election: "job"}
}

// labelled are the pods with the label.
func (w *world) labelled() []string {
	w.t.Helper()
	found, err := w.admin.list(w.t.Context(), "labelSelector", role+"=leader")
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, pod := range found {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

func (w *world) becomes(names ...string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !slices.Equal(w.labelled(), names); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%v have the label; want %v", w.labelled(), names)
		}
	}
}

// said is what a keeper says.
type said struct {
	mu   sync.Mutex
	text string
}

func (s *said) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text += text + "\n"
}

func (s *said) has(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		text := s.text
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it said %q; want %q", text, want)
		}
	}
}

func (w *world) keeper(l Label, every time.Duration) (*Keeper, *said) {
	w.t.Helper()
	s := &said{}
	k, err := New(l, clock.System(), every, s.say)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { k.Close(); k.pods.rest.Client.CloseIdleConnections() })
	return k, s
}

func valid(token fence.Token) Term { return Term{Token: token, Check: func() error { return nil }} }

// hanging is the way to an API server that hangs from begin to end. If answers, the answers to
// patches don't arrive before end.
type hanging struct {
	next    http.RoundTripper
	answers bool
	mu      sync.Mutex
	until   chan struct{}
}

func (h *hanging) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = make(chan struct{})
}

// end has what hangs fail, and what comes after that pass.
func (h *hanging) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.until)
	h.until, h.answers = nil, false
}

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	until, lost := h.until, h.answers && r.Method == http.MethodPatch
	h.mu.Unlock()
	if until == nil {
		answer, err := h.next.RoundTrip(r)
		if err != nil || !lost {
			return answer, err
		}
		_ = answer.Body.Close()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	select {
	case <-until:
		return nil, errors.New("broken")
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
