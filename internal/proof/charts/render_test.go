package charts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what is made from the charts")

const (
	root   = "../../../"
	folder = root + "deploy/charts/"
	// manifests is where the command has what it prints.
	manifests = root + "cmd/leasehold/internal/cli/setup/manifests/"
	// pairs is where it has what it prints for a pair.
	pairs = root + "cmd/leasehold/internal/pair/"
)

var charts = []string{"leasehold", "leasehold-elect", "leasehold-standby"}

func load(t testing.TB, name string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(folder + name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// text renders a chart as `helm install` does: what the values' schema and the templates say of it, and its documents in the order
// of their kinds.
func text(c *chart.Chart, namespace, values string) ([]string, error) {
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: c.Name(), Namespace: namespace, Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(context.Background(), c, all)
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(path, "NOTES.txt") {
			if strings.TrimSpace(files[path]) == "" {
				return nil, fmt.Errorf("%s is empty", path)
			}
			continue
		}
		for _, doc := range strings.Split("\n"+files[path], "\n---\n") {
			if doc = strings.TrimSpace(doc); doc != "" {
				documents = append(documents, doc+"\n")
			}
		}
	}
	order := []string{"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment"}
	slices.SortStableFunc(documents, func(a, b string) int {
		return cmp.Compare(slices.Index(order, kindOf(a)), slices.Index(order, kindOf(b)))
	})
	return documents, nil
}

func kindOf(doc string) string {
	found := regexp.MustCompile(`(?m)^kind: (\w+)$`).FindStringSubmatch(doc)
	if found == nil {
		return ""
	}
	return found[1]
}

// object is any object of Kubernetes.
type object map[string]any

// at follows keys and numbers of elements. It returns nil where there is nothing.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func (o object) kind() string { s, _ := o["kind"].(string); return s }
func (o object) name() string { s, _ := o.at("metadata", "name").(string); return s }

// render is text as objects. Wrong values end the test.
func render(t testing.TB, name, namespace, values string) []object {
	t.Helper()
	documents, err := text(load(t, name), namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, documents)
}

func objects(t testing.TB, documents []string) (all []object) {
	t.Helper()
	for _, doc := range documents {
		var o object
		if err := yaml.UnmarshalStrict([]byte(doc), &o); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		all = append(all, o)
	}
	return all
}

func find(t testing.TB, all []object, kind string) object {
	t.Helper()
	for _, o := range all {
		if o.kind() == kind {
			return o
		}
	}
	t.Fatalf("no %s", kind)
	return nil
}

// TestWrongValues: each is refused, by an error that names it.
func TestWrongValues(t *testing.T) {
	for _, c := range []struct{ chart, values, want string }{
		{"leasehold", "replica: 5", "'replica' not allowed"},
		{"leasehold", "replicas: three", "got string, want integer"},
		{"leasehold", "replicas: 0", "/replicas"},
		{"leasehold", "store: {typ: etcd}", "'typ' not allowed"},
		{"leasehold", "store: {type: mysql}", "/store/type"},
		{"leasehold", "store: {type: etcd}", "want store.url, or store.existingSecret"},
		{"leasehold", "store: {type: etcd, url: 'postgres://db/app'}", "want a URL of store.type etcd"},
		{"leasehold", "store: {type: postgres, url: 'postgres://me:secret@db/app'}", "/store/url"},
		{"leasehold", "store: {type: etcd, url: 'etcd://a', existingSecret: b}", "want one of them"},
		{"leasehold", "tls: {enabled: false}", "tokens would travel in the clear"},
		{"leasehold", "auth: {allowAnybody: true, existingSecret: a}", "want one of them"},
		{"leasehold", "auth: {policy: {caller: []}}", "'caller' not allowed"},
		{"leasehold", "metrics: {port: 7070}", "/metrics/port"},
		{"leasehold", "resources: {limit: {}}", "'limit' not allowed"},
		{"leasehold", "image: {digest: latest}", "/image/digest"},
		{"leasehold-elect", "election: {podLabel: leader}", "/election/podLabel"},
		{"leasehold-elect", "election: {podLabel: ''}", "app.port without election.podLabel"},
		{"leasehold-elect", "election: {ttl: 15}", "/election/ttl"},
		{"leasehold-elect", "store: {type: url}", "want store.url"},
		{"leasehold-elect", "app: {img: x}", "'img' not allowed"},
		{"leasehold-standby", "instances: []", "/instances"},
		{"leasehold-standby", "instances: [a, a]", "/instances"},
		{"leasehold-standby", "mode: both", "/mode"},
		{"leasehold-standby", "mode: notify", "there is nobody to tell"},
		{"leasehold-standby", "dr: {tableName: t}", "want dr.region"},
		{"leasehold-standby", "dr: {tablename: t}", "'tablename' not allowed"},
	} {
		_, err := text(load(t, c.chart), "ns", c.values)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v; want %q in it", c.chart, c.values, err, c.want)
		}
	}
}

