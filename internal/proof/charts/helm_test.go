package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// helm runs Helm's own program, which scripts/charts installs, as an administrator of the cluster.
func (c *cluster) helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv("LEASEHOLD_HELM"), args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.srv.Extra["kubeconfig"], "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *cluster) mustHelm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.helm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// objects are all that a release has made: the kind and the name of each, in its namespace and in none.
func (c *cluster) objects(t *testing.T, namespace string) (all []string) {
	t.Helper()
	kinds := []struct{ path, kind string }{{"/api/v1/namespaces/" + namespace + "/secrets", "Secret"}}
	for kind, place := range places {
		path := place.group + "/namespaces/" + namespace + "/" + place.plural
		if strings.HasPrefix(kind, "Cluster") {
			path = place.group + "/" + place.plural
		}
		if kind != "Namespace" {
			kinds = append(kinds, struct{ path, kind string }{path, kind})
		}
	}
	for _, k := range kinds {
		list, _ := c.must(t, "GET", k.path, "application/json", nil)["items"].([]any)
		for _, item := range list {
			o := object(item.(map[string]any))
			if !strings.HasPrefix(k.kind, "Cluster") || strings.HasPrefix(o.name(), namespace) {
				all = append(all, k.kind+" "+o.name())
			}
		}
	}
	slices.Sort(all)
	return all
}

// annotations returns what the Deployments of a release have as an annotation of their pods.
func (c *cluster) annotations(t *testing.T, namespace string) (text string) {
	t.Helper()
	list, _ := c.must(t, "GET", "/apis/apps/v1/namespaces/"+namespace+"/deployments", "application/json", nil)["items"].([]any)
	for _, item := range list {
		text += fmt.Sprint(object(item.(map[string]any)).at("spec", "template", "metadata", "annotations", "try"), " ")
	}
	return text
}

// TestHelm: `helm install`, `upgrade`, `rollback` and `uninstall` of each chart, by Helm's own program, on the real API server. What is
// left after that is what was there before.
func TestHelm(t *testing.T) {
	if os.Getenv("LEASEHOLD_HELM") == "" {
		t.Skip("scripts/charts installs Helm and runs this")
	}
	c := start(t)
	for _, name := range charts {
		t.Run(name, func(t *testing.T) {
			namespace := c.namespace(t, "helm")
			before := c.objects(t, namespace)
			if _, err := c.helm(t, "install", "try", folder+name, "--namespace", namespace, "--set", "no.such.value=1"); err == nil {
				t.Error("a value that the schema doesn't know was taken")
			}
			values := write(t, "{podAnnotations: {try: one}}")
			c.mustHelm(t, "install", "try", folder+name, "--namespace", namespace, "--values", values)
			installed := c.objects(t, namespace)
			if got := strings.TrimSpace(c.annotations(t, namespace)); !strings.HasPrefix(got, "one") {
				t.Errorf("installed: %q in %v", got, installed)
			}
			if len(installed) < len(before)+6 || !slices.Contains(installed, "Secret sh.helm.release.v1.try.v1") {
				t.Errorf("installed: %v", installed)
			}
			c.mustHelm(t, "upgrade", "try", folder+name, "--namespace", namespace, "--reuse-values", "--set", "podAnnotations.try=two")
			if got := c.annotations(t, namespace); !strings.HasPrefix(got, "two") {
				t.Errorf("upgraded: %q", got)
			}
			c.mustHelm(t, "rollback", "try", "1", "--namespace", namespace)
			if got := c.annotations(t, namespace); !strings.HasPrefix(got, "one") {
				t.Errorf("rolled back: %q", got)
			}
			var history []struct {
				Revision int
				Status   string
			}
			if err := json.Unmarshal([]byte(c.mustHelm(t, "history", "try", "--namespace", namespace, "-o", "json")), &history); err != nil || len(history) != 3 {
				t.Errorf("history: %v, %v", history, err)
			}
			c.mustHelm(t, "uninstall", "try", "--namespace", namespace)
			if left := c.objects(t, namespace); !slices.Equal(left, before) {
				t.Errorf("uninstalling left %v of %v", left, before)
			}
		})
	}
}

// write returns the path of a file with that text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServiceMonitor: the real definition of the kind takes the chart's, field by field; without the definition Helm installs nothing.
func TestServiceMonitor(t *testing.T) {
	crd := os.Getenv("LEASEHOLD_SERVICEMONITOR_CRD")
	if crd == "" || os.Getenv("LEASEHOLD_HELM") == "" {
		t.Skip("scripts/charts fetches the definition of ServiceMonitor and runs this")
	}
	c := start(t)
	namespace := c.namespace(t, "monitor")
	const values = "{metrics: {serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}}}"
	args := []string{"install", "try", folder + "leasehold", "--namespace", namespace, "--values", write(t, values)}
	if out, err := c.helm(t, args...); err == nil || !strings.Contains(out, "ServiceMonitor") {
		t.Errorf("without the definition: %v: %s", err, out)
	}
	if left := c.objects(t, namespace); len(left) > 0 {
		t.Errorf("that left %v", left)
	}
	text, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	var definition object
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	c.must(t, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", definition)
	path := "/apis/monitoring.coreos.com/v1/namespaces/" + namespace + "/servicemonitors"
	eventually(t, "the kind is served", func() bool {
		code, _, err := c.do(t.Context(), "GET", c.srv.URL+path, c.token, "application/json", nil)
		return err == nil && code == 200
	})
	c.mustHelm(t, args...)
	list, _ := c.must(t, "GET", path, "application/json", nil)["items"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d ServiceMonitors", len(list))
	}
	monitor := object(list[0].(map[string]any))
	if got := monitor.at("spec", "endpoints", 0, "port"); got != "admin" || monitor.at("metadata", "labels", "release") != "prometheus" {
		t.Errorf("%v", monitor)
	}
	// It selects the Service of the metrics, and no other.
	all := render(t, "leasehold", namespace, values)
	found := find(t, all, "ServiceMonitor")
	path += "/" + found.name() + "?fieldManager=test&force=true&fieldValidation=Strict"
	c.must(t, "PATCH", path, "application/apply-patch+yaml", found)
	want, _ := monitor.at("spec", "selector", "matchLabels").(map[string]any)
	services, _ := c.must(t, "GET", "/api/v1/namespaces/"+namespace+"/services", "application/json", nil)["items"].([]any)
	var selected []string
	for _, s := range services {
		o := object(s.(map[string]any))
		labels, _ := o.at("metadata", "labels").(map[string]any)
		fits := true
		for key, value := range want {
			fits = fits && labels[key] == value
		}
		if fits {
			selected = append(selected, o.name())
			if port := o.at("spec", "ports", 0, "name"); port != "admin" {
				t.Errorf("%s has the port %v", o.name(), port)
			}
		}
	}
	if len(selected) != 1 {
		t.Errorf("it selects %v of %d Services", selected, len(services))
	}
	c.mustHelm(t, "uninstall", "try", "--namespace", namespace)
	if left := c.objects(t, namespace); len(left) > 0 {
		t.Errorf("uninstalling left %v", left)
	}
}
