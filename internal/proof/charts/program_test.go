package charts

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// built is the folder of the program; "" without one.
var built string

// program is the path of `leasehold`, built once.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "leasehold-charts-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "leasehold")
	out, err := exec.Command("go", "build", "-o", path, "github.com/leasehold/leasehold/cmd/leasehold").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// process is a container that runs.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	out  bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// container runs the container of a pod as its kubelet would, but for files and ports: files replaces what stands in the arguments, and
// ports are free ones of the loopback interface.
func (c *cluster) container(t *testing.T, spec any, files map[string]string, env ...string) *process {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	o := object(spec.(map[string]any))
	list, _ := o["args"].([]any)
	var args []string
	for _, arg := range list {
		arg := regexp.MustCompile(`^(--listen|--admin)=:\d+$`).ReplaceAllString(arg.(string), "$1=127.0.0.1:0")
		for from, to := range files {
			arg = strings.ReplaceAll(arg, from, to)
		}
		args = append(args, arg)
	}
	p := &process{t: t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Env = []string{"PATH=/nonexistent", "HOME=" + t.TempDir()}
	variables, _ := o["env"].([]any)
	for _, v := range variables {
		v := object(v.(map[string]any))
		if value, ok := v["value"].(string); ok {
			p.cmd.Env = append(p.cmd.Env, fmt.Sprint(v["name"], "=", value))
		}
	}
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%v:\n%s", args, p.text())
		}
	})
	return p
}

// url waits for a line that has words and then a URL.
func (p *process) url(words string) string {
	p.t.Helper()
	line := regexp.MustCompile(words + ` (https?://\S+)`)
	var found []string
	eventually(p.t, words, func() bool {
		select {
		case <-p.done:
			p.t.Fatalf("it has ended:\n%s", p.text())
		default:
		}
		found = line.FindStringSubmatch(p.text())
		return found != nil
	})
	return found[1]
}

func (p *process) end(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("it has not ended after %v", sig)
	}
}

