package charts

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) {
	code := servers.Main(m).Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

const patience = time.Minute

// cluster is a real API server, for one account.
type cluster struct {
	srv    *servers.Server
	http   *http.Client
	token  string
	warned []string // what the server has warned of
}

// start starts the API server of a test, with an administrator's account.
func start(t *testing.T) *cluster {
	t.Helper()
	srv := servers.Kubernetes(t, servers.Shared())
	if srv.Extra["ca"] == "" {
		t.Skip("not tried here: the server that is up is not of this test")
	}
	return &cluster{srv: srv, http: trusting(t, srv), token: srv.Extra["token"]}
}

// trusting returns a client that knows who signed the API server's certificate, which the server of leases borrows.
func trusting(t *testing.T, srv *servers.Server) *http.Client {
	t.Helper()
	ca, err := os.ReadFile(srv.Extra["ca"])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// do sends a request and returns the answer.
func (c *cluster) do(ctx context.Context, method, url, token, contentType string, body any) (int, object, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	c.warned = append(c.warned, resp.Header.Values("Warning")...)
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	var o object
	if err := json.Unmarshal(answer, &o); err != nil {
		o = object{"message": string(answer)}
	}
	return resp.StatusCode, o, nil
}

// must is do on the API server, by this account; another answer than a success ends the test.
func (c *cluster) must(t *testing.T, method, path, contentType string, body any) object {
	t.Helper()
	code, o, err := c.do(t.Context(), method, c.srv.URL+path, c.token, contentType, body)
	if err != nil || code >= 300 {
		t.Fatalf("%s %s: %d, %v, %v", method, path, code, o["message"], err)
	}
	return o
}

// places says where objects of a kind are.
var places = map[string]struct{ group, plural string }{
	"Namespace": {"/api/v1", "namespaces"}, "ServiceAccount": {"/api/v1", "serviceaccounts"}, "ConfigMap": {"/api/v1", "configmaps"},
	"Service": {"/api/v1", "services"}, "Pod": {"/api/v1", "pods"},
	"Role": {"/apis/rbac.authorization.k8s.io/v1", "roles"}, "RoleBinding": {"/apis/rbac.authorization.k8s.io/v1", "rolebindings"},
	"ClusterRole": {"/apis/rbac.authorization.k8s.io/v1", "clusterroles"}, "ClusterRoleBinding": {"/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"},
	"NetworkPolicy": {"/apis/networking.k8s.io/v1", "networkpolicies"}, "PodDisruptionBudget": {"/apis/policy/v1", "poddisruptionbudgets"},
	"Deployment": {"/apis/apps/v1", "deployments"},
}

// apply is kubectl apply --server-side --validate=strict.
func (c *cluster) apply(t *testing.T, all ...object) {
	t.Helper()
	for _, o := range all {
		place, ok := places[o.kind()]
		if !ok {
			t.Fatalf("no place for a %s", o.kind())
		}
		path := place.group
		if namespace, _ := o.at("metadata", "namespace").(string); namespace != "" {
			path += "/namespaces/" + namespace
		}
		c.must(t, "PATCH", path+"/"+place.plural+"/"+o.name()+"?fieldManager=test&force=true&fieldValidation=Strict", "application/apply-patch+yaml", o)
	}
}

// namespace makes one in which the server refuses pods that aren't restricted.
func (c *cluster) namespace(t *testing.T, name string) string {
	t.Helper()
	name += fmt.Sprintf("-%x", time.Now().UnixNano())
	c.apply(t, object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}}})
	return name
}

// pod makes a pod of a Deployment, as its controller would. No kubelet runs it.
func (c *cluster) pod(t *testing.T, deployment object, namespace, name string) {
	t.Helper()
	template, _ := deployment.at("spec", "template").(map[string]any)
	meta, _ := template["metadata"].(map[string]any)
	c.must(t, "POST", "/api/v1/namespaces/"+namespace+"/pods?fieldValidation=Strict", "application/json", object{
		"apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
		"metadata": map[string]any{"name": name, "labels": meta["labels"], "annotations": meta["annotations"]},
	})
}