// variants are values beside the defaults, with which the API server has to take each chart, too.
var variants = map[string]map[string]string{
	"leasehold": {
		"defaults": "",
		"etcd":     "{store: {type: etcd, url: 'etcd://etcd-0.etcd/locks', tlsSecret: etcd-client, env: [{name: ETCDCTL_CACERT, value: /etc/leasehold/store/ca.crt}]}, keys: {existingSecret: keys}, tls: {clientCA: true}}",
		"postgres": "{store: {type: postgres, existingSecret: db}, auth: {kubernetes: false, existingSecret: policy}, image: {tag: v1, pullSecrets: [{name: pull}]}, networkPolicy: {clients: [{namespaceSelector: {}}]}}",
		"open":     "{auth: {allowAnybody: true}, tls: {enabled: false}, podDisruptionBudget: {enabled: false}, resources: {limits: {cpu: 1}}, tolerations: [{operator: Exists}], nodeSelector: {a: b}}",
		"account":  "{serviceAccount: {create: false, name: own}, rbac: {create: false}, podLabels: {a: b}, podAnnotations: {c: d}, extraArgs: [--rdlm=false], networkPolicy: {enabled: false}}",
	},
	"leasehold-elect": {
		"defaults":   "",
		"app":        "{app: {image: web, command: [/web], args: [-v], writable: [/tmp], env: [{name: A, value: b}]}, store: {type: url, existingSecret: url}, election: {podLabel: role=primary}}",
		"unlabelled": "{app: {port: 0}, election: {podLabel: '', name: scheduler, extraArgs: [--priority=3]}}",
		"library":    "{deployment: {enabled: false}}",
	},
	"leasehold-standby": {
		"defaults": "",
		"table":    "{dr: {tableName: t, region: eu-west-1, leaseName: prod}, instances: [east], readiness: {path: /active}, env: [{name: A, value: b}]}",
		"notified": "{mode: notify, command: [./controller, --verbose], dr: {store: 'etcd://etcd'}}",
	},
}

// TestHardened looks at every pod of every variant.
func TestHardened(t *testing.T) {
	for _, name := range charts {
		for variant, values := range variants[name] {
			for _, o := range render(t, name, "ns", values) {
				if o.kind() != "Deployment" {
					continue
				}
				what := fmt.Sprintf("%s, %s", name, variant)
				pod, _ := o.at("spec", "template", "spec").(map[string]any)
				if got := o.at("spec", "template", "spec", "securityContext"); !same(got, "{runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}") {
					t.Errorf("%s: securityContext %v", what, got)
				}
				containers, _ := pod["containers"].([]any)
				first, _ := pod["initContainers"].([]any)
				for _, c := range append(containers, first...) {
					c := object(c.(map[string]any))
					if c.at("securityContext", "readOnlyRootFilesystem") != true || c.at("securityContext", "allowPrivilegeEscalation") != false ||
						!same(c.at("securityContext", "capabilities"), "{drop: [ALL]}") {
						t.Errorf("%s: container %v: securityContext %v", what, c["name"], c["securityContext"])
					}
				}
				if list, _ := pod["topologySpreadConstraints"].([]any); len(list) != 2 {
					t.Errorf("%s: it isn't spread over nodes and zones", what)
				}
			}
		}
	}
}

