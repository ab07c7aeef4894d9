package fencekubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

// counter counts requests.
type counter struct {
	http.RoundTripper
	n atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// register is a guarded object: a pod template, which nothing acts on, and whose container has an argument for each write.
type register struct {
	t         testing.TB
	clients   *kubernetes.Clientset
	namespace string
	templates typedcore.PodTemplateInterface
	sent      *counter
}

const name = "guarded"

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Args: []string{"-"}}}},
	}
}

func newRegister(t testing.TB) *register {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", servers.Kubernetes(t, servers.Shared()).Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	r := &register{t: t, namespace: fmt.Sprintf("test-%d", time.Now().UnixNano()), sent: &counter{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { r.sent.RoundTripper = next; return r.sent })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	if r.clients, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	if _, err := r.clients.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.templates = r.clients.CoreV1().PodTemplates(r.namespace)
	pt := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}, Template: podTemplate()}
	if _, err := r.templates.Create(t.Context(), pt, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *register) get() *corev1.PodTemplate {
	r.t.Helper()
	obj, err := r.templates.Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return obj
}

func (r *register) written() (tokens []fence.Token) {
	r.t.Helper()
	for _, arg := range r.get().Template.Spec.Containers[0].Args[1:] {
		token, err := fence.ParseToken(arg)
		if err != nil {
			r.t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func appendTo(obj *corev1.PodTemplate, s fence.Sequencer) {
	c := &obj.Template.Spec.Containers[0]
	c.Args = append(c.Args, s.Token.String())
}

func (r *register) update(ctx context.Context, s fence.Sequencer) error {
	_, err := fencekubernetes.Update(ctx, r.templates, s, name, func(obj *corev1.PodTemplate) error {
		appendTo(obj, s)
		obj.Annotations, obj.ResourceVersion = nil, "" // what is the guard's is not the caller's to change
		return nil
	})
	return err
}

func (r *register) patch(ctx context.Context, s fence.Sequencer) error {
	ops := fmt.Sprintf(`[{"op":"add","path":"/template/spec/containers/0/args/-","value":"%d"}]`, s.Token)
	_, err := fencekubernetes.Patch(ctx, r.templates, s, name, []byte(ops))
	return err
}

// stamp is what users of other clients do.
func (r *register) stamp(ctx context.Context, s fence.Sequencer) error {
	for {
		obj, err := r.templates.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		appendTo(obj, s)
		if err := fencekubernetes.Stamp(obj, s); err != nil {
			return err
		}
		if _, err := r.templates.Update(ctx, obj, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func TestStoryAndRace(t *testing.T) {
	for how, write := range map[string]func(*register) fencetest.Write{
		"Update": func(r *register) fencetest.Write { return r.update }, "Patch": func(r *register) fencetest.Write { return r.patch },
		"Stamp": func(r *register) fencetest.Write { return r.stamp },
	} {
		t.Run(how, func(t *testing.T) {
			t.Run("Story", func(t *testing.T) {
				r := newRegister(t)
				fencetest.Story(t, write(r), fencetest.Options{Written: r.written})
			})
			t.Run("Race", func(t *testing.T) {
				r := newRegister(t)
				fencetest.Race(t, write(r), r.written)
			})
		})
	}
}

// A patch is one request, refusals apart, and the first of a new token writes the mark.
func TestCost(t *testing.T) {
	r := newRegister(t)
	expect := func(s fence.Sequencer, want int64, stale bool) {
		t.Helper()
		before := r.sent.n.Load()
		err := r.patch(t.Context(), s)
		if n := r.sent.n.Load() - before; n != want || errors.Is(err, fence.ErrStale) != stale {
			t.Errorf("%v: %d requests and %v, want %d", s, n, err, want)
		}
	}
	for token := fence.Token(10); token < 12; token++ {
		expect(fence.Sequencer{Name: "n", Holder: "a", Token: token}, 4, false) // tested, read, raised, patched
		expect(fence.Sequencer{Name: "n", Holder: "a", Token: token}, 1, false)
		expect(fence.Sequencer{Name: "n", Holder: "b", Token: token}, 2, true)
	}
}

// The status has a mark as well: that of its object.
func TestSubresource(t *testing.T) {
	r := newRegister(t)
	deployments := r.clients.AppsV1().Deployments(r.namespace)
	if _, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}, Template: podTemplate()},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	set := func(s fence.Sequencer) (*appsv1.Deployment, error) {
		ops := fmt.Sprintf(`[{"op":"add","path":"/status/replicas","value":%d}]`, s.Token)
		return fencekubernetes.Patch(t.Context(), deployments, s, name, []byte(ops), "status")
	}
	for _, c := range []struct {
		s     fence.Sequencer
		stale bool
	}{
		{fence.Sequencer{Name: "n", Holder: "a", Token: 1}, false},
		{fence.Sequencer{Name: "n", Holder: "b", Token: 2}, false},
		{fence.Sequencer{Name: "n", Holder: "a", Token: 1}, true},
	} {
		obj, err := set(c.s)
		if errors.Is(err, fence.ErrStale) != c.stale || !c.stale && (err != nil || obj.Status.Replicas != int32(c.s.Token)) {
			t.Errorf("%v: %v", c.s, err)
		}
	}
}

func TestCallersOwn(t *testing.T) {
	r := newRegister(t)
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	if err := r.update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	own := errors.New("own")
	if _, err := fencekubernetes.Update(t.Context(), r.templates, s, name, func(*corev1.PodTemplate) error { return own }); !errors.Is(err, own) {
		t.Errorf("an error of change: %v", err)
	}
	if _, err := fencekubernetes.Update(t.Context(), r.templates, s, "missing", nil); !apierrors.IsNotFound(err) {
		t.Errorf("a missing object: %v", err)
	}
	for ops, what := range map[string]string{
		`[{"op":"test","path":"/metadata/name","value":"x"}]`:                                      "a test that fails",
		`[{"op":"remove","path":"/metadata/annotations"}]`:                                         "one that takes the mark away",
		`[{"op":"replace","path":"/metadata/annotations/leasehold.dev~1fence","value":"other"}]`:   "one that puts another mark",
		`[{"op":"replace","path":"/template/spec/containers/0/image","value":{"not":"a string"}}]`: "one that makes no object",
	} {
		if _, err := fencekubernetes.Patch(t.Context(), r.templates, s, name, []byte(ops)); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%s: %v", what, err)
		}
	}
	late := fence.Sequencer{Name: "n", Holder: "a", Token: 4}
	ops := `[{"op":"replace","path":"/metadata/annotations/leasehold.dev~1fence","value":"{\"token\":4,\"holder\":\"a\"}"}]`
	if _, err := fencekubernetes.Patch(t.Context(), r.templates, late, name, []byte(ops)); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a late one that puts its own mark: %v", err)
	}
	var mark fence.Mark
	if err := json.Unmarshal([]byte(r.get().Annotations[fencekubernetes.Annotation]), &mark); err != nil || mark != (fence.Mark{Token: 5, Holder: "a"}) {
		t.Errorf("the mark is %+v, %v", mark, err)
	}
}

// Server-side apply stands on the resource version as well, where the configuration has one.
func TestApply(t *testing.T) {
	r := newRegister(t)
	maps := r.clients.CoreV1().ConfigMaps(r.namespace)
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	read := func() *corev1.ConfigMap {
		t.Helper()
		obj, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	apply := func(obj *corev1.ConfigMap, s fence.Sequencer) error {
		if err := fencekubernetes.Stamp(obj, s); err != nil {
			return err
		}
		_, err := maps.Apply(t.Context(), applycore.ConfigMap(name, r.namespace).WithResourceVersion(obj.ResourceVersion).
			WithAnnotations(obj.Annotations).WithData(map[string]string{"by": s.Holder}), metav1.ApplyOptions{FieldManager: s.Holder, Force: true})
		return err
	}
	before := read() // by A, who is stopped then
	if err := apply(read(), fence.Sequencer{Name: "n", Holder: "b", Token: 2}); err != nil {
		t.Fatal(err)
	}
	late := fence.Sequencer{Name: "n", Holder: "a", Token: 1}
	if err := apply(before, late); !apierrors.IsConflict(err) {
		t.Errorf("over what was read before: %v, want a conflict", err)
	}
	if err := apply(read(), late); !errors.Is(err, fence.ErrStale) {
		t.Errorf("read again: %v", err)
	}
	if got := read().Data["by"]; got != "b" {
		t.Errorf("it was written by %s", got)
	}
}

func TestBadInput(t *testing.T) {
	r := newRegister(t)
	writes := map[string]fencetest.Write{"Update": r.update, "Patch": r.patch, "Stamp": r.stamp}
	for _, bad := range []fence.Sequencer{{Name: "n", Holder: "a"}, {Name: "n", Holder: "a", Token: fence.MaxToken + 1}, {Holder: "a", Token: 5}, {Name: "n", Token: 5}} {
		for how, write := range writes {
			if err := write(t.Context(), bad); !errors.Is(err, fence.ErrMalformed) {
				t.Errorf("%s %+v: %v", how, bad, err)
			}
		}
	}
	s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
	for _, text := range []string{"", "6", "{}", `{"token":-1}`, `{"token":9007199254740992,"holder":"a"}`} {
		obj := r.get()
		obj.Annotations = map[string]string{fencekubernetes.Annotation: text}
		if _, err := r.templates.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for how, write := range writes {
			if err := write(t.Context(), s); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "is no mark") {
				t.Errorf("%s under the mark %q: %v", how, text, err)
			}
		}
	}
	if err := fencekubernetes.Stamp(&corev1.PodTemplate{}, s); err == nil || !strings.Contains(err.Error(), "resource version") {
		t.Errorf("an object that was not read: %v", err)
	}
	if _, err := fencekubernetes.Patch(t.Context(), r.templates, s, name, []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "no list") {
		t.Errorf("what is no JSON patch: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.update(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if tokens := r.written(); len(tokens) != 0 {
		t.Errorf("written under %v", tokens)
	}
}