// account returns the token of a service account, for an audience, "" for the API server's own.
func (c *cluster) account(t *testing.T, namespace, name, audience string) string {
	t.Helper()
	spec := map[string]any{"expirationSeconds": 3600}
	if audience != "" {
		spec["audiences"] = []string{audience}
	}
	o := c.must(t, "POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name+"/token", "application/json",
		object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	token, _ := o.at("status", "token").(string)
	return token
}

// kubeconfig writes what a pod has of its account. addr is where the API server is reached.
func (c *cluster) kubeconfig(t *testing.T, namespace, token, addr string) string {
	t.Helper()
	ca, err := os.ReadFile(c.srv.Extra["ca"])
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []object{{"name": "c", "cluster": object{"server": "https://" + addr, "certificate-authority-data": base64.StdEncoding.EncodeToString(ca)}}},
		"users":    []object{{"name": "c", "user": object{"token": token}}},
		"contexts": []object{{"name": "c", "context": object{"cluster": "c", "user": "c", "namespace": namespace}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually asks again until ok, or the test ends.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// TestApplied: the API server takes every object of every variant, knows every field, and lets the pods into a namespace that
// enforces the restricted standard.
func TestApplied(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, name := range charts {
		for variant, values := range variants[name] {
			namespace := c.namespace(t, variant)
			all := render(t, name, namespace, values)
			c.apply(t, all...)
			for i, o := range all {
				if o.kind() == "Deployment" {
					c.pod(t, o, namespace, fmt.Sprint("pod-", i))
				}
			}
			if len(c.warned) > 0 {
				t.Errorf("%s, %s: %q", name, variant, c.warned)
			}
			c.warned = nil
		}
	}
}

// TestPairApplied: the API server takes what `leasehold standby init --print kubernetes` prints, as it takes what the chart makes.
func TestPairApplied(t *testing.T) {
	t.Parallel()
	c := start(t)
	for _, schema := range []string{"admiral", "native", "strong"} {
		printed, err := os.ReadFile(pairs + "testdata/" + schema + ".kubernetes.yaml")
		if err != nil {
			t.Fatal(err)
		}
		namespace := c.namespace(t, schema)
		all := objects(t, strings.Split(strings.ReplaceAll(string(printed), "namespace: dr\n", "namespace: "+namespace+"\n"), "\n---\n"))
		c.apply(t, all...)
		pods := 0
		for i, o := range all {
			if o.kind() == "Deployment" {
				c.pod(t, o, namespace, fmt.Sprint("pod-", i))
				pods++
			}
		}
		if pods != 2 || len(c.warned) > 0 {
			t.Errorf("%s: %d instances, %q", schema, pods, c.warned)
		}
	}
}

// TestStrict: what the server would take without a word is refused here.
func TestStrict(t *testing.T) {
	t.Parallel()
	c := start(t)
	namespace := c.namespace(t, "strict")
	deployment := find(t, render(t, "leasehold", namespace, ""), "Deployment")
	spec, _ := deployment.at("spec").(map[string]any)
	spec["replica"] = 3
	code, o, err := c.do(t.Context(), "PATCH", c.srv.URL+"/apis/apps/v1/namespaces/"+namespace+"/deployments/x?fieldManager=test&fieldValidation=Strict", c.token, "application/apply-patch+yaml", deployment)
	if err != nil || code < 400 || !strings.Contains(fmt.Sprint(o["message"]), "replica") {
		t.Errorf("a Deployment with a field replica: %d, %v, %v", code, o["message"], err)
	}
}

// rules are the rights that an account has in a namespace beyond those of every account.
func (c *cluster) rules(t *testing.T, namespace, token string) []string {
	t.Helper()
	code, o, err := c.do(t.Context(), "POST", c.srv.URL+"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", token, "application/json",
		object{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": map[string]any{"namespace": namespace}})
	if err != nil || code >= 300 || o.at("status", "incomplete") != false {
		t.Fatalf("%d, %v, %v", code, o, err)
	}
	var found []string
	list, _ := o.at("status", "resourceRules").([]any)
	for _, r := range list {
		r := object(r.(map[string]any))
		if text := fmt.Sprint(r["verbs"], r["apiGroups"], r["resources"]); !strings.Contains(text, "self") {
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

// TestRights: each chart's account has the rights of the table in docs/kubernetes.md, and no other, in its namespace and in another.
func TestRights(t *testing.T) {
	t.Parallel()
	c := start(t)
	page, err := os.ReadFile(root + "docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	const (
		leases = "[get list watch create patch delete] [coordination.k8s.io] [leases]"
		events = "[create] [] [events]"
	)
	other := c.namespace(t, "other")
	for _, x := range []struct {
		chart, values  string
		want, anywhere []string
		rows           []string
	}{
		{"leasehold", "", []string{"[create] [authentication.k8s.io] [tokenreviews]", leases}, []string{"[create] [authentication.k8s.io] [tokenreviews]"},
			[]string{"| `leasehold` | get, list, watch, create, patch, delete | `leases` | store.type kubernetes |", "| `leasehold` | create | `tokenreviews`, of the cluster | auth.kubernetes |"}},
		{"leasehold", "{store: {type: etcd, url: 'etcd://a'}, auth: {kubernetes: false, existingSecret: a}}", nil, nil, nil},
		{"leasehold-elect", "", []string{"[list] [] [pods]", "[patch] [] [pods/status]", leases, events}, nil,
			[]string{"| `leasehold-elect` | create | `events` | store.type kubernetes |", "| `leasehold-elect` | get, list, watch, create, patch, delete | `leases` | store.type kubernetes |", "| `leasehold-elect` | list | `pods` | election.podLabel |", "| `leasehold-elect` | patch | `pods/status` | election.podLabel |"}},
		{"leasehold-elect", "{election: {podLabel: ''}, app: {port: 0}, store: {type: url, url: 'etcd://a'}}", nil, nil, nil},
		{"leasehold-standby", "", []string{leases, events}, nil, []string{"| `leasehold-standby` | create | `events` | no dr.tableName, no dr.store |", "| `leasehold-standby` | get, list, watch, create, patch, delete | `leases` | no dr.tableName, no dr.store |"}},
		{"leasehold-standby", "{dr: {tableName: t, region: r}}", nil, nil, nil},
	} {
		namespace := c.namespace(t, "rights")
		all := render(t, x.chart, namespace, x.values)
		c.apply(t, all...)
		token := c.account(t, namespace, find(t, all, "ServiceAccount").name(), "")
		slices.Sort(x.want)
		eventually(t, fmt.Sprintf("%s with %q has %v", x.chart, x.values, x.want), func() bool { return slices.Equal(c.rules(t, namespace, token), x.want) })
		if got := c.rules(t, other, token); !slices.Equal(got, x.anywhere) {
			t.Errorf("%s with %q: in another namespace %v, want %v", x.chart, x.values, got, x.anywhere)
		}
		for _, row := range x.rows {
			if !strings.Contains(string(page), row) {
				t.Errorf("docs/kubernetes.md has no row %s", row)
			}
		}
	}
}

// policyOf returns the policy that a ConfigMap has.
func policyOf(t *testing.T, all []object) string {
	t.Helper()
	text, _ := find(t, all, "ConfigMap").at("data", "policy.yaml").(string)
	var o object
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return text
}