// status is the answer to a GET; 0 for none.
func status(url string) int {
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

func address(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// TestServe runs the container of the server with the rights of its account: it is ready, a service account of the namespace takes a
// lease, and others don't.
func TestServe(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace, other := c.namespace(t, "serve"), c.namespace(t, "other")
	all := render(t, "leasehold", namespace, "")
	c.apply(t, all...)
	for _, ns := range []string{namespace, other} {
		c.apply(t, object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "caller", "namespace": ns}})
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte(policyOf(t, all)), 0o600); err != nil {
		t.Fatal(err)
	}
	token := c.account(t, namespace, find(t, all, "ServiceAccount").name(), "")
	p := c.container(t, find(t, all, "Deployment").at("spec", "template", "spec", "containers", 0), map[string]string{
		"/etc/leasehold/policy/policy.yaml": policy, "/etc/leasehold/tls/tls.crt": c.srv.Extra["server-cert"], "/etc/leasehold/tls/tls.key": c.srv.Extra["server-key"],
	}, "KUBECONFIG="+c.kubeconfig(t, namespace, token, c.srv.Addr))
	lease, admin := p.url("serving k8s://"+namespace+" on"), p.url("serving the state on")
	eventually(t, "it is ready", func() bool { return status(admin+"/readyz") == http.StatusOK })
	if got := status(admin + "/healthz"); got != http.StatusOK {
		t.Errorf("/healthz: %d", got)
	}
	if got := status(admin + "/metrics"); got != http.StatusOK {
		t.Errorf("/metrics: %d", got)
	}
	acquire := func(token string) int {
		code, _, err := c.do(t.Context(), "POST", lease+"/v1/leases/nightly", token, "application/json", object{"ttl": "1m"})
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	if got := acquire(""); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
	if got := acquire(c.account(t, namespace, "caller", "")); got != http.StatusUnauthorized {
		t.Errorf("with a token for the API server: %d", got)
	}
	if got := acquire(c.account(t, other, "caller", "leasehold")); got != http.StatusForbidden {
		t.Errorf("from another namespace: %d", got)
	}
	if got := acquire(c.account(t, namespace, "caller", "leasehold")); got != http.StatusOK && got != http.StatusCreated {
		t.Errorf("from the namespace: %d", got)
	}
	c.must(t, "GET", "/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases/nightly", "application/json", nil)
	p.end(syscall.SIGKILL) // its drain takes longer than the test
}

// sidecars are two pods of the chart leasehold-elect, and what runs in them.
type sidecars struct {
	t         *testing.T
	c         *cluster
	namespace string
	spec      any
	token     string
	selector  string // of the leader's Service
}

func newSidecars(t *testing.T, values string, pods ...string) *sidecars {
	t.Helper()
	c := start(t)
	namespace := c.namespace(t, "elect")
	all := render(t, "leasehold-elect", namespace, values)
	c.apply(t, all...)
	deployment := find(t, all, "Deployment")
	for _, name := range pods {
		c.pod(t, deployment, namespace, name)
	}
	var pairs []string
	labels, _ := find(t, all, "Service").at("spec", "selector").(map[string]any)
	for k, v := range labels {
		pairs = append(pairs, fmt.Sprint(k, "=", v))
	}
	return &sidecars{
		t: t, c: c, namespace: namespace, spec: deployment.at("spec", "template", "spec", "initContainers", 0),
		token: c.account(t, namespace, find(t, all, "ServiceAccount").name(), ""), selector: strings.Join(pairs, ","),
	}
}

// run runs the sidecar of a pod. addr is where it reaches the API server.
func (s *sidecars) run(pod, addr string, env ...string) *process {
	s.t.Helper()
	env = append([]string{"POD_NAME=" + pod, "POD_NAMESPACE=" + s.namespace, "KUBECONFIG=" + s.c.kubeconfig(s.t, s.namespace, s.token, addr)}, env...)
	return s.c.container(s.t, s.spec, map[string]string{"$(POD_NAME)": pod}, env...)
}

// selected are the pods that the leader's Service leads to.
func (s *sidecars) selected() []string {
	s.t.Helper()
	o := s.c.must(s.t, "GET", "/api/v1/namespaces/"+s.namespace+"/pods?labelSelector="+url.QueryEscape(s.selector), "application/json", nil)
	var names []string
	items, _ := o["items"].([]any)
	for _, pod := range items {
		names = append(names, object(pod.(map[string]any)).name())
	}
	slices.Sort(names)
	if len(names) > 1 {
		s.t.Errorf("the Service leads to %v", names)
	}
	return names
}

func (s *sidecars) leads(pods ...string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("the Service leads to %v", pods), func() bool { return slices.Equal(s.selected(), pods) })
}

// events are the messages of the Events about Leases in a namespace.
func (c *cluster) events(t *testing.T, namespace string) (messages []string) {
	t.Helper()
	list, _ := c.must(t, "GET", "/api/v1/namespaces/"+namespace+"/events?fieldSelector=involvedObject.kind=Lease,reason=LeaderElection", "application/json", nil)["items"].([]any)
	for _, e := range list {
		messages = append(messages, fmt.Sprint(object(e.(map[string]any))["message"]))
	}
	return messages
}

// told waits until so many Events have these words.
func (c *cluster) told(t *testing.T, namespace, words string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d Events: %s", n, words), func() bool {
		return len(slices.DeleteFunc(c.events(t, namespace), func(m string) bool { return !strings.Contains(m, words) })) == n
	})
}

