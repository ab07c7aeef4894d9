//go:build !lite

package pair

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leasehold/leasehold/store/dynamodb"
)

var update = flag.Bool("update", false, "write testdata")

// The pairs whose texts are in testdata, which internal/proof/pair and internal/proof/charts examine further.
func pairs() map[string]Pair {
	pods := []Pod{{"east", "us-east-2"}, {"west", "us-west-2"}}
	p := Pair{Lease: "prod", Wait: 15 * time.Second, Threshold: 3, Pods: pods, Region: "us-east-2", Namespace: "dr"}
	admiral, native, strong := p, p, p
	admiral.Table = dynamodb.Plan{Table: "admiral-lease", Admiral: true}
	admiral.Role = "arn:aws:iam::123456789012:role/dr"
	native.Table = dynamodb.Plan{Table: "leasehold"}
	strong.Table = dynamodb.Plan{Table: "admiral-lease", Admiral: true, Replicas: []string{"us-east-2", "us-west-2"}, Witness: "us-east-1"}
	strong.Region = ""
	return map[string]Pair{"admiral": admiral, "native": native, "strong": strong}
}

var endings = map[string]string{
	dynamodb.CloudFormation: "yaml", dynamodb.Terraform: "tf", dynamodb.CLI: "sh", Kubernetes: "yaml", Helm: "yaml", Prometheus: "yaml", Grafana: "json",
}

// TestTexts: what is printed is what testdata has.
func TestTexts(t *testing.T) {
	for name, p := range pairs() {
		for _, kind := range Kinds() {
			pod := ""
			if kind == Helm {
				pod = "east"
			}
			text, err := p.Text(kind, pod)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+"."+kind+"."+endings[kind])
			got, err := os.ReadFile(path)
			switch {
			case err == nil && string(got) == text:
			case *update:
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s isn't what is printed: go test ./internal/pair -update: %v", path, err)
			}
		}
	}
}

// stack is what a test looks at of CloudFormation's.
type stack struct {
	Resources map[string]struct {
		Type       string         `yaml:"Type"`
		Properties map[string]any `yaml:"Properties"`
	} `yaml:"Resources"`
}

// TestFinding_D5_CloudFormation: CloudFormation's template has the key, the replicas and the permissions of the plan.
func TestFinding_D5_CloudFormation(t *testing.T) {
	for name, p := range pairs() {
		text, err := p.Text(dynamodb.CloudFormation, "")
		if err != nil {
			t.Fatal(err)
		}
		var all stack
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		table := all.Resources["LeaseholdTable"]
		want := map[string]any{
			"TableName": p.Table.Table, "BillingMode": "PAY_PER_REQUEST",
			"AttributeDefinitions": []any{map[string]any{"AttributeName": p.Table.Key(), "AttributeType": "S"}},
			"KeySchema":            []any{map[string]any{"AttributeName": p.Table.Key(), "KeyType": "HASH"}},
		}
		kind := "AWS::DynamoDB::Table"
		if p.Table.Strong() {
			kind = "AWS::DynamoDB::GlobalTable"
			want["MultiRegionConsistency"] = "STRONG"
			var replicas []any
			for _, r := range p.Table.Replicas {
				replicas = append(replicas, map[string]any{"Region": r, "DeletionProtectionEnabled": true})
			}
			want["Replicas"] = replicas
			want["GlobalTableWitnesses"] = []any{map[string]any{"Region": p.Table.Witness}}
		} else {
			want["DeletionProtectionEnabled"] = true
		}
		if table.Type != kind || !reflect.DeepEqual(table.Properties, want) {
			t.Errorf("%s: %s %+v, want %s %+v", name, table.Type, table.Properties, kind, want)
		}
		for _, r := range p.Roles() {
			if got := all.Resources["Policy"+camel(r.Name)]; got.Type != "AWS::IAM::ManagedPolicy" {
				t.Errorf("%s: the policy of %s: %+v", name, r.Name, got)
			}
		}
		for _, a := range p.alarms() {
			if got := all.Resources["Alarm"+camel(a.name)]; got.Type != "AWS::CloudWatch::Alarm" {
				t.Errorf("%s: the alarm %s: %+v", name, a.name, got)
			}
		}
	}
}

