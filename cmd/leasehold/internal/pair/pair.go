//go:build !lite

package pair

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store/dynamodb"
)

// Pod is one instance.
type Pod struct {
	Name   string // its podIdentifier
	Region string // in which it runs
}

// Pair is what the texts are made for: instances that share a lease.
type Pair struct {
	Lease     string // its name
	Wait      time.Duration
	Threshold int
	Pods      []Pod
	Table     dynamodb.Plan
	Region    string // of a table in one Region
	Role      string // ARN of a role that instances assume; "" for none
	Namespace string // of Kubernetes
}

// The words from which names in AWS, Kubernetes and queries are made.
var (
	leaseWord  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)
	podWord    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
	regionWord = regexp.MustCompile(`^[a-z]{2,}(-[a-z]+)+-[0-9]+$`)
	roleWord   = regexp.MustCompile(`^arn:[a-z-]+:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+$`)
)

// Check returns an error that names what is wrong, and the fix.
func (p Pair) Check() error {
	if !leaseWord.MatchString(p.Lease) {
		return fmt.Errorf("leaseName %q: want 1 to 63 letters, digits, dots, dashes and underscores: names of policies and alarms are made from it", p.Lease)
	}
	if p.Wait < time.Second || p.Threshold < 1 {
		return fmt.Errorf("waitTimeInSeconds %v, failureThreshold %d: want whole numbers above 0", p.Wait.Seconds(), p.Threshold)
	}
	const least = 2
	if len(p.Pods) < least {
		return fmt.Errorf("%d instances: want two or more, such as east=us-east-2,west=us-west-2", len(p.Pods))
	}
	seen := map[string]bool{}
	for _, pod := range p.Pods {
		switch {
		case !podWord.MatchString(pod.Name):
			return fmt.Errorf("instance %q: want 1 to 40 small letters, digits and dashes: objects of Kubernetes are named by it", pod.Name)
		case seen[pod.Name]:
			return fmt.Errorf("instance %s: stands twice: podIdentifier is each instance's own", pod.Name)
		case !regionWord.MatchString(pod.Region):
			return fmt.Errorf("instance %s: the Region %q: want one such as us-east-2", pod.Name, pod.Region)
		case p.Table.Strong() && !slices.Contains(p.Table.Replicas, pod.Region):
			return fmt.Errorf("instance %s: the table has no replica in %s: want an instance in one of %s", pod.Name, pod.Region, strings.Join(p.Table.Replicas, ", "))
		}
		seen[pod.Name] = true
	}
	if !p.Table.Strong() && !regionWord.MatchString(p.Region) {
		return fmt.Errorf("the table's Region %q: want one such as us-east-2", p.Region)
	}
	if p.Role != "" && !roleWord.MatchString(p.Role) {
		return fmt.Errorf("role %q: want the ARN of an IAM role", p.Role)
	}
	return p.Table.Check()
}

// TTL is how long the lease outlives its holder.
func (p Pair) TTL() time.Duration { return p.Wait * time.Duration(p.Threshold) }

// tableRegion is where an instance reads and writes the table.
func (p Pair) tableRegion(pod Pod) string {
	if p.Table.Strong() {
		return pod.Region
	}
	return p.Region
}

// renderers make a text, for one instance or for all.
var renderers = map[string]func(Pair, []Pod) (string, error){
	dynamodb.Terraform:      Pair.terraform,
	dynamodb.CloudFormation: Pair.cloudFormation,
	dynamodb.CLI:            Pair.cli,
	Kubernetes:              Pair.kubernetes,
	Helm:                    Pair.helm,
	Prometheus:              Pair.prometheus,
	Grafana:                 Pair.grafana,
}

// The kinds of [Pair.Text] besides those of a table's template.
const (
	Kubernetes = "kubernetes"
	Helm       = "helm"
	Prometheus = "prometheus"
	Grafana    = "grafana"
)

// Kinds returns what [Pair.Text] can write.
func Kinds() []string { return slices.Sorted(maps.Keys(renderers)) }

// Text writes the text of that kind. Those about instances are about the named one only, unless pod
// is "".
func (p Pair) Text(kind, pod string) (string, error) {
	if err := p.Check(); err != nil {
		return "", err
	}
	render, ok := renderers[kind]
	if !ok {
		return "", fmt.Errorf("%q: want %s", kind, strings.Join(Kinds(), ", "))
	}
	pods := p.Pods
	if pod != "" {
		i := slices.IndexFunc(pods, func(o Pod) bool { return o.Name == pod })
		if i < 0 {
			return "", fmt.Errorf("no instance is named %s: want one of %s", pod, strings.Join(p.names(), ", "))
		}
		pods = pods[i : i+1]
	}
	return render(p, pods)
}

func (p Pair) names() (all []string) {
	for _, pod := range p.Pods {
		all = append(all, pod.Name)
	}
	return all
}