// TestElect: the Service leads to the leader: after it began, after it was killed, after a hand-over in peace.
func TestElect(t *testing.T) {
	t.Parallel()
	s := newSidecars(t, "election: {ttl: 6s}", "pod-a", "pod-b")
	a := s.run("pod-a", s.c.srv.Addr)
	atA := a.url("serving who leads on")
	s.leads("pod-a")
	b := s.run("pod-b", s.c.srv.Addr)
	atB := b.url("serving who leads on")
	for path, want := range map[string][2]int{"/leader": {200, 503}, "/state": {200, 200}, "/healthz": {200, 200}, "/readyz": {200, 200}, "/metrics": {200, 200}} {
		eventually(t, path, func() bool { return status(atA+path) == want[0] && status(atB+path) == want[1] })
	}
	code, state, err := s.c.do(t.Context(), "GET", atA+"/leader", "", "", nil)
	if token, _ := state["token"].(float64); err != nil || code != 200 || token == 0 || state["leading"] != true || state.at("pod_label", "set") != true {
		t.Errorf("%d, %v, %v", code, state, err)
	}
	a.end(syscall.SIGKILL)
	if got := s.selected(); !slices.Equal(got, []string{"pod-a"}) {
		t.Errorf("after the leader was killed: %v; its label stays until another leads", got)
	}
	s.leads("pod-b")
	s.run("pod-a", s.c.srv.Addr).url("serving who leads on")
	b.end(syscall.SIGTERM)
	if got := s.selected(); slices.Contains(got, "pod-b") {
		t.Errorf("pod-b has ended its term in peace, and has the label")
	}
	s.leads("pod-a")
	s.c.told(t, s.namespace, "became leader (token ", 3)
	s.c.told(t, s.namespace, "stopped leading (token ", 1) // the one that was killed told nobody
}

// TestElectWithoutTheServer: the leader can't reach the API server, and its election is elsewhere: the next leader takes the label off
// its pod before it puts it on its own.
func TestElectWithoutTheServer(t *testing.T) {
	t.Parallel()
	s := newSidecars(t, "election: {ttl: 6s}", "pod-a", "pod-b")
	where := "LEASEHOLD_STORE=file:" + filepath.Join(t.TempDir(), "leases.db")
	network := servers.Proxy(t, s.c.srv.Addr)
	a := s.run("pod-a", network.Addr, where)
	atA := a.url("serving who leads on")
	s.leads("pod-a")
	network.Cut()
	s.run("pod-b", s.c.srv.Addr, where).url("serving who leads on")
	a.end(syscall.SIGTERM)
	s.leads("pod-b")
	if got := status(atA + "/leader"); got != 0 {
		t.Errorf("pod-a answers %d", got)
	}
}

// TestElectAgain: a sidecar that was killed as a leader, and starts again in its pod as a follower, takes off what it left.
func TestElectAgain(t *testing.T) {
	t.Parallel()
	s := newSidecars(t, "election: {ttl: 6s}", "pod-a", "pod-b")
	where := "LEASEHOLD_STORE=file:" + filepath.Join(t.TempDir(), "leases.db")
	a := s.run("pod-a", s.c.srv.Addr, where)
	s.leads("pod-a")
	a.end(syscall.SIGKILL)
	network := servers.Proxy(t, s.c.srv.Addr)
	network.Cut()
	b := s.run("pod-b", network.Addr, where) // it leads, and can't change a label
	atB := b.url("serving who leads on")
	eventually(t, "pod-b leads", func() bool { return status(atB+"/leader") == 200 })
	if got := s.selected(); !slices.Equal(got, []string{"pod-a"}) {
		t.Errorf("%v", got)
	}
	s.run("pod-a", s.c.srv.Addr, where)
	s.leads()
	network.Heal()
	s.leads("pod-b")
}

