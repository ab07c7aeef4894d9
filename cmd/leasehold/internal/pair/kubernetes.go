//go:build !lite

package pair

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// manifest is what the chart leasehold-standby makes of one instance, with places for what differs.
//
//go:embed templates/instance.yaml
var manifest string

func (p Pair) kubernetes(pods []Pod) (string, error) {
	var all []string
	for _, pod := range pods {
		store, err := p.settings(pod)
		if err != nil {
			return "", err
		}
		text := manifest
		sum := sha256.Sum256([]byte(store + seconds(p.Wait) + "×" + strconv.Itoa(p.Threshold)))
		for place, value := range map[string]string{
			"{checksum}":  hex.EncodeToString(sum[:]),
			"{namespace}": p.Namespace, "{pod}": pod.Name, "{lease}": p.Lease, "{region}": pod.Region,
			"{wait}": seconds(p.Wait), "{threshold}": strconv.Itoa(p.Threshold), "    {settings}\n": store,
		} {
			text = strings.ReplaceAll(text, place, value)
		}
		all = append(all, "# The instance "+pod.Name+", for a cluster in "+pod.Region+".\n"+text)
	}
	return strings.Join(all, "---\n"), nil
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// settings are the lines of the configuration that say where the lease is.
func (p Pair) settings(pod Pod) (string, error) {
	values := p.place(pod)
	var b strings.Builder
	for _, key := range []string{"tableName", "role", "region", "store"} {
		if v, ok := values[key]; ok {
			b.WriteString("    " + key + ": " + strconv.Quote(v) + "\n")
		}
	}
	return b.String(), nil
}

// place is where the lease is, for one instance.
func (p Pair) place(pod Pod) map[string]string {
	region := p.tableRegion(pod)
	if !p.Table.Admiral {
		return map[string]string{"store": "dynamodb://" + p.Table.Table + "?region=" + region}
	}
	all := map[string]string{"tableName": p.Table.Table, "region": region}
	if p.Role != "" {
		all["role"] = p.Role
	}
	return all
}

// chartValues are the values for one instance.
type chartValues struct {
	Instances []string       `yaml:"instances"`
	DR        map[string]any `yaml:"dr"`
}

func (p Pair) helm(pods []Pod) (string, error) {
	if len(pods) != 1 {
		return "", errOnePod
	}
	pod := pods[0]
	values := chartValues{[]string{pod.Name}, map[string]any{
		"leaseName": p.Lease, "waitTimeInSeconds": int(p.Wait / time.Second), "failureThreshold": p.Threshold, "podRegion": pod.Region,
	}}
	for k, v := range p.place(pod) {
		values.DR[k] = v
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return "", err
	}
	return "# helm install leasehold-standby deploy/charts/leasehold-standby --namespace " + p.Namespace +
		" --values FILE, in a cluster in " + pod.Region + "\n" + string(text), nil
}
