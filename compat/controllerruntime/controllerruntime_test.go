package controllerruntime

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	goleak.VerifyTestMain(servers.Main(m))
}

const (
	patience  = 2 * time.Minute
	namespace = "default"
	name      = "greeter"
)

// stage is what replicas do, in its order.
type stage struct {
	store   store.Store // of the leases
	mu      sync.Mutex
	highest fence.Token
	done    map[string]int // by replica, token and object
	faults  []string
}

func (s *stage) reconciles(replica string, token fence.Token, object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token < s.highest {
		s.faults = append(s.faults, fmt.Sprintf("%s reconciles %s in term %d after term %d began", replica, object, token, s.highest))
	}
	s.highest = max(s.highest, token)
	s.done[fmt.Sprint(replica, " ", token, " ", object)]++
}

func (s *stage) has(replica string, token fence.Token, object string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[fmt.Sprint(replica, " ", token, " ", object)] > 0
}

// replica is a process.
type replica struct {
	t     *testing.T
	name  string
	stage *stage
	lists atomic.Int64 // of ConfigMaps
	terms chan election.Term
	looks sync.Map // how often the predicate of a term was asked
	stop  func()
}

func connect(t *testing.T, srv *servers.Server) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", srv.Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	c.QPS = -1
	return c
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (s *stage) replica(t *testing.T, srv *servers.Server, who string) *replica {
	t.Helper()
	r := &replica{t: t, name: who, stage: s, terms: make(chan election.Term, 100)}
	m, err := lease.NewManager(s.store, lease.Options{TTL: 30 * time.Second, Name: who})
	if err != nil {
		t.Fatal(err)
	}
	counted := connect(t, srv)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(q *http.Request) (*http.Response, error) {
			if query := q.URL.Query(); strings.HasSuffix(q.URL.Path, "/configmaps") && q.Method == http.MethodGet &&
				(query.Get("watch") == "" || query.Get("sendInitialEvents") != "") {
				r.lists.Add(1)
			}
			return next.RoundTrip(q)
		})
	})
	forever := -time.Second
	mgr, err := manager.New(counted, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: &forever})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(mgr, m, name, r.setup, Options{Warm: warm()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", who, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func warm() []client.Object { return []client.Object{&corev1.ConfigMap{}} }

// setup makes the controller of a term. The object "last" keeps the only worker until the term ends, and the rest stays in the queue.
func (r *replica) setup(mgr manager.Manager) error {
	looks := new(atomic.Int64)
	var once sync.Once
	return ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ConfigMap{}).
		WithEventFilter(predicate.NewPredicateFuncs(func(o client.Object) bool {
			looks.Add(1)
			return o.GetLabels()["example"] == "greeting"
		})).
		Complete(Guard(reconcile.Func(func(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
			term, ok := Term(ctx)
			if !ok || ctx.Err() != nil || term.Check() != nil {
				r.t.Errorf("%s: Reconcile outside of a term: %v, %v", r.name, ok, ctx.Err())
			}
			once.Do(func() {
				r.looks.Store(term.Token, looks)
				r.terms <- term
			})
			r.stage.reconciles(r.name, term.Token, q.Name)
			if q.Name == "last" {
				<-ctx.Done()
			}
			return reconcile.Result{}, nil
		})))
}

func next[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
	}
	return v
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// TestTerms: over hand-overs there and back, and the end of a replica, every term reconciles everything, out of caches that were filled
// once; nothing is reconciled in a term after the next began; and the process stays.
func TestTerms(t *testing.T) {
	srv := servers.Kubernetes(t)
	direct, err := client.New(connect(t, srv), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects := []string{"one", "two", "three", "last"}
	for i := range 30 {
		objects = append(objects, fmt.Sprint("more-", i))
	}
	object := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"example": "greeting"}}}
	}
	for _, name := range objects[:3] {
		if err := direct.Create(t.Context(), object(name)); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{store: memory.New(memory.Options{}), done: map[string]int{}}
	a := s.replica(t, srv, "a")
	first := next(t, "term of a", a.terms)
	b := s.replica(t, srv, "b")
	eventually(t, "the caches of b are filled while it follows", func() bool { return b.lists.Load() > 0 })
	ended := func(r *replica, token fence.Token) {
		t.Helper()
		for _, name := range objects[:3] {
			eventually(t, fmt.Sprintf("%s reconciles %s in %d", r.name, name, token), func() bool { return s.has(r.name, token, name) })
		}
	}
	ended(a, first.Token)
	var listed [2]int64
	for i, r := range []*replica{a, b} {
		listed[i] = r.lists.Load()
	}
	order := func(from election.Term, to string) {
		t.Helper()
		eventually(t, to+" stands", func() bool {
			state, err := election.ReadState(t.Context(), s.store, name)
			return err == nil && slices.ContainsFunc(state.Candidates, func(c election.Candidate) bool { return c.Name == to || strings.HasPrefix(c.Owner(), to+"/") })
		})
		if _, err := election.HandOver(t.Context(), s.store, name, election.HandOverOptions{Token: from.Token, By: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	order(first, "b")
	second := next(t, "term of b", b.terms)
	ended(b, second.Token)

	// The worker of b is kept, and its queue is full, when its term ends.
	for _, name := range objects[3:] {
		if err := direct.Create(t.Context(), object(name)); err != nil {
			t.Fatal(err)
		}
		if name == "last" {
			eventually(t, "it keeps the worker", func() bool { return s.has("b", second.Token, "last") })
		}
	}
	order(second, "a")
	third := next(t, "second term of a", a.terms)
	if third.Token <= second.Token || second.Token <= first.Token {
		t.Errorf("terms %d, %d, %d", first.Token, second.Token, third.Token)
	}
	eventually(t, "a reconciles in its second term", func() bool { return s.has("a", third.Token, "last") })
	// The handlers of the first term of a are gone.
	old, _ := a.looks.Load(first.Token)
	before := old.(*atomic.Int64).Load()
	cm := object("fresh")
	if err := direct.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	now, _ := a.looks.Load(third.Token)
	asked := now.(*atomic.Int64)
	eventually(t, "the second term's handler sees it", func() bool { return asked.Load() > int64(len(objects)) })
	if got := old.(*atomic.Int64).Load(); got != before {
		t.Errorf("the first term's handler is still called: %d, then %d", before, got)
	}
	for i, r := range []*replica{a, b} {
		if got := r.lists.Load(); got != listed[i] {
			t.Errorf("%s: %d lists of ConfigMaps, %d before the terms changed", r.name, got, listed[i])
		}
	}
	a.stop()
	fourth := next(t, "second term of b", b.terms)
	if fourth.Token <= third.Token {
		t.Errorf("term %d after %d", fourth.Token, third.Token)
	}
	b.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.faults {
		t.Error(fault)
	}
}

// TestGuard: outside of a term nothing is reconciled.
func TestGuard(t *testing.T) {
	r := Guard(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		t.Error("called")
		return reconcile.Result{}, nil
	}))
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err == nil || !strings.Contains(err.Error(), "outside of a term") {
		t.Error(err)
	}
}