// TestElectWithoutRights: the verb and the resource that are missing are named, and the election goes on.
func TestElectWithoutRights(t *testing.T) {
	t.Parallel()
	s := newSidecars(t, "election: {ttl: 6s}", "pod-a")
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + s.namespace + "/roles/leasehold-elect"
	for _, x := range []struct{ verb, resource string }{{"patch", "pods/status"}, {"list", "pods"}, {"create", "events"}} {
		role := s.c.must(t, "GET", roles, "application/json", nil)
		rules, _ := role["rules"].([]any)
		role["rules"] = slices.DeleteFunc(rules, func(r any) bool { return fmt.Sprint(r.(map[string]any)["resources"]) == "["+x.resource+"]" })
		s.c.must(t, "PUT", roles, "application/json", role)
		eventually(t, "the right is gone", func() bool {
			return !slices.ContainsFunc(s.c.rules(t, s.namespace, s.token), func(r string) bool { return strings.HasSuffix(r, "["+x.resource+"]") })
		})
		p := s.run("pod-a", s.c.srv.Addr)
		at := p.url("serving who leads on")
		want := fmt.Sprintf("may not %s %s in namespace %s", x.verb, x.resource, s.namespace)
		if x.resource == "events" {
			want = "needs the verb create on events in namespace " + s.namespace
		}
		eventually(t, want, func() bool { return strings.Contains(p.text(), want) })
		eventually(t, "it leads", func() bool { return status(at+"/leader") == 200 })
		p.end(syscall.SIGTERM)
	}
	// The right that there is changes no image.
	code, o, err := s.c.do(t.Context(), "PATCH", s.c.srv.URL+"/api/v1/namespaces/"+s.namespace+"/pods/pod-a", s.token, "application/merge-patch+json",
		object{"metadata": object{"labels": object{"a": "b"}}})
	if err != nil || code != http.StatusForbidden {
		t.Errorf("patching a pod: %d, %v, %v", code, o, err)
	}
}

// TestStandby: of two instances one is active; when it ends the other is.
func TestStandby(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := c.namespace(t, "standby")
	all := render(t, "leasehold-standby", namespace, "dr: {waitTimeInSeconds: 1}")
	c.apply(t, all...)
	kubeconfig := "KUBECONFIG=" + c.kubeconfig(t, namespace, c.account(t, namespace, find(t, all, "ServiceAccount").name(), ""), c.srv.Addr)
	var running []*process
	var at []string
	for _, o := range all {
		if o.kind() != "Deployment" {
			continue
		}
		config := filepath.Join(t.TempDir(), "dr.yaml")
		for _, m := range all {
			if m.kind() == "ConfigMap" && m.name() == o.name() {
				if err := os.WriteFile(config, []byte(m.at("data", "dr.yaml").(string)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		p := c.container(t, o.at("spec", "template", "spec", "containers", 0), map[string]string{"/etc/leasehold/dr.yaml": config}, kubeconfig)
		running, at = append(running, p), append(at, "http://"+address(t, p.url("serving the state of leasehold-standby on")))
	}
	if len(at) != 2 {
		t.Fatalf("%d instances", len(at))
	}
	active := func(i int) bool { return status(at[i]+"/active") == 200 }
	eventually(t, "one is active", func() bool { return active(0) || active(1) })
	first := 0
	if active(1) {
		first = 1
	}
	if active(1 - first) {
		t.Error(errors.New("both are active"))
	}
	for i := range at {
		if got := status(at[i] + "/health/ready"); got != 200 {
			t.Errorf("/health/ready: %d", got)
		}
	}
	running[first].end(syscall.SIGTERM)
	eventually(t, "the other is active", func() bool { return active(1 - first) })
	c.told(t, namespace, "became leader (token ", 2)
	c.told(t, namespace, "stopped leading (token ", 1)
}

// TestInit: the API server takes what `leasehold init kubernetes --print` prints.
func TestInit(t *testing.T) {
	t.Parallel()
	c := start(t)
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	namespace := c.namespace(t, "init")
	out, err := exec.Command(path, "init", "kubernetes", "--store", "k8s://"+namespace, "--print").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, strings.Split(string(out), "\n---\n"))
	if n := len(slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.kind() != "Deployment" })); n != 4 {
		t.Errorf("%d Deployments: want those of the three charts, two of them the pair's", n)
	}
	c.apply(t, all...)
}