func same(got any, want string) bool {
	a, err := json.Marshal(got)
	b, err2 := yaml.YAMLToJSON([]byte(want))
	var x, y any
	return err == nil && err2 == nil && json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

// TestTimeToEnd: the pod has longer to end than the server takes by its flags.
func TestTimeToEnd(t *testing.T) {
	deployment := find(t, render(t, "leasehold", "ns", "drain: {delaySeconds: 7, seconds: 100}"), "Deployment")
	args := fmt.Sprint(deployment.at("spec", "template", "spec", "containers", 0, "args"))
	if !strings.Contains(args, "--drain=100s --drain-delay=7s") || deployment.at("spec", "template", "spec", "terminationGracePeriodSeconds") != 117.0 {
		t.Errorf("%v: %s", deployment.at("spec", "template", "spec", "terminationGracePeriodSeconds"), args)
	}
}

// TestAsALibrary: a chart that requires leasehold-elect puts the sidecar into a pod of its own.
func TestAsALibrary(t *testing.T) {
	readme, err := os.ReadFile(folder + "leasehold-elect/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "<!-- a template of your chart -->\n```yaml\n")
	template, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("README.md has no template")
	}
	parent := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/deployment.yaml", Data: []byte(template)}},
		Values:    map[string]any{"leasehold-elect": map[string]any{"deployment": map[string]any{"enabled": false}}},
	}
	parent.AddDependency(load(t, "leasehold-elect"))
	documents, err := text(parent, "ns", "")
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, documents)
	deployment := find(t, all, "Deployment")
	if got := deployment.at("spec", "template", "spec", "initContainers", 0, "name"); got != "leasehold-elect" {
		t.Errorf("the pod's sidecar: %v", got)
	}
	if account := find(t, all, "ServiceAccount").name(); account == "" || deployment.at("spec", "template", "spec", "serviceAccountName") != account {
		t.Errorf("the pod's account is %v, not %q", deployment.at("spec", "template", "spec", "serviceAccountName"), account)
	}
}

// TestPrinted: `leasehold init kubernetes --print` prints the charts with their default values.
func TestPrinted(t *testing.T) {
	for _, name := range charts {
		documents, err := text(load(t, name), "{namespace}", "")
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(documents, "---\n")
		for _, line := range []string{`app.kubernetes.io/managed-by: Helm`, `helm.sh/chart: .*`} { // nothing of Helm
			all = regexp.MustCompile(`(?m)^ *`+line+"\n").ReplaceAllString(all, "")
		}
		keep(t, manifests+name+".yaml", []byte(all))
	}
}

// TestPairPrinted: `leasehold standby init --print kubernetes` prints what the chart makes of one instance. Words stand in for what the
// command puts in.
func TestPairPrinted(t *testing.T) {
	const values = `{instances: [pod-here], dr: {leaseName: lease-here, tableName: settings-here, region: nowhere, podRegion: region-here, waitTimeInSeconds: 71111, failureThreshold: 72222}}`
	documents, err := text(load(t, "leasehold-standby"), "{namespace}", values)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(documents, "---\n")
	for line, place := range map[string]string{
		`app.kubernetes.io/managed-by: Helm\n`: "", `helm.sh/chart: .*\n`: "", `region: "nowhere"\n`: "",
		`tableName: "settings-here"`: "    {settings}", `checksum/dr: [0-9a-f]+`: "        checksum/dr: {checksum}",
	} {
		re := regexp.MustCompile(`(?m)^ *` + line)
		if !re.MatchString(all) {
			t.Errorf("the chart has no %s", line)
		}
		all = re.ReplaceAllString(all, place)
	}
	all = strings.NewReplacer("pod-here", "{pod}", "lease-here", "{lease}", "region-here", "{region}", "71111", "{wait}", "72222", "{threshold}").Replace(all)
	keep(t, pairs+"templates/instance.yaml", []byte(all))
}

// TestPairByHelm: the values that `leasehold standby init --print helm` prints make the objects that --print kubernetes prints.
func TestPairByHelm(t *testing.T) {
	for _, schema := range []string{"admiral", "native"} {
		var printed, values []byte
		var err error
		if printed, err = os.ReadFile(pairs + "testdata/" + schema + ".kubernetes.yaml"); err == nil {
			values, err = os.ReadFile(pairs + "testdata/" + schema + ".helm.yaml")
		}
		if err != nil {
			t.Fatal(err)
		}
		made := map[string]object{}
		for _, o := range render(t, "leasehold-standby", "dr", string(values)) {
			made[o.kind()+" "+o.name()] = o
		}
		seen := 0
		for _, o := range objects(t, strings.Split(string(printed), "\n---\n")) {
			want, ok := made[o.kind()+" "+o.name()]
			if !ok {
				continue // of the other instance
			}
			seen++
			if o.kind() == "ConfigMap" {
				a, b := map[string]any{}, map[string]any{}
				for text, m := range map[string]map[string]any{o.at("data", "dr.yaml").(string): a, want.at("data", "dr.yaml").(string): b} {
					if err := yaml.Unmarshal([]byte(text), &m); err != nil {
						t.Fatal(err)
					}
				}
				if fmt.Sprint(a) != fmt.Sprint(b) {
					t.Errorf("%s: printed %v, by Helm %v", schema, a, b)
				}
				o["data"], want["data"] = nil, nil
			}
			if a, b := bare(t, o), bare(t, want); a != b {
				t.Errorf("%s: printed\n%s\nby Helm\n%s", schema, a, b)
			}
		}
		if seen < len(made) {
			t.Errorf("%s: %d of %d objects are printed", schema, seen, len(made))
		}
	}
}

// bare is an object without what only Helm writes, and without the sum of the configuration.
func bare(t *testing.T, o object) string {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)^ *(app.kubernetes.io/managed-by|helm.sh/chart|checksum/dr): .*\n`).ReplaceAllString(string(text), "")
}

// keep compares a file with what it has to be, and writes it with -update.
func keep(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err == nil && bytes.Equal(got, want) {
		return
	}
	if !*update {
		t.Errorf("%s is not what the charts have: go test ./internal/proof/charts -update", path)
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTables: each README.md has every value, with its default and what values.yaml says of it; and the schema knows each.
func TestTables(t *testing.T) {
	for _, name := range charts {
		path := folder + name + "/README.md"
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const begin, end = "<!-- values: written by go test ./internal/proof/charts -update -->\n", "<!-- end -->\n"
		before, rest, ok := strings.Cut(string(page), begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the values", path)
		}
		keep(t, path, []byte(before+begin+table(t, name)+end+after))
	}
}

// table makes a table out of the comments of values.yaml.
func table(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(folder + name + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var schema object
	file, err := os.ReadFile(folder + name + "/values.schema.json")
	if err == nil {
		err = json.Unmarshal(file, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n|---|---|---|\n")
	var path []string
	var said string
	for line := range strings.Lines(string(source)) {
		line = strings.TrimRight(line, "\n")
		word := strings.TrimLeft(line, " ")
		depth := (len(line) - len(word)) / 2
		switch {
		case word == "":
			said = ""
			continue
		case word[0] == '#':
			said = strings.TrimSpace(said + " " + strings.TrimSpace(word[1:]))
			continue
		}
		key, value, ok := strings.Cut(word, ":")
		if !ok || depth > len(path) {
			t.Fatalf("%s: values.yaml: %q: want KEY: VALUE", name, line)
		}
		path = append(path[:depth], key)
		steps := []any{}
		for _, p := range path {
			steps = append(steps, "properties", p)
		}
		if schema.at(steps...) == nil {
			t.Errorf("%s: the schema has no %s", name, strings.Join(path, "."))
		}
		value = strings.TrimSpace(value)
		if value == "" && said == "" {
			continue
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(path, "."), value, strings.ReplaceAll(said, "|", `\|`))
		said = ""
	}
	return b.String()
}