// TestLint: cfn-lint, where it is installed, finds nothing in the templates.
func TestLint(t *testing.T) {
	path, err := exec.LookPath("cfn-lint")
	if err != nil {
		t.Skip("no cfn-lint: pip install cfn-lint")
	}
	for name := range pairs() {
		if out, err := exec.Command(path, "--template", "testdata/"+name+".cloudformation.yaml").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestFormatted: terraform, where it is installed, reads the configuration, and would format it no other way.
func TestFormatted(t *testing.T) {
	path, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("no terraform")
	}
	for name := range pairs() {
		if out, err := exec.Command(path, "fmt", "-check", "-diff", "testdata/"+name+".terraform.tf").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestCommands: the shell reads the commands of the AWS CLI; a program in its place gets them, one by one, with JSON that is JSON, and the
// account in the ARNs.
func TestCommands(t *testing.T) {
	for name, p := range pairs() {
		dir := t.TempDir()
		const aws = "#!/bin/sh\ncase $2 in get-caller-identity) echo 123456789012;; esac\nfor a in \"$@\"; do printf '%s\\0' \"$a\"; done >>\"$OUT\"\nprintf '\\n' >>\"$OUT\"\n"
		if err := os.WriteFile(dir+"/aws", []byte(aws), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sh", "testdata/"+name+".cli.sh")
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "OUT=" + dir + "/out"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := os.ReadFile(dir + "/out")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int{}
		for line := range bytes.Lines(out) {
			args := strings.Split(string(line), "\x00")
			seen[args[1]]++
			for i, a := range args {
				if !strings.HasPrefix(a, "--") || i+1 >= len(args) || !strings.HasPrefix(args[i+1], "{") {
					continue
				}
				var v map[string]any
				if err := json.Unmarshal([]byte(args[i+1]), &v); err != nil {
					t.Errorf("%s %s: %v", args[1], a, err)
				}
				if a == "--policy-document" && !strings.Contains(args[i+1], ":123456789012:table/"+p.Table.Table) {
					t.Errorf("%s", args[i+1])
				}
			}
		}
		want := map[string]int{"get-caller-identity": 1, "create-table": 1, "wait": 1, "create-policy": len(p.Roles()), "put-metric-alarm": len(p.alarms())}
		if p.Table.Strong() {
			want["update-table"] = 1
		}
		if !reflect.DeepEqual(seen, want) {
			t.Errorf("%s: commands %v, want %v", name, seen, want)
		}
	}
}

// TestWrong: each is refused by an error that names it, and no text is made.
func TestWrong(t *testing.T) {
	for want, change := range map[string]func(*Pair){
		`leaseName "a b"`:                  func(p *Pair) { p.Lease = "a b" },
		`leaseName "x${y}"`:                func(p *Pair) { p.Lease = "x${y}" },
		"failureThreshold 0":               func(p *Pair) { p.Threshold = 0 },
		"1 instances":                      func(p *Pair) { p.Pods = p.Pods[:1] },
		"east: stands twice":               func(p *Pair) { p.Pods = []Pod{p.Pods[0], p.Pods[0]} },
		`instance "East"`:                  func(p *Pair) { p.Pods = []Pod{{"East", "us-east-2"}, p.Pods[1]} },
		`the Region "ohio"`:                func(p *Pair) { p.Pods = []Pod{{"east", "ohio"}, p.Pods[1]} },
		`table's Region ""`:                func(p *Pair) { p.Region = "" },
		`role "dr"`:                        func(p *Pair) { p.Role = "dr" },
		"3 to 255":                         func(p *Pair) { p.Table.Table = "x" },
		"no replica in us-west-2":          func(p *Pair) { p.Table.Replicas, p.Table.Witness = []string{"us-east-2", "us-east-1"}, "us-west-2" },
		"can't share a table in strong":    func(p *Pair) { p.Table.Replicas, p.Table.Witness = []string{"us-east-2", "us-west-2"}, "eu-west-1" },
		"three replicas, or two and a wit": func(p *Pair) { p.Table.Replicas = []string{"us-east-2", "us-west-2"} },
	} {
		p := pairs()["admiral"]
		change(&p)
		for _, kind := range Kinds() {
			if text, err := p.Text(kind, ""); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it\n%s", kind, err, want, text)
			}
		}
	}
	p := pairs()["admiral"]
	for _, c := range [][3]string{{Kubernetes, "north", "no instance is named north"}, {Helm, "", "name it with --pod"}, {"pulumi", "", "want cli, cloudformation, grafana"}} {
		if text, err := p.Text(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q: %v\n%s", c, err, text)
		}
	}
}

// TestOneStore: every text about instances names the table, and each instance's Region.
func TestOneStore(t *testing.T) {
	for name, p := range pairs() {
		text, err := p.Text(Kubernetes, "")
		if err != nil {
			t.Fatal(err)
		}
		if left := regexp.MustCompile(`\{[a-z]+\}`).FindString(text); left != "" {
			t.Errorf("%s: %s is left", name, left)
		}
		for _, pod := range p.Pods {
			region := pod.Region
			if !p.Table.Strong() {
				region = p.Region
			}
			want := fmt.Sprintf("region: %q", region)
			if !p.Table.Admiral {
				want = "?region=" + region
			}
			one, err := p.Text(Kubernetes, pod.Name)
			if err != nil || !strings.Contains(one, want) || !strings.Contains(one, `podIdentifier: "`+pod.Name+`"`) || !strings.Contains(one, p.Table.Table) {
				t.Errorf("%s: %v: %s isn't in\n%s", pod.Name, err, want, one)
			}
		}
	}
}
