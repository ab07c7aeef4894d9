package open

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

func TestParseKubernetes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for in, want := range map[string]string{
		"k8s://team-a":              "k8s://team-a",
		"k8s://team-a/":             "k8s://team-a",
		"k8s://":                    "k8s://",
		"k8s://team-a?context=prod": "k8s://team-a?context=prod",
		"k8s://team-a?owner=apps/v1/Deployment/web/1-2": "k8s://team-a?owner=apps%2Fv1%2FDeployment%2Fweb%2F1-2",
		"k8s://team-a?owner=v1/ConfigMap/web/1-2":       "k8s://team-a?owner=v1%2FConfigMap%2Fweb%2F1-2",
		"k8s://team-a?kubeconfig=k.yaml&context=a%26":   "k8s://team-a?context=a%26&kubeconfig=" + strings.ReplaceAll(filepath.Join(dir, "k.yaml"), "/", "%2F"),
	} {
		got, err := Parse(in)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v; want %s", in, got, err, want)
		}
		if again, err := Parse(want); err != nil || again.String() != want {
			t.Errorf("%s: %v, %v", want, again, err)
		}
	}
	for in, want := range map[string]string{
		"k8s:team-a":                          "want k8s://NAMESPACE",
		"k8s://10.0.0.1:6443":                 "the address of the cluster is in the kubeconfig",
		"k8s://Team":                          `namespace "Team"`,
		"k8s://team-a/billing":                `namespace "team-a/billing"`,
		"k8s://team-a?ctx=prod":               `unknown parameter "ctx": known are context, kubeconfig, owner`,
		"k8s://team-a?context=a&context=b":    "want it once",
		"k8s://team-a?owner=Deployment/web/1": "want APIVERSION/KIND/NAME/UID",
		"k8s://team-a?owner=apps/v1//web/1":   "want APIVERSION/KIND/NAME/UID",
	} {
		if u, err := Parse(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error with %q", in, u, err, want)
		}
	}
}

// TestOpenKubernetes opens namespaces of a real server by URL, and meets for real what goes wrong when that is set up.
func TestOpenKubernetes(t *testing.T) {
	srv := servers.Kubernetes(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", srv.Extra["kubeconfig"])
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	open := func(url string) (store.Store, error) {
		u, err := Parse(url)
		if err != nil {
			return nil, err
		}
		return u.Open(t.Context(), Options{})
	}
	for _, url := range []string{"k8s://default", "k8s://", "k8s://default?context=leasehold", "k8s://default?kubeconfig=" + srv.Extra["kubeconfig"]} {
		st, err := open(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if url == "k8s://" { // the namespace of the context
			if _, err := st.Put(t.Context(), store.Record{Key: "k", Owner: "o", Token: 1, TTL: time.Second}); err != nil {
				t.Error(err)
			}
		} else if rec, err := store.Load(t.Context(), st, "elsewhere"); err != nil || rec.Version != "" {
			t.Errorf("%s: %+v, %v", url, rec, err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}

	nobody := servers.FreeAddr(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		url   string
		wants []string
	}{
		"no such namespace": {"k8s://nowhere", []string{"namespace nowhere does not exist", "kubectl create namespace nowhere"}},
		"no such context":   {"k8s://default?context=prod", []string{`context="prod"`, "it has leasehold"}},
		"no such file":      {"k8s://default?kubeconfig=/nowhere/config", []string{"kubeconfig", "/nowhere/config"}},
		"a broken file":     {"k8s://default?kubeconfig=" + broken, []string{"the kubeconfig can't be read"}},
		"no rights":         {"k8s://default?kubeconfig=" + srv.Extra["user-kubeconfig"], []string{"may not get Leases in namespace default", "leasehold init kubernetes"}},
		"unreachable":       {"k8s://default?kubeconfig=" + changed(t, srv, "server", "https://"+nobody), []string{"can't be reached", "server in the kubeconfig"}},
		"untrusted":         {"k8s://default?kubeconfig=" + changed(t, srv, "certificate-authority-data", nil), []string{"certificate is not trusted", "certificate-authority"}},
	} {
		st, err := open(c.url)
		if err == nil {
			t.Errorf("%s: opened", what)
			_ = st.Close()
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", what, want, err)
			}
		}
	}
	t.Setenv("KUBECONFIG", "/nowhere/config")
	if _, err := open("k8s://default"); err == nil || !strings.Contains(err.Error(), "KUBECONFIG=/nowhere/config: ") {
		t.Errorf("KUBECONFIG names no file: %v", err)
	}
	t.Setenv("KUBECONFIG", "")
	if _, err := open("k8s://default"); err == nil || !strings.Contains(err.Error(), "set KUBECONFIG") || !strings.Contains(err.Error(), "?kubeconfig=FILE") {
		t.Errorf("without any configuration: %v", err)
	}
}

// TestFinding_N3_APodWithoutAToken: the error names the file that is missing.
func TestFinding_N3_APodWithoutAToken(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	u, err := Parse("k8s://default")
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Open(t.Context(), Options{})
	for _, want := range []string{"/var/run/secrets/kubernetes.io/serviceaccount/token is missing", "automountServiceAccountToken", "?kubeconfig=FILE"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// changed returns the path of a kubeconfig in which one field of the cluster is another, or missing.
func changed(t *testing.T, srv *servers.Server, field string, value any) string {
	t.Helper()
	text, err := os.ReadFile(srv.Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	cluster := config["clusters"].([]any)[0].(map[string]any)["cluster"].(map[string]any)
	if cluster[field] = value; value == nil {
		delete(cluster, field)
	}
	if text, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFinding_L5_TokensOfKubernetes: the account of the token that the file had is deleted. It is row N3's first point as well: the file is
// read again at the first 401, not a minute after it was last read.
func TestFinding_L5_TokensOfKubernetes(t *testing.T) {
	srv := servers.Kubernetes(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: srv.TLSConfig()}}
	defer client.CloseIdleConnections()
	admin := asAdmin{t, client, "Authorization", "Bearer " + srv.Extra["token"]}
	type object map[string]any
	rbac := srv.URL + "/apis/rbac.authorization.k8s.io/v1/"
	admin.must("POST", rbac+"clusterrolebindings", object{
		"metadata": object{"name": "holders"}, "roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts:default"}},
	}, nil)
	accounts := srv.URL + "/api/v1/namespaces/default/serviceaccounts"
	token := func(name string) string {
		admin.must("POST", accounts, object{"metadata": object{"name": name}}, nil)
		var made struct{ Status struct{ Token string } }
		admin.must("POST", accounts+"/"+name+"/token", object{"spec": object{"expirationSeconds": 3600}}, &made)
		return made.Status.Token
	}
	before, after := token("before"), token("after")
	file := secretIn(t, before)
	config := secretIn(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority": %q}}],
		"users": [{"name": "u", "user": {"tokenFile": %q}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "default"}}]}`, srv.URL, srv.Extra["ca"], file))
	rotation{url: "k8s://default?kubeconfig=" + config, files: map[string]string{file: after}, revoke: func() {
		admin.must("DELETE", accounts+"/before", nil, nil)
		holder := asAdmin{t, client, "Authorization", "Bearer " + before}
		for holder.try("GET", accounts, nil, nil) != http.StatusUnauthorized { // the server remembers for some seconds
			time.Sleep(50 * time.Millisecond)
		}
	}}.under(t)
}
